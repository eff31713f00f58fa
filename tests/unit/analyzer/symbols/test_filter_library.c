/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/symbols/filter.h"
#include "base/error.h"

static int read_text(const char *text, struct filter_library **ret_library, struct error *err)
{
    cr_assert_eq(filter_library_new(ret_library, err), 0);
    return filter_library_parse(*ret_library, "sets", text, strlen(text), err);
}

static bool keeps(struct filter_library *library, const char *spec, const struct filter_function *function)
{
    struct filter *filter = NULL;
    struct error err = {0};
    bool kept;

    cr_assert_eq(filter_new_with(library, spec, NULL, &filter, &err), 0, "%s", err.message);
    kept = filter_keeps(filter, function);
    filter_free(filter);
    return kept;
}

static bool keeps_name(struct filter_library *library, const char *spec, const char *name)
{
    const struct filter_function function = {.name = name};

    return keeps(library, spec, &function);
}

Test(filter_library, sets_of_the_user)
{
    static const char text[] =
        "# comment, with = in it\n"
        "\n"
        "  talk = mpicol, /^exchange_/\r\n"
        "quiet=!talk,!mem\n"
        "both\t=\ttalk , @plt\n"
        "deep = source:src/deep/, !/^inner/";
    const struct filter_function deep = {"f", NULL, "a", "/x/src/deep/f.c", NULL};
    const struct filter_function inner = {"g", "inner::g()", "a", "/x/src/deep/f.c", NULL};
    struct filter_library *library = NULL;
    struct error err = {0};

    cr_assert_eq(read_text(text, &library, &err), 0, "%s", err.message);
    cr_assert(keeps_name(library, "talk", "MPI_Barrier"));
    cr_assert(keeps_name(library, "talk", "exchange_rows"));
    cr_assert_not(keeps_name(library, "talk", "MPI_Send"));
    cr_assert(keeps_name(library, "quiet", "main"));
    cr_assert_not(keeps_name(library, "quiet", "exchange_rows"));
    cr_assert_not(keeps_name(library, "quiet", "memcpy"));
    cr_assert(keeps_name(library, "both", "puts@plt"));
    cr_assert(keeps_name(library, "str,!talk", "strlen"));
    cr_assert_not(keeps_name(library, "everything,!talk", "MPI_Bcast"));
    cr_assert(keeps_name(library, "!quiet", "memcpy"));
    cr_assert(keeps_name(library, "11.talk.0K10", "exchange_rows"));
    cr_assert(keeps(library, "deep", &deep));
    cr_assert_not(keeps(library, "deep", &inner));
    filter_library_free(library);
}

Test(filter_library, what_a_set_needs_is_known_through_it)
{
    struct filter_library *library = NULL;
    struct filter *filter = NULL;

    cr_assert_eq(read_text("a = source:src\nb = image:libm*\nc = a, b\nd = mpi\n", &library, NULL), 0);
    cr_assert_eq(filter_new_with(library, "c", NULL, &filter, NULL), 0);
    cr_assert(filter_asks_source(filter));
    cr_assert(filter_takes_image(filter, "/lib/libm.so.6"));
    filter_free(filter);
    cr_assert_eq(filter_new_with(library, "d", NULL, &filter, NULL), 0);
    cr_assert_not(filter_asks_source(filter));
    cr_assert_not(filter_takes_image(filter, NULL));
    filter_free(filter);
    filter_library_free(library);
}

/* a0 = a1 = ... each named twice by the next: an answer must not take 2^60 questions. */
Test(filter_library, sets_of_sets_are_asked_once)
{
    struct filter_library *library = NULL;
    struct error err = {0};
    char text[4000] = "s0 = /x/\n";
    size_t length = strlen(text);

    for (int i = 1; i < 60; i++)
        length +=
            (size_t)snprintf(text + length, sizeof(text) - length, "s%d = s%d, !/y/, s%d\n", i, i - 1, i - 1);
    cr_assert_eq(read_text(text, &library, &err), 0, "%s", err.message);
    cr_assert(keeps_name(library, "s59", "x"));
    cr_assert_not(keeps_name(library, "s59", "xy"));
    cr_assert_not(keeps_name(library, "s59", "z"));
    filter_library_free(library);
}

Test(filter_library, wrong_lines_are_named)
{
    static const struct {
        const char *text, *where, *why;
    } wrong[] = {
        {"a = mpi\nnonsense\n", "sets:2", "'='"},
        {"a = mpi\n\n# x\nb = mpj\n", "sets:4", "'mpj'"},
        {"a = b\nb = mpi\n", "sets:1", "lines above"},
        {"a = a\n", "sets:1", "'a'"},
        {"a = mpi\na = mem\n", "sets:2", "line 1"},
        {"mem = mpi\n", "sets:1", "predefined"},
        {"plt = mpi\n", "sets:1", "reserved"},
        {"a b = mpi\n", "sets:1", "not a valid set name"},
        {"1a = mpi\n", "sets:1", "not a valid set name"},
        {"= mpi\n", "sets:1", "not a valid set name"},
        {"a =\n", "sets:1", "term"},
        {"a = mpi,\n", "sets:1", "term"},
        {"a = /(/\n", "sets:1", "regular expression '('"},
        {"a = plt\n", "sets:1", "'plt'"},
        {"a = mem, returns\n", "sets:1", "'returns'"},
        {"a = image:\n", "sets:1", "image:"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct filter_library *library = NULL;
        struct error err = {0};

        cr_assert_eq(read_text(wrong[i].text, &library, &err), -EINVAL, "'%s' is taken", wrong[i].text);
        cr_assert_not_null(strstr(err.message, wrong[i].where), "%s", err.message);
        cr_assert_not_null(strstr(err.message, wrong[i].why), "%s", err.message);
        filter_library_free(library);
    }
}

Test(filter_library, refuses_what_is_no_text)
{
    struct filter_library *library = NULL;
    struct error err = {0};

    cr_assert_eq(filter_library_new(&library, NULL), 0);
    cr_assert_eq(filter_library_parse(library, "sets", "a\0b", 3, &err), -EINVAL);
    cr_assert_eq(filter_library_read(library, "/nonexistent/sets", &err), -ENOENT);
    cr_assert_not_null(strstr(err.message, "/nonexistent/sets"));
    filter_library_free(library);
}
