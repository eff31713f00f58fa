/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Long names of functions in narrow columns. C++ and Rust names of hundreds of characters are mostly
 * arguments and namespaces; what people look for is the last part.
 */
#ifndef TRACECTL_ANALYZER_SYMBOLS_SHORT_NAMES_H
#define TRACECTL_ANALYZER_SYMBOLS_SHORT_NAMES_H

#include <stddef.h>

/* The most bytes that a name of that width takes, its end included. */
#define SHORT_NAME_SIZE(width) (4 * (width) + 1)

/* Writes `name` in at most `width` characters (at least 8), leaving out, as far as is needed: what is in
 * parentheses, then what is in angle brackets ("f(...)", "map<...>"), then scopes from the left
 * ("...::insert"), then characters in the middle. The text is printable. */
void name_shorten(const char *name, size_t width, char *ret_text, size_t size);

#endif
