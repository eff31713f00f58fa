/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static char *printed(int *ret_written, const char *format, ...) __attribute__((format(printf, 2, 3)));

static char *printed(int *ret_written, const char *format, ...)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    va_list values;

    va_start(values, format);
    *ret_written = text_vprint(out, format, values);
    va_end(values);
    fclose(out);
    return text;
}

#define EXPECT(wanted, ...) \
    do { \
        int written; \
        char *text = printed(&written, __VA_ARGS__); \
        cr_expect_str_eq(text, wanted); \
        cr_expect_eq(written, (int)text_width(wanted), "%d of it", written); \
        free(text); \
    } while (0)

static void expect_printable(const char *text, const char *wanted)
{
    char *got = text_printable(text);

    cr_expect_str_eq(got, wanted);
    free(got);
}

Test(text, controls_are_shown)
{
    expect_printable("plain text, \\ and all", "plain text, \\ and all");
    expect_printable("\033]0;x\007\033[31m", "\\x1b]0;x\\x07\\x1b[31m");
    expect_printable("a\nb\tc\rd\x7f", "a\\nb\\tc\\rd\\x7f");
    expect_printable(
        "\xc2\x9b"
        "31m",
        "\\u009b31m");
}

Test(text, what_is_no_utf8_is_shown_byte_by_byte)
{
    expect_printable("\xff\xfe", "\\xff\\xfe");
    expect_printable("\xc3", "\\xc3");
    expect_printable("\xe2\x82", "\\xe2\\x82");
    expect_printable("\xc0\xaf", "\\xc0\\xaf");
    expect_printable("\xed\xa0\x80", "\\xed\\xa0\\x80");
    expect_printable("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
}

Test(text, letters_of_all_scripts_stay)
{
    expect_printable("gr\xc3\xb6\xc3\x9f\x65 \xe5\x90\x8d \xf0\x9f\x99\x82",
                     "gr\xc3\xb6\xc3\x9f\x65 \xe5\x90\x8d \xf0\x9f\x99\x82");
}

Test(text, direction_and_invisible_characters_are_shown)
{
    expect_printable(
        "a\xe2\x80\xae"
        "b\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf",
        "a\\u202eb\\u2066\\u200b\\ufeff");
    expect_printable("\xf3\xa0\x80\x81", "\\U000e0001");
}

Test(text, valid_keeps_controls)
{
    char *valid = text_valid("a\033\xff\xc3\xa9");

    cr_expect_str_eq(valid, "a\033\xef\xbf\xbd\xc3\xa9");
    free(valid);
}

Test(text, formats_are_ours_and_values_are_not)
{
    EXPECT("a\n\\n%\n", "a\n%s%%\n", "\n");
    EXPECT("[\\x1b]", "[%c]", 27);
}

Test(text, padding_is_by_characters)
{
    EXPECT("[\xc3\xb6   ]", "[%-4s]", "\xc3\xb6");
    EXPECT("[   \xc3\xb6]", "[%4s]", "\xc3\xb6");
    EXPECT("[\\n  ]", "[%*s]", -4, "\n");
    EXPECT("[    ]", "[%*s]", 4, "");
    EXPECT("[ab]", "[%.2s]", "abc");
    EXPECT("[ab ]", "[%-3.*s]", 2, "abc");
    EXPECT("[\\xc3]", "[%.*s]", 1, "\xc3\xb6");
}

Test(text, numbers_are_as_printf_writes_them)
{
    EXPECT("-1 ff 18446744073709551615 7", "%d %x %" PRIu64 " %zu", -1, 255, UINT64_MAX, (size_t)7);
    EXPECT("  1.50|1e+10|3", "%6.2f|%.0e|%g", 1.5, 1e10, 3.0);
    EXPECT("0x00ff -7 4294967295", "0x%04x %lld %u", 255, -7LL, UINT32_MAX);
    EXPECT("-1 200 00042 +5", "%hhd %hhu %05d %+d", 255, 200, 42, 5);
    EXPECT("   12", "%*d", 5, 12);
}

static void expect_csv(const char *text, const char *wanted)
{
    char *got = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&got, &size);

    text_put_csv(out, text);
    fclose(out);
    cr_expect_str_eq(got, wanted);
    free(got);
}

Test(text, csv)
{
    expect_csv("", "");
    expect_csv("plain", "plain");
    expect_csv("a,b", "\"a,b\"");
    expect_csv("say \"x\"", "\"say \"\"x\"\"\"");
    expect_csv("two\nlines", "\"two\nlines\"");
    expect_csv("\033[31m\r\xff", "\\x1b[31m\\r\\xff");
}

Test(text, digits_are_grouped)
{
    EXPECT("0 999 1,000 12,345,678", "%'u %'d %'zu %'llu", 0u, 999, (size_t)1000, 12345678ull);
    EXPECT("-1,234 |  1,000|1,000  |", "%'d |%'7d|%-'7d|", -1234, 1000, 1000);
    cr_expect_str_eq(text_plural(0), "s");
    cr_expect_str_eq(text_plural(1), "");
}
