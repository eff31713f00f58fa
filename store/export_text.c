/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/export_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The second byte of these leads is bounded: no overlong forms, no surrogates, nothing above U+10FFFF. */
static bool second_byte_fits(unsigned char lead, unsigned char second)
{
    switch (lead) {
    case 0xe0:
        return second >= 0xa0;
    case 0xed:
        return second < 0xa0;
    case 0xf0:
        return second >= 0x90;
    case 0xf4:
        return second < 0x90;
    default:
        return true;
    }
}

size_t text_utf8_sequence(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = bytes[0] < 0x80    ? 1
                    : bytes[0] < 0xc2  ? 0
                    : bytes[0] < 0xe0  ? 2
                    : bytes[0] < 0xf0  ? 3
                    : bytes[0] <= 0xf4 ? 4
                                       : 0;

    if (!bytes[0])
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    return length > 2 && !second_byte_fits(bytes[0], bytes[1]) ? 0 : length;
}

static void put_bytes(FILE *out, const char *bytes, size_t size)
{
    fwrite_unlocked(bytes, 1, size, out);
}

void text_put(FILE *out, const char *text)
{
    fputs_unlocked(text, out);
}

void text_put_number(FILE *out, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);

    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put_bytes(out, digits + at, sizeof(digits) - at);
}

void text_put_microseconds(FILE *out, uint64_t ns)
{
    const unsigned rest = (unsigned)(ns % 1000);
    const char fraction[] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                             (char)('0' + rest % 10)};

    text_put_number(out, ns / 1000);
    put_bytes(out, fraction, sizeof(fraction));
}

static void put_utf8(FILE *out, const char **text)
{
    size_t length = text_utf8_sequence(*text);

    put_bytes(out, length ? *text : "\xef\xbf\xbd", length ? length : 3);
    *text += length ? length : 1;
}

void text_put_json(FILE *out, const char *text)
{
    putc_unlocked('"', out);
    while (*text) {
        const unsigned char byte = (unsigned char)*text;

        if (byte == '"' || byte == '\\') {
            putc_unlocked('\\', out);
            putc_unlocked(*text++, out);
        } else if (byte < 0x20 || byte == 0x7f) {
            fprintf(out, "\\u%04x", byte);
            text++;
        } else {
            put_utf8(out, &text);
        }
    }
    putc_unlocked('"', out);
}

void text_put_csv(FILE *out, const char *text)
{
    bool quoted = strpbrk(text, ",\"\r\n") || *text == ' ';

    if (quoted)
        putc_unlocked('"', out);
    while (*text) {
        if (*text == '"')
            putc_unlocked('"', out);
        put_utf8(out, &text);
    }
    if (quoted)
        putc_unlocked('"', out);
}

static void put_plain(FILE *out, const char *text)
{
    while (*text)
        put_utf8(out, &text);
}

/* What `put` writes of the text. */
static char *collect(void (*put)(FILE *out, const char *text), const char *text)
{
    char *result = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&result, &size);

    if (!out)
        return NULL;
    put(out, text);
    if (fclose(out) == 0)
        return result;
    free(result);
    return NULL;
}

char *text_utf8(const char *text)
{
    return collect(put_plain, text);
}

char *text_json(const char *text)
{
    return collect(text_put_json, text);
}

char *text_csv(const char *text)
{
    return collect(text_put_csv, text);
}
