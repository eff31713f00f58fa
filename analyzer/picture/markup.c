/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/markup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the UTF-8 sequence at `text`, its character in *ret_character; 0: there is none. */
static size_t decode(const unsigned char *text, uint32_t *ret_character)
{
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    uint32_t character = length > 1 ? text[0] & (0xffu >> (length + 1)) : text[0];

    if (!length || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (text[i] & 0x3f);
    }
    if ((length == 3 && character < 0x800) || (length == 4 && (character < 0x10000 || character > 0x10ffff)))
        return 0;
    *ret_character = character;
    return length;
}

/* The characters that XML 1.0 can hold. */
static bool is_xml(uint32_t character)
{
    return character == '\t' || character == '\n' || character == '\r' ||
           (character >= 0x20 && character < 0xd800) || (character >= 0xe000 && character < 0xfffe) ||
           character >= 0x10000;
}

static const char *entity(uint32_t character)
{
    switch (character) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void markup_escape(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at) {
        uint32_t character = 0;
        size_t length = decode(at, &character);
        const char *as = entity(character);

        if (!length || !is_xml(character))
            fputs("\xef\xbf\xbd", out);
        else if (as)
            fputs(as, out);
        else
            fwrite(at, 1, length, out);
        at += length ? length : 1;
    }
}
