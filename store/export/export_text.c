/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/export/export_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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
    uint32_t character;
    size_t length = text_decode(*text, &character);

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

char *text_json(const char *text)
{
    return collect(text_put_json, text);
}

char *text_csv(const char *text)
{
    return collect(text_put_csv, text);
}
