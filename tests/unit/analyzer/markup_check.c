/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/unit/analyzer/markup_check.h"

#include <criterion/criterion.h>
#include <string.h>

enum { DEEPEST = 64, LONGEST = 32 };

static void check_entity(const char *at)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++)
        if (!strncmp(at, entities[i], strlen(entities[i])))
            return;
    cr_assert_fail("a bare &: %.40s", at);
}

/* Behind the '>' of a tag that begins at `at`; attributes' values may not have a '<'. */
static const char *tag_end(const char *at)
{
    const char *begin = at;
    char quote = 0;

    for (at++; *at && (quote || *at != '>'); at++) {
        cr_assert_neq(*at, '<', "< in a tag: %.60s", begin);
        if (*at == '&')
            check_entity(at);
        if (quote ? *at == quote : *at == '"')
            quote = quote ? 0 : *at;
    }
    cr_assert_eq(*at, '>', "a tag without an end: %.60s", begin);
    return at + 1;
}

void check_markup(const char *text)
{
    char open[DEEPEST][LONGEST];
    size_t depth = 0;

    for (const char *at = text; *at;) {
        const char *end;
        size_t length;

        if (*at == '&')
            check_entity(at);
        if (*at != '<') {
            at++;
            continue;
        }
        end = tag_end(at);
        length = strcspn(at + 1 + (at[1] == '/'), " />\n");
        cr_assert_lt(length, (size_t)LONGEST);
        if (at[1] == '/') {
            cr_assert_gt(depth, 0, "an end too many: %.40s", at);
            depth--;
            cr_assert(strlen(open[depth]) == length && !strncmp(open[depth], at + 2, length),
                      "%s ends as %.20s", open[depth], at);
        } else if (end[-2] != '/' && at[1] != '!' && at[1] != '?' && strncmp(at, "<meta ", 6) != 0) {
            cr_assert_lt(depth, (size_t)DEEPEST);
            memcpy(open[depth], at + 1, length);
            open[depth++][length] = '\0';
        }
        at = end;
    }
    cr_assert_eq(depth, 0, "%s is not ended", depth ? open[depth - 1] : "");
}

size_t count_of(const char *text, const char *piece)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, piece)); at += strlen(piece))
        count++;
    return count;
}
