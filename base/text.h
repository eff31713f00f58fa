/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text for people. Names of functions, threads, files and the like are bytes that a traced program chose: an
 * escape sequence in one must not reach a terminal, nor a line break forge a line. What is printed for people
 * is printed by the functions below, whose formats are ours and whose texts are not.
 *
 * Printable text is UTF-8 without control characters, of which those count as well that change the direction
 * or are invisible. What is not printable is shown as \n, \t, \r, \x1b (a byte) or \u202e (a character).
 */
#ifndef TRACECTL_BASE_TEXT_H
#define TRACECTL_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The bytes of the UTF-8 sequence that `text` begins with, its character in *ret_character; 0: there is none.
 */
size_t text_decode(const char *text, uint32_t *ret_character);

/* The text as UTF-8, U+FFFD in place of what is none; in memory from malloc, NULL: none left. */
char *text_valid(const char *text);

/* The text as printable text; in memory from malloc, NULL: none left. */
char *text_printable(const char *text);

/* Whether the character is shown as itself. */
bool text_shows(uint32_t character);

/* Whether text_printable would change nothing. */
bool text_is_printable(const char *text);

/* The bytes of the character that `text` begins with; a byte that is no UTF-8 is a character. */
size_t text_next(const char *text);

/* Characters of the text, which a terminal shows in as many columns, nearly: wide and combining ones count as
 * one. */
size_t text_width(const char *text);

/* As fprintf, with every string among the values made printable and padded by characters; a precision counts
 * bytes. %'u and %'d group digits: "12,345,678". `long double`, %n and wide characters are not supported.
 * Returns how many characters were written, <0: that failed. */
int text_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int text_vprint(FILE *out, const char *format, va_list values) __attribute__((format(printf, 2, 0)));

/* "12,345,678", cut to `size` bytes with the 0 behind it. */
void text_count(uint64_t count, char *text, size_t size);

/* What is behind a noun that there are `count` of: "s", or nothing for one. */
static inline const char *text_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Writes the text as printable text. */
void text_show(FILE *out, const char *text);

/* The same for a text of several lines, whose names have been made printable when it was composed: line
 * breaks stay. */
void text_show_lines(FILE *out, const char *text);

/* Writes what is not for people, or an escape sequence of ours, as it is. EOF: that failed. */
int text_put_raw(FILE *out, const char *text);

/* Writes the text as one field of CSV (RFC 4180), quoted where that is necessary: line breaks stay, all else
 * that is not printable is shown. */
void text_put_csv(FILE *out, const char *text);

#endif
