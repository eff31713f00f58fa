/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/markup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

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
    const char *at = text;

    while (*at) {
        uint32_t character = 0;
        size_t length = text_decode(at, &character);
        const char *as = entity(character);

        if (!length || !(text_shows(character) || character == '\n' || character == '\t'))
            fputs("\xef\xbf\xbd", out);
        else if (as)
            fputs(as, out);
        else
            fwrite(at, 1, length, out);
        at += length ? length : 1;
    }
}
