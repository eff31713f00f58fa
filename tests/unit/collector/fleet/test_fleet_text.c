/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any bytes as valid UTF-8 and back (collector/fleet/fleet_text.h). */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "collector/fleet/fleet_text.h"

static void check_encoded(const char *text, size_t size, const char *wanted)
{
    AUTO_BYTES encoded = {0}, decoded = {0};

    cr_assert_eq(fleet_text_encode(text, size, &encoded), 0);
    cr_assert_eq(encoded.size, strlen(wanted));
    cr_assert_arr_eq(encoded.data, wanted, encoded.size);
    cr_assert_eq(fleet_text_decode((const char *)encoded.data, encoded.size, &decoded), 0);
    cr_assert_eq(decoded.size, size);
    cr_assert_arr_eq(decoded.data, text, size);
}

Test(fleet_text, valid_text_stays)
{
    check_encoded("main", 4, "main");
    check_encoded("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

Test(fleet_text, other_bytes_are_escaped)
{
    check_encoded("a\xff", 2, "a\xf4\x8f\xbf\xbf");
    check_encoded("\0b", 2,
                  "\xf4\x8f\xbc\x80"
                  "b");
    /* too long a form, half a surrogate pair, a sequence that is cut short */
    check_encoded("\xc0\x80", 2, "\xf4\x8f\xbf\x80\xf4\x8f\xbe\x80");
    check_encoded("\xed\xa0\x80", 3, "\xf4\x8f\xbf\xad\xf4\x8f\xbe\xa0\xf4\x8f\xbe\x80");
    check_encoded("\xe2\x82", 2, "\xf4\x8f\xbf\xa2\xf4\x8f\xbe\x82");
    /* what would be taken for an escape */
    check_encoded("\xf4\x8f\xbf\xbf", 4, "\xf4\x8f\xbf\xb4\xf4\x8f\xbe\x8f\xf4\x8f\xbe\xbf\xf4\x8f\xbe\xbf");
}

/* Whatever the bytes are, they come back, and what is kept is valid: it is encoded as itself but for escapes. */
Test(fleet_text, random_bytes_come_back)
{
    static const char pieces[][5] = {"\xff",     "\xc3", "\xa9",         "\xf4\x8f", "\xbc\x80",
                                     "\xed\xa0", "a",    "\xe2\x82\xac", "\xf0"};

    srand(7);
    for (int round = 0; round < 20000; round++) {
        AUTO_BYTES text = {0}, encoded = {0}, decoded = {0};

        for (int i = rand() % 12; i > 0; i--) {
            const char *piece = pieces[rand() % 9];
            char byte = (char)rand();

            cr_assert_eq(rand() % 2 ? bytes_add(&text, piece, strlen(piece)) : bytes_add(&text, &byte, 1), 0);
        }
        cr_assert_eq(fleet_text_encode((const char *)text.data, text.size, &encoded), 0);
        cr_assert_eq(fleet_text_decode((const char *)encoded.data, encoded.size, &decoded), 0);
        cr_assert_eq(decoded.size, text.size);
        if (text.size)
            cr_assert_arr_eq(decoded.data, text.data, text.size);
        for (size_t i = 0; i < encoded.size; i++)
            cr_assert_neq(encoded.data[i], 0);
    }
}
