/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/fleet/fleet_text.h"

#include <stdint.h>

enum { ESCAPES = 0x10ff00, ESCAPES_END = 0x110000 };

/* The length of the valid UTF-8 sequence that begins at `at`, and its character; 0: none does. */
static size_t sequence(const uint8_t *at, size_t left, uint32_t *ret_character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = *at < 0x80             ? 1
                    : (*at & 0xe0) == 0xc0 ? 2
                    : (*at & 0xf0) == 0xe0 ? 3
                    : (*at & 0xf8) == 0xf0 ? 4
                                           : 0;
    uint32_t character = length == 1 ? *at : *at & (0x7fu >> length);

    if (!length || length > left)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (at[i] & 0x3f);
    }
    if (character < least[length] || character >= ESCAPES_END || (character >= 0xd800 && character < 0xe000))
        return 0;
    *ret_character = character;
    return length;
}

static int add_escape(struct bytes *out, uint8_t byte)
{
    uint32_t character = ESCAPES + byte;
    const uint8_t text[4] = {(uint8_t)(0xf0 | character >> 18), (uint8_t)(0x80 | (character >> 12 & 0x3f)),
                             (uint8_t)(0x80 | (character >> 6 & 0x3f)), (uint8_t)(0x80 | (character & 0x3f))};

    return bytes_add(out, text, sizeof(text));
}

int fleet_text_encode(const char *text, size_t size, struct bytes *out)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + size;
    int code = 0;

    while (at < end && !code) {
        uint32_t character = 0;
        size_t length = sequence(at, (size_t)(end - at), &character);

        if (length && character && character < ESCAPES) {
            code = bytes_add(out, at, length);
            at += length;
        } else {
            code = add_escape(out, *at++);
        }
    }
    return code;
}

int fleet_text_decode(const char *text, size_t size, struct bytes *out)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + size;
    int code = 0;

    while (at < end && !code) {
        uint32_t character = 0;
        size_t length = sequence(at, (size_t)(end - at), &character);
        uint8_t byte = (uint8_t)character;

        code = length && character >= ESCAPES ? bytes_add(out, &byte, 1)
                                              : bytes_add(out, at, length ? length : 1);
        at += length ? length : 1;
    }
    return code;
}
