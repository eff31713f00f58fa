/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/symbols/short_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define LEFT_OUT_WIDTH 3u /* of the dots that stand for what is left out */
#define LEAST_WIDTH 8u

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
        text += text_next(text);
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

void name_shorten(const char *name, size_t width, char *ret_text, size_t size)
{
    AUTO_FREE char *first = text_printable(name);
    AUTO_FREE char *second = first ? malloc(strlen(first) + 1) : NULL;

    if (width < LEAST_WIDTH)
        width = LEAST_WIDTH;
    if (!first || !second) {
        snprintf(ret_text, size, "?");
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
    snprintf(ret_text, size, "%s", first);
}
