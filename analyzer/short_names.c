/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/short_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define LEFT_OUT_WIDTH 3u /* of the dots that stand for what is left out */
#define LEAST_WIDTH 8u

/* Bytes of the character at `text`: the sequence that its first byte announces, if it is whole. */
static size_t character_bytes(const char *text)
{
    unsigned char first = (unsigned char)*text;
    size_t length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 1;

    for (size_t i = 1; i < length; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 1;
    return length;
}

size_t text_width(const char *text)
{
    size_t width = 0;

    for (; *text; text += character_bytes(text))
        width++;
    return width;
}

/* Behind "operator" angle brackets are part of the name. */
static bool follows_operator(const char *begin, const char *at)
{
    static const char word[] = "operator";

    while (at > begin && strchr("<>-=", at[-1]))
        at--;
    return (size_t)(at - begin) >= sizeof(word) - 1 &&
           !strncmp(at - (sizeof(word) - 1), word, sizeof(word) - 1);
}

/* The bracket that closes the one at `open`; NULL: none does. */
static const char *closing(const char *begin, const char *open, char open_with, char close_with)
{
    size_t depth = 0;

    for (const char *c = open; *c; c++) {
        if ((*c == '<' || *c == '>') && (follows_operator(begin, c) || (c > begin && c[-1] == '-')))
            continue;
        if (*c == open_with)
            depth++;
        else if (*c == close_with && !--depth)
            return c;
    }
    return NULL;
}

/* In the midst of a text: nothing ends there. */
static void put_left_out(char *at)
{
    for (size_t i = 0; i < LEFT_OUT_WIDTH; i++)
        at[i] = '.';
}

/* Leaves the text of outermost brackets out: done twice, it is as if done once. */
static void empty_brackets(const char *name, char open_with, char close_with, char *ret_text)
{
    char *to = ret_text;

    for (const char *c = name; *c;) {
        const char *close = NULL;

        if (*c == open_with && !(open_with == '<' && follows_operator(name, c)))
            close = closing(name, c, open_with, close_with);
        *to++ = *c++;
        if (!close || (size_t)(close - c) <= LEFT_OUT_WIDTH)
            continue;
        put_left_out(to);
        to += LEFT_OUT_WIDTH;
        c = close;
    }
    *to = '\0';
}

/* Leaves out as few scopes from the left as makes the rest fit; all but the last one if nothing does. */
static void drop_scopes(char *name, size_t width)
{
    const char *rest = name;
    bool dropped = false;
    char *kept;

    while (text_width(rest) + (dropped ? LEFT_OUT_WIDTH : 0) > width) {
        const char *next = strstr(rest + (dropped ? strlen("::") : 0), "::");

        if (!next)
            break;
        rest = next;
        dropped = true;
    }
    if ((size_t)(rest - name) <= LEFT_OUT_WIDTH)
        return;
    kept = name + LEFT_OUT_WIDTH;
    memmove(kept, rest, strlen(rest) + 1);
    put_left_out(name);
}

static const char *skip_characters(const char *text, size_t count)
{
    while (count-- && *text)
        text += character_bytes(text);
    return text;
}

/* Leaves characters in the middle out. */
static void cut_middle(char *name, size_t width)
{
    size_t all = text_width(name), head, tail;
    char *to;
    const char *rest;

    if (all <= width)
        return;
    head = (width - LEFT_OUT_WIDTH) / 2;
    tail = width - LEFT_OUT_WIDTH - head;
    to = name + (skip_characters(name, head) - name);
    rest = skip_characters(name, all - tail);
    /* At least three characters go, so there is room. */
    memmove(to + LEFT_OUT_WIDTH, rest, strlen(rest) + 1);
    put_left_out(to);
}

static void hide_control_characters(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

void name_shorten(const char *name, size_t width, char *ret_text, size_t size)
{
    size_t length = strlen(name);
    AUTO_FREE char *first = strdup(name);
    AUTO_FREE char *second = malloc(length + 1);

    if (width < LEAST_WIDTH)
        width = LEAST_WIDTH;
    if (!first || !second) {
        snprintf(ret_text, size, "%.*s", (int)width, name);
        return;
    }
    if (text_width(first) > width) {
        empty_brackets(first, '(', ')', second);
        empty_brackets(second, '(', ')', first);
    }
    if (text_width(first) > width) {
        empty_brackets(first, '<', '>', second);
        empty_brackets(second, '<', '>', first);
    }
    drop_scopes(first, width);
    cut_middle(first, width);
    hide_control_characters(first);
    snprintf(ret_text, size, "%s", first);
}
