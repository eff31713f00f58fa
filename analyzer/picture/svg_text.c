/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much room texts take. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/svg.h"
#include "base/cleanup.h"

/* Thousandths of the size for the characters from ' ' to '~': Helvetica's, as Adobe's font metrics list them.
 */
static const unsigned short helvetica[] = {
    278,  278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, /* space to / */
    556,  556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, /* 0 to ? */
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, /* @ to O */
    667,  778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, /* P to _ */
    333,  556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, /* ` to o */
    556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,      /* p to ~ */
};
_Static_assert(sizeof(helvetica) / sizeof(helvetica[0]) == '~' - ' ' + 1, "one width a character");

#define OTHER_WIDTH 1000 /* of characters beyond ASCII */
#define WIDER_FONTS 1.16 /* DejaVu Sans, beside Helvetica */
#define BOLD 1.08

static bool begins_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

double svg_text_width(const char *text, const struct svg_font *font)
{
    double size = font && font->size > 0 ? font->size : SVG_FONT_SIZE, thousandths = 0;
    size_t count = 0;

    for (; *text; text++) {
        if (!begins_character(*text))
            continue;
        thousandths += *text >= ' ' && *text <= '~' ? helvetica[*text - ' '] : OTHER_WIDTH;
        count++;
    }
    if (font && font->monospace)
        return (double)count * SVG_MONOSPACE_WIDTH * size;
    return thousandths / 1000 * size * WIDER_FONTS * (font && font->bold ? BOLD : 1);
}

/* The bytes of `text` in front of the last space that fits; those of its first word at least. */
static size_t fitting(char *text, double width, const struct svg_font *font)
{
    size_t fits = strcspn(text, " ");

    while (text[fits]) {
        size_t end = fits + 1 + strcspn(text + fits + 1, " ");
        char next = text[end];
        bool too_wide;

        text[end] = '\0';
        too_wide = svg_text_width(text, font) > width;
        text[end] = next;
        if (too_wide)
            break;
        fits = end;
    }
    return fits;
}

double svg_wrapped_text(struct svg *svg, struct svg_point at, double width, const char *text,
                        const struct svg_font *font)
{
    double line = (font && font->size > 0 ? font->size : SVG_FONT_SIZE) * SVG_LINE_HEIGHT;
    AUTO_FREE char *copy = strdup(text);

    if (!copy)
        return at.y;
    for (char *rest = copy; *rest; at.y += line) {
        size_t length = fitting(rest, width, font);
        char next = rest[length];

        rest[length] = '\0';
        svg_text(svg, at, rest, font);
        rest[length] = next;
        rest += length;
        while (*rest == ' ')
            rest++;
    }
    return at.y;
}
