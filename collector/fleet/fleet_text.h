/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Texts of a store as PostgreSQL can keep them: valid UTF-8 without zero bytes.
 *
 * Names of files and threads are any bytes. A byte B that is not part of valid UTF-8, or is 0, becomes the character
 * U+10FF00 + B, which nothing else is used for; so do the four bytes of such a character itself, one by one. What is
 * encoded is decoded to the same bytes.
 */
#ifndef TRACECTL_FLEET_TEXT_H
#define TRACECTL_FLEET_TEXT_H

#include "store/bytes/bytes.h"

/* Both append to `out`. -ENOMEM. */
int fleet_text_encode(const char *text, size_t size, struct bytes *out);
int fleet_text_decode(const char *text, size_t size, struct bytes *out);

#endif
