/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables, numbers, names of runs. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/table.h"

struct cli cli; /* main.c's, which is not linked here */

int cli_fail(const struct error *err)
{
    return EXIT_FAILED;
}

static char *table_text(const char *const *titles, size_t columns, const char *const *cells, size_t rows)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    struct table *table = table_new(stream, titles, columns, false);

    for (size_t i = 0; i < rows * columns; i++)
        table_cell(table, cells[i]);
    cr_assert_eq(table_free(table), 0);
    fclose(stream);
    return text;
}

static void check_table(const char *const *titles, const char *const *cells, size_t rows,
                        const char *expected)
{
    char *text = table_text(titles, 2, cells, rows);

    cr_assert_str_eq(text, expected);
    free(text);
}

Test(table, aligns)
{
    static const char *const titles[] = {">N", "NAME"}, *const cells[] = {"1", "long name", "1000", "x"};

    check_table(titles, cells, 2, "   N  NAME\n   1  long name\n1000  x\n");
    check_table(titles, cells, 0, "N  NAME\n");
}

Test(table, numbers_decide_the_side)
{
    static const char *const titles[] = {"?a", "?b"}, *const cells[] = {"1", "x1", "-22.5", "", "", "333"};

    check_table(titles, cells, 3, "    a  b\n    1  x1\n-22.5  \n       333\n");
}

Test(table, control_characters_are_escaped)
{
    static const char *const titles[] = {"A", "B"}, *const cells[] = {"x\ny\x1b[31m", "\xc3\xa9"};

    check_table(titles, cells, 1, "A             B\nx\\ny\\x1b[31m  \xc3\xa9\n");
}

Test(table, characters_count_not_bytes)
{
    static const char *const titles[] = {"A", "B"}, *const cells[] = {"\xc3\xa9\xc3\xa9", "1", "abc", "2"};

    check_table(titles, cells, 2, "A    B\n\xc3\xa9\xc3\xa9   1\nabc  2\n");
}

/* Rows behind those that the widths come from are printed at once, not held. */
Test(table, streams)
{
    static const char *const titles[] = {"A"};
    char *text;
    size_t size, before;
    FILE *stream = open_memstream(&text, &size);
    struct table *table = table_new(stream, titles, 1, false);

    for (int i = 0; i < 1000; i++)
        table_cell(table, "row");
    fflush(stream);
    before = size;
    cr_assert_eq(before, 2 + 1000 * 4);
    table_cell(table, "last");
    cr_assert_eq(table_free(table), 0);
    fclose(stream);
    cr_assert_eq(size, before + 5);
    free(text);
}

Test(output, numbers)
{
    char text[64];

    text_count(0, text, sizeof(text));
    cr_assert_str_eq(text, "0");
    text_count(999, text, sizeof(text));
    cr_assert_str_eq(text, "999");
    text_count(1234567, text, sizeof(text));
    cr_assert_str_eq(text, "1,234,567");
    cli_format_bytes(1023, text, sizeof(text));
    cr_assert_str_eq(text, "1023 B");
    cli_format_bytes(1536, text, sizeof(text));
    cr_assert_str_eq(text, "1.5 KiB");
    cli_format_time(1700000000123456789u, 9, text, sizeof(text));
    cr_assert_str_eq(text, "2023-11-14T22:13:20.123456789Z");
    cli_format_time(1700000000123456789u, 3, text, sizeof(text));
    cr_assert_str_eq(text, "2023-11-14T22:13:20.123Z");
    cli_format_time(1700000000123456789u, 0, text, sizeof(text));
    cr_assert_str_eq(text, "2023-11-14T22:13:20Z");
}

Test(output, json_of_any_bytes)
{
    json_t *json = cli_json_text("a\xff\xc3\xa9\xc3");

    cr_assert_str_eq(json_string_value(json), "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
    json_decref(json);
}

static void check_split(const char *argument, const char *path, const char *run)
{
    const char *name;
    char *store = cli_split_run(argument, &name);

    if (path)
        cr_assert(store && !strcmp(store, path), "%s: %s", argument, store ? store : "no store");
    else
        cr_assert_null(store, "%s: %s", argument, store);
    cr_assert_str_eq(name, run);
    free(store);
}

Test(output, stores_in_run_arguments)
{
    check_split("latest", NULL, "latest");
    check_split("a.db:latest~1", "a.db", "latest~1");
    check_split("dir/a:b.db:7", "dir/a:b.db", "7");
    check_split("name:with:colons", NULL, "name:with:colons");
    check_split("/dev/null:3", "/dev/null", "3"); /* a file that is there */
    check_split(":3", NULL, ":3");
    check_split("a.db:", NULL, "a.db:");
}
