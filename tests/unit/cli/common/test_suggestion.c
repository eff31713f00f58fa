/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is suggested for misspelt words. */
#include <criterion/criterion.h>

#include "base/array.h"
#include "cli/common/suggestion.h"

static const char *nearest(const char *word)
{
    static const char *const names[] = {"record", "runs", "rm", "report", "top", "duration"};

    return suggestion_for(word, names, ARRAY_SIZE(names));
}

Test(suggestion, near_words_are_suggested)
{
    cr_expect_str_eq(nearest("recrod"), "record"); /* swapped */
    cr_expect_str_eq(nearest("rekord"), "record"); /* replaced */
    cr_expect_str_eq(nearest("duraton"), "duration");
    cr_expect_str_eq(nearest("run"), "runs");
    cr_expect_str_eq(nearest("reports"), "report");
}

Test(suggestion, far_words_are_not)
{
    cr_expect_null(nearest("xy"));
    cr_expect_null(nearest("verify"));
    cr_expect_null(nearest("a-word-that-is-much-longer-than-any-name-of-an-option"));
}
