/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

/* What a byte becomes at most: \xff. Characters of several bytes grow less. */
#define GROWTH 4
/* Room for what one character becomes: \U000e0001. */
#define LONGEST 12

size_t text_decode(const char *text, uint32_t *ret_character)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    uint32_t character = length > 1 ? at[0] & (0xffu >> (length + 1)) : at[0];

    if (!length || at[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (at[i] & 0x3f);
    }
    if (length == 3 && (character < 0x800 || (character >= 0xd800 && character < 0xe000)))
        return 0;
    if (length == 4 && (character < 0x10000 || character > 0x10ffff))
        return 0;
    *ret_character = character;
    return length;
}

/* Controls, and what is invisible or changes how its neighbours are shown. */
bool text_shows(uint32_t character)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x0, 0x1f},      {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
        {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
        {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe0fff},
    };

    for (size_t i = 0; i < ARRAY_SIZE(hidden) && character >= hidden[i].first; i++)
        if (character <= hidden[i].last)
            return false;
    return true;
}

/* What a sequence of `length` bytes (0: a byte that is no UTF-8) looks like, where it is not itself. */
static int show(char *as, size_t size, const char *text, size_t length, uint32_t character)
{
    if (!length)
        return snprintf(as, size, "\\x%02x", (unsigned char)*text);
    switch (character) {
    case '\n':
        return snprintf(as, size, "\\n");
    case '\r':
        return snprintf(as, size, "\\r");
    case '\t':
        return snprintf(as, size, "\\t");
    default:
        return snprintf(as, size,
                        character < 0x80      ? "\\x%02x"
                        : character < 0x10000 ? "\\u%04x"
                                              : "\\U%08x",
                        character);
    }
}

/* The text as printable text but for the ASCII characters that `keeps` holds. */
static char *printable_but(const char *text, const char *keeps)
{
    char *printable = malloc(GROWTH * strlen(text) + LONGEST);
    size_t at = 0;

    while (printable && *text) {
        uint32_t character = 0;
        size_t length = text_decode(text, &character);

        if (length && (text_shows(character) || (length == 1 && strchr(keeps, *text)))) {
            memcpy(printable + at, text, length);
            at += length;
        } else {
            at += (size_t)show(printable + at, LONGEST, text, length, character);
        }
        text += length ? length : 1;
    }
    if (printable)
        printable[at] = '\0';
    return printable;
}

char *text_printable(const char *text)
{
    return printable_but(text, "");
}

char *text_valid(const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *valid = malloc(3 * strlen(text) + 1);
    size_t at = 0;

    for (uint32_t character; valid && *text;) {
        size_t length = text_decode(text, &character);

        memcpy(valid + at, length ? text : replacement, length ? length : strlen(replacement));
        at += length ? length : strlen(replacement);
        text += length ? length : 1;
    }
    if (valid)
        valid[at] = '\0';
    return valid;
}

bool text_is_printable(const char *text)
{
    uint32_t character;

    for (size_t length; *text; text += length) {
        length = text_decode(text, &character);
        if (!length || !text_shows(character))
            return false;
    }
    return true;
}

size_t text_next(const char *text)
{
    uint32_t character;
    size_t length = text_decode(text, &character);

    return length ? length : 1;
}

size_t text_width(const char *text)
{
    size_t width = 0;

    for (; *text; text += text_next(text))
        width++;
    return width;
}

/* ------------------------------------------------------------------------------------ into a stream */

/* Most texts are printable as they are, and need no memory. */
static void put(FILE *out, const char *text, const char *keeps)
{
    AUTO_FREE char *printable = NULL;
    const char *at = text;

    while ((*at >= ' ' && *at <= '~') || (*at && strchr(keeps, *at)))
        at++;
    fwrite(text, 1, (size_t)(at - text), out);
    if (!*at)
        return;
    printable = printable_but(at, keeps);
    fputs(printable ? printable : "?", out);
}

void text_show(FILE *out, const char *text)
{
    put(out, text, "");
}

void text_show_lines(FILE *out, const char *text)
{
    put(out, text, "\n");
}

int text_put_raw(FILE *out, const char *text)
{
    return fputs(text, out);
}

void text_put_csv(FILE *out, const char *text)
{
    AUTO_FREE char *shown = printable_but(text, "\n");

    if (!shown || !strpbrk(shown, "\",\n")) {
        fputs(shown ? shown : "?", out);
        return;
    }
    putc('"', out);
    for (const char *at = shown; *at; at++) {
        if (*at == '"')
            putc('"', out);
        putc(*at, out);
    }
    putc('"', out);
}
