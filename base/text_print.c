/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* text_print: printf's formats, taken apart so that strings among the values can be made printable. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* One conversion of a format. */
struct conversion {
    char flags[8];
    int width, precision; /* precision -1: none */
    char length;          /* 0, 'h', 'H' (hh), 'l': 64 bits, whichever of l, ll, j, z and t it was */
    char kind;
};

static int read_number(const char **format, va_list *values)
{
    int number = 0;

    if (**format == '*') {
        (*format)++;
        return va_arg(*values, int);
    }
    for (; **format >= '0' && **format <= '9'; (*format)++)
        number = 10 * number + (**format - '0');
    return number;
}

/* The conversion behind a '%'; *format is behind it afterwards. */
static struct conversion read_conversion(const char **format, va_list *values)
{
    struct conversion conversion = {.precision = -1};
    size_t flags = strspn(*format, "-+ #0'"), length;

    memcpy(conversion.flags, *format,
           flags < sizeof(conversion.flags) ? flags : sizeof(conversion.flags) - 1);
    *format += flags;
    conversion.width = read_number(format, values);
    if (**format == '.') {
        (*format)++;
        conversion.precision = read_number(format, values);
    }
    length = strspn(*format, "hljzt");
    if (length)
        conversion.length = (*format)[0] != 'h' ? 'l' : length > 1 ? 'H' : 'h';
    *format += length;
    conversion.kind = *(*format)++;
    return conversion;
}

/* Printf's format for the conversion, of which width and precision are values. */
static void format_again(const struct conversion *conversion, const char *length, char *format, size_t size)
{
    snprintf(format, size, "%%%s*.*%s%c", conversion->flags, length, conversion->kind);
}

static long long read_integer(const struct conversion *conversion, va_list *values)
{
    bool is_signed = conversion->kind == 'd' || conversion->kind == 'i';
    int value;

    if (conversion->length == 'l')
        return va_arg(*values, long long);
    value = va_arg(*values, int);
    if (conversion->length == 'h')
        return is_signed ? (long long)(short)value : (long long)(unsigned short)value;
    if (conversion->length == 'H')
        return is_signed ? (long long)(signed char)value : (long long)(unsigned char)value;
    return is_signed ? (long long)value : (long long)(unsigned)value;
}

/* %'u and %'d: "12,345,678", whatever the locale. */
static int print_grouped(FILE *out, const struct conversion *conversion, long long value)
{
    bool negative = value < 0 && conversion->kind != 'u', left = strchr(conversion->flags, '-');
    char text[32] = "-";

    text_count(negative ? 0 - (unsigned long long)value : (unsigned long long)value, text + negative,
               sizeof(text) - negative);
    return fprintf(out, "%*s", left ? -conversion->width : conversion->width, text);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the format is made of a checked one */

static int print_number(FILE *out, const struct conversion *conversion, va_list *values)
{
    char format[24];

    if (strchr("aAeEfFgG", conversion->kind)) {
        format_again(conversion, "", format, sizeof(format));
        return fprintf(out, format, conversion->width, conversion->precision, va_arg(*values, double));
    }
    if (conversion->kind == 'p') {
        format_again(conversion, "", format, sizeof(format));
        return fprintf(out, format, conversion->width, conversion->precision, va_arg(*values, void *));
    }
    if (strchr(conversion->flags, '\''))
        return print_grouped(out, conversion, read_integer(conversion, values));
    format_again(conversion, "ll", format, sizeof(format));
    return fprintf(out, format, conversion->width, conversion->precision, read_integer(conversion, values));
}

#pragma GCC diagnostic pop

/* A string, or the one character of %c, padded. */
static int print_text(FILE *out, const struct conversion *conversion, const char *text)
{
    AUTO_FREE char *part = NULL, *printable = NULL;
    bool left = strchr(conversion->flags, '-') || conversion->width < 0;
    int width, blanks;

    if (!text)
        text = "(null)";
    part = conversion->precision < 0 ? strdup(text) : strndup(text, (size_t)conversion->precision);
    printable = part ? text_printable(part) : NULL;
    if (!printable)
        return -1;
    width = (int)text_width(printable);
    blanks = abs(conversion->width) > width ? abs(conversion->width) - width : 0;
    if (fprintf(out, "%*s%s%*s", left ? 0 : blanks, "", printable, left ? blanks : 0, "") < 0)
        return -1;
    return width + blanks;
}

static int print_value(FILE *out, const struct conversion *conversion, va_list *values)
{
    char character[2] = "";

    if (conversion->kind == 's')
        return print_text(out, conversion, va_arg(*values, const char *));
    if (conversion->kind != 'c')
        return print_number(out, conversion, values);
    character[0] = (char)va_arg(*values, int);
    return print_text(out, conversion, character);
}

void text_count(uint64_t count, char *text, size_t size)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
    size_t at = 0;

    for (int i = 0; i < length && at + 2 < size; i++) {
        if (i && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
}

int text_vprint(FILE *out, const char *format, va_list values)
{
    int written = 0, r = 0;
    va_list rest;

    va_copy(rest, values);
    while (*format && r >= 0) {
        size_t plain = strcspn(format, "%");

        if (!plain && format[1] == '%')
            plain = 1;
        if (plain) { /* our own text, line breaks and all; of %% the second */
            r = fwrite(format, 1, plain, out) == plain ? (int)plain : -1;
            format += plain + (*format == '%');
        } else {
            struct conversion conversion;

            format++;
            conversion = read_conversion(&format, &rest);
            r = print_value(out, &conversion, &rest);
        }
        written += r;
    }
    va_end(rest);
    return r < 0 ? r : written;
}

int text_print(FILE *out, const char *format, ...)
{
    va_list values;
    int r;

    va_start(values, format);
    r = text_vprint(out, format, values);
    va_end(values);
    return r;
}
