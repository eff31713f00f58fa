/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which pieces of a selection nothing has met. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/symbols/filter.h"
#include "cli/common/asked.h"

/* Marks what matches one of `names`, separated by blanks. */
static void meet(struct asked *asked, const char *names)
{
    char copy[200], *rest = copy, *name;

    strcpy(copy, names);
    while ((name = strsep(&rest, " ")))
        for (size_t i = 0; i < asked->count; i++) {
            struct asked_piece *piece = &asked->pieces[i];
            const struct filter_function function = {.name = name};

            piece->met |= piece->has_regex && !regexec(&piece->regex, name, 0, NULL, 0);
            piece->met |= piece->filter && filter_keeps(piece->filter, &function);
        }
}

static void expect_text(const struct asked *asked, enum asked_kind kind, bool all, const char *expected)
{
    char *text = asked_text(asked, kind, all);

    if (expected)
        cr_expect_str_eq(text, expected);
    else
        cr_expect_null(text, "%s", text);
    free(text);
}

static void expect_unmet(const char *expression, const char *names, const char *expected)
{
    struct asked asked = {0};

    cr_assert_eq(asked_expression(&asked, "--functions", expression, NULL), 0);
    meet(&asked, names);
    expect_text(&asked, ASKED_FUNCTIONS, false, expected);
    expect_text(&asked, ASKED_IMAGES, true, NULL);
    asked_release(&asked);
}

Test(asked, alternatives_of_an_expression)
{
    expect_unmet("^puts$", "puts", NULL);
    expect_unmet("^puts$", "fputs", "--functions '^puts$'");
    expect_unmet("^(puts|pread64|fclose)$", "puts fclose", "--functions 'pread64'");
    expect_unmet("^MPI_(Send|I?recv)$", "MPI_Irecv", "--functions 'MPI_Send'");
    expect_unmet("^a$|^b$|c", "b", "--functions '^a$', 'c'");
    expect_unmet("^(a|b)$|^(c|d)x$", "a dx", "--functions 'b', 'cx'");
    expect_unmet("x[|(]y", "x|y", NULL);
    expect_unmet("x[]|]y|z", "x]y", "--functions 'z'");
    expect_unmet("x\\|y", "x|y", NULL);
    expect_unmet("((a|b)c|d)", "ac d", NULL);
    expect_unmet("(a|b)+z", "abz", NULL);
    expect_unmet("x(a(b|c))*", "x", NULL);
}

Test(asked, an_expression_with_very_many_alternatives_is_one_piece)
{
    char expression[2000] = "f";

    for (int i = 0; i < 300; i++)
        sprintf(expression + strlen(expression), "|g%d", i);
    expect_unmet(expression, "g7", NULL);
}

Test(asked, globs_and_sets)
{
    struct filter_library *library = NULL;
    struct asked asked = {0};

    cr_assert_eq(filter_library_new(&library, NULL), 0);
    cr_assert_eq(asked_globs(&asked, "--images", "main,libx*", NULL), 0);
    cr_assert_eq(asked_expression(&asked, "--functions", "old", NULL), 0);
    cr_assert_eq(asked_expression(&asked, "--functions", "a|b", NULL), 0, "it replaces the one before");
    cr_assert_eq(asked_filter(&asked, "--filter", "mpi, mem,!str", library, NULL), 0);
    asked.pieces[0].met = true;
    meet(&asked, "a memcpy");
    expect_text(&asked, ASKED_FUNCTIONS, false, "--functions 'b', --filter 'mpi'");
    expect_text(&asked, ASKED_IMAGES, false, "--images 'libx*'");
    expect_text(&asked, ASKED_IMAGES, true, "--images 'main', 'libx*'");
    asked_release(&asked);
    filter_library_free(library);
}
