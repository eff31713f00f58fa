/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/asked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/symbols/filter.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

#define ALTERNATIVES_MAX 256 /* an expression with more is one piece */

static void piece_release(struct asked_piece *piece)
{
    if (piece->has_regex)
        regfree(&piece->regex);
    filter_free(piece->filter);
    free(piece->text);
}

void asked_release(struct asked *asked)
{
    for (size_t i = 0; i < asked->count; i++)
        piece_release(&asked->pieces[i]);
    free(asked->pieces);
    *asked = (struct asked){0};
}

static void forget(struct asked *asked, const char *option)
{
    size_t kept = 0;

    for (size_t i = 0; i < asked->count; i++) {
        if (strcmp(asked->pieces[i].option, option) != 0)
            asked->pieces[kept++] = asked->pieces[i];
        else
            piece_release(&asked->pieces[i]);
    }
    asked->count = kept;
}

/* NULL: no memory. */
static struct asked_piece *add_piece(struct asked *asked, const char *option, const char *text, size_t length)
{
    char *copy = strndup(text, length);

    if (!copy || array_reserve(&asked->pieces, &asked->capacity, asked->count + 1)) {
        free(copy);
        return NULL;
    }
    asked->pieces[asked->count] = (struct asked_piece){.option = option, .text = copy};
    return &asked->pieces[asked->count++];
}

/* ---------------------------------------------------------------------------------------- expressions */

/* Behind the character, the escape or the bracket expression at `at`. */
static const char *behind_atom(const char *at)
{
    if (*at == '\\' && at[1])
        return at + 2;
    if (*at != '[')
        return at + 1;
    at += at[1] == '^' ? 2 : 1;
    if (*at == ']')
        at++; /* the first one stands for itself */
    while (*at && *at != ']')
        at += at[0] == '[' && (at[1] == ':' || at[1] == '.' || at[1] == '=') && strstr(at + 2, "]") ? 2 : 1;
    return *at ? at + 1 : at;
}

/* The '|' in [at, end) that is in no group, or NULL. */
static const char *next_bar(const char *at, const char *end)
{
    int depth = 0;

    while (at < end) {
        if (*at == '|' && depth == 0)
            return at;
        depth += (*at == '(') - (*at == ')');
        at = behind_atom(at);
    }
    return NULL;
}

/* The end of the group that begins at `open`, or NULL. */
static const char *group_end(const char *open, const char *end)
{
    int depth = 0;

    for (const char *at = open; at < end; at = behind_atom(at)) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 0)
            return at;
    }
    return NULL;
}

/* The first group of [from, end) that offers alternatives and stands there once. */
static bool find_group(const char *from, const char *end, const char **ret_open, const char **ret_close)
{
    for (const char *at = from, *close; at < end; at = behind_atom(at)) {
        if (*at != '(' || !(close = group_end(at, end)))
            continue;
        if (next_bar(at + 1, close) && !strchr("*+?{", close[1])) {
            *ret_open = at;
            *ret_close = close;
            return true;
        }
        at = close;
    }
    return false;
}

/* A piece that is `text` in messages, and is met by what matches `expression`. */
static int add_expression(struct asked *asked, const char *option, const char *text, size_t length,
                          const char *expression)
{
    struct asked_piece *piece = add_piece(asked, option, text, length);

    if (!piece)
        return -ENOMEM;
    piece->has_regex = !regcomp(&piece->regex, expression, REG_EXTENDED | REG_NOSUB);
    piece->met = !piece->has_regex; /* an odd expression: its parts are not reported */
    return 0;
}

/* The alternatives of the group from `open` to `close`, each with what stands before and behind the group.
 * Messages omit the anchors around that. */
static int add_group(struct asked *asked, const char *option, const char *expression, const char *open,
                     const char *close)
{
    size_t anchored = *expression == '^';
    const char *bar;
    int r = 0;

    for (const char *part = open + 1; r == 0 && part <= close; part = bar + 1) {
        AUTO_FREE char *whole = NULL, *text = NULL;

        bar = next_bar(part, close);
        bar = bar ? bar : close;
        if (asprintf(&whole, "%.*s(%.*s)%s", (int)(open - expression), expression, (int)(bar - part), part,
                     close + 1) < 0)
            return whole = NULL, -ENOMEM;
        if (asprintf(&text, "%.*s%.*s%s", (int)((size_t)(open - expression) - anchored),
                     expression + anchored, (int)(bar - part), part, close + 1) < 0)
            return text = NULL, -ENOMEM;
        r = add_expression(asked, option, text, strcspn(text, "$"), whole);
    }
    return r;
}

/* What stands between two bars of the whole expression. */
static int add_part(struct asked *asked, const char *option, const char *text, size_t length)
{
    AUTO_FREE char *part = strndup(text, length);
    const char *open, *close;

    if (!part)
        return -ENOMEM;
    if (find_group(part, part + length, &open, &close))
        return add_group(asked, option, part, open, close);
    return add_expression(asked, option, part, length, part);
}

static size_t count_bars(const char *expression)
{
    size_t bars = 0;

    for (const char *at = expression; *at; at = behind_atom(at))
        bars += *at == '|';
    return bars;
}

int asked_expression(struct asked *asked, const char *option, const char *expression, struct error *err)
{
    const char *end = expression + strlen(expression), *bar;
    int r = 0;

    forget(asked, option);
    if (count_bars(expression) >= ALTERNATIVES_MAX)
        r = add_expression(asked, option, expression, strlen(expression), expression);
    else
        for (const char *part = expression; r == 0 && part <= end; part = bar + 1) {
            bar = next_bar(part, end);
            bar = bar ? bar : end;
            r = add_part(asked, option, part, (size_t)(bar - part));
        }
    return r ? error_no_memory(err) : 0;
}

/* ---------------------------------------------------------------------------------------- lists */

int asked_globs(struct asked *asked, const char *option, const char *list, struct error *err)
{
    forget(asked, option);
    for (const char *glob = list;; glob++) {
        size_t length = strcspn(glob, ",");

        if (!add_piece(asked, option, glob, length))
            return error_no_memory(err);
        glob += length;
        if (!*glob)
            return 0;
    }
}

int asked_filter(struct asked *asked, const char *option, const char *spec, struct filter_library *library,
                 struct error *err)
{
    const char *rest = *spec ? spec : NULL, *term;
    size_t length;

    forget(asked, option);
    while (filter_next_term(&rest, &term, &length)) {
        struct asked_piece *piece;

        if (*term == '!' || *term == '-' || (length == 3 && !strncmp(term, "plt", length)))
            continue;
        piece = add_piece(asked, option, term, length);
        if (!piece)
            return error_no_memory(err);
        if (filter_new_with(library, piece->text, NULL, &piece->filter, NULL))
            piece->met = true; /* a word that only a whole filter can have */
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------- text */

char *asked_text(const struct asked *asked, enum asked_kind kind, bool all)
{
    const char *option = NULL;
    AUTO_FREE char *text = NULL;

    for (size_t i = 0; i < asked->count; i++) {
        const struct asked_piece *piece = &asked->pieces[i];
        bool again = option && !strcmp(option, piece->option);
        char *longer = NULL;

        if ((piece->met && !all) || !strcmp(piece->option, "--images") != (kind == ASKED_IMAGES))
            continue;
        if (asprintf(&longer, "%s%s%s%s'%s'", text ? text : "",
                     again  ? ""
                     : text ? ", "
                            : "",
                     again ? ", " : piece->option, again ? "" : " ", piece->text) < 0)
            return NULL;
        free(text);
        text = longer;
        option = piece->option;
    }
    return take_pointer(text);
}
