/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Folding must show less and say the same: a folded tree written out again is the tree that came in. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/call_tree.h"

struct printed {
    FILE *stream;
    size_t lines;
    bool folded; /* write "(a)" for a call and "3[...]" for a loop; else as it was */
};

static void begin(void *context, const struct call_tree_line *line)
{
    struct printed *printed = context;

    printed->lines++;
    if (line->kind == TREE_LOST)
        fprintf(printed->stream, "!%" PRIu64, line->count);
    else if (line->kind == TREE_LOOP)
        fprintf(printed->stream, "%" PRIu64 "[", line->count);
    else if (line->count > 1)
        fprintf(printed->stream, "%" PRIu64 "%c%s(", line->count, (char)line->function,
                line->assumed ? "?" : "");
    else
        fprintf(printed->stream, "%c%s(", (char)line->function, line->assumed ? "?" : "");
}

static void end(void *context, const struct call_tree_line *line)
{
    struct printed *printed = context;

    if (line->kind != TREE_LOST)
        putc(line->kind == TREE_LOOP ? ']' : ')', printed->stream);
}

/* The calls of `calls`: a letter calls, behind '?' it is assumed to be where it is, ')' returns, '!' is a
 * lost event. */
static char *fold(const char *calls, bool folded, size_t *ret_lines)
{
    static const struct call_tree_sink sink = {begin, end};
    struct printed printed = {.folded = folded};
    char *text;
    size_t size;
    struct call_tree *tree;

    printed.stream = open_memstream(&text, &size);
    tree = call_tree_new(&sink, &printed, folded);
    for (; *calls; calls++) {
        if (*calls == ')')
            cr_assert_eq(call_tree_return(tree), 0);
        else if (*calls == '!')
            cr_assert_eq(call_tree_lost(tree, 7, "test"), 0);
        else if (*calls == '?')
            cr_assert_eq(call_tree_call_assumed(tree, (uint32_t) * ++calls, CALL_RETURNED), 0);
        else
            cr_assert_eq(call_tree_call(tree, (uint32_t)*calls, CALL_RETURNED), 0);
    }
    call_tree_finish(tree);
    call_tree_free(tree);
    fclose(printed.stream);
    if (ret_lines)
        *ret_lines = printed.lines;
    return text;
}

static void check(const char *calls, const char *expected)
{
    char *text = fold(calls, true, NULL);

    cr_assert_str_eq(text, expected, "%s", calls);
    free(text);
}

/* Writes the folded form out: behind each number what follows it, so many times. */
static const char *write_out(const char *text, FILE *stream)
{
    unsigned long count = 1;

    while (*text && *text != ')' && *text != ']') {
        const char *body;
        char *digits_end;

        if (*text == '!') {
            fputs("!7", stream);
            text += 2;
            continue;
        }
        count = strtoul(text, &digits_end, 10);
        count = digits_end == text ? 1 : count;
        body = digits_end;
        for (unsigned long i = 0; i < count; i++) {
            if (*body != '[')
                fprintf(stream, "%c(", *body);
            text = write_out(body + (*body == '[' ? 1 : 2), stream);
            if (*body != '[')
                putc(')', stream);
        }
        text++;
    }
    return text;
}

static void check_same(const char *calls)
{
    char *folded = fold(calls, true, NULL), *raw = fold(calls, false, NULL), *out;
    size_t size;
    FILE *stream = open_memstream(&out, &size);

    write_out(folded, stream);
    fclose(stream);
    cr_assert_str_eq(out, raw);
    free(folded);
    free(raw);
    free(out);
}

Test(call_tree, folds)
{
    check("", "");
    check("a)", "a()");
    check("a)a)a)", "3a()");
    check("ab)b))ab)b))", "2a(2b())");
    check("ab))ac))", "a(b())a(c())");
    check("ma)b)a)b)a)b)", "m(3[a()b()])");
    check("ma)a)b)a)a)b)c)a)a)b)", "m(2[2a()b()]c()2a()b())");
    check("ma)!a)", "m(a()!7a())");
}

Test(call_tree, what_is_assumed_equals_only_what_is_assumed_too)
{
    check("m?a)?a)?a)", "m(3a?())");
    check("ma)?a)?a)a)", "m(a()2a?()a())");
    check("m?a)b)?a)b)a)b)", "m(2[a?()b()]a()b())");
    check("mab))a?b))", "m(a(b())a(b?()))");
}

Test(call_tree, lost_events_are_never_folded)
{
    check("m!!", "m(!7!7)");
    check("ma!)a!)", "m(a(!7)a(!7))");
}

static size_t random_calls(char *calls, size_t size, unsigned seed, int alphabet)
{
    size_t at = 0, depth = 0;

    srand(seed);
    while (at + depth + 2 < size) {
        if (rand() % 500 == 0)
            calls[at++] = '!';
        else if (depth && rand() % 100 < 52)
            calls[at++] = ')', depth--;
        else
            calls[at++] = (char)('a' + rand() % alphabet), depth++;
    }
    calls[at] = '\0';
    return at;
}

/* Longer than what is held back, so that all ways of printing are taken. */
Test(call_tree, random_trees_stay_the_same, .timeout = 60)
{
    static char calls[200000];

    for (unsigned seed = 1; seed <= 30; seed++) {
        random_calls(calls, seed % 3 ? sizeof(calls) : 3000, seed, 1 + (int)seed % 3);
        check_same(calls);
    }
}

Test(call_tree, repetition_is_short)
{
    size_t length = 6 * 50000, lines;
    char *calls = malloc(length + 8), *text;

    strcpy(calls, "m");
    for (size_t i = 0; i < 50000; i++)
        memcpy(calls + 1 + 6 * i, "ab))c)", 6);
    calls[1 + length] = '\0';
    text = fold(calls, true, &lines);
    cr_assert_str_eq(text, "m(50000[a(b())c()])");
    cr_assert_eq(lines, 5);
    free(text);
    free(calls);
}

/* A million open calls, none of which can be folded: bounded by what is held back and by the frames. */
Test(call_tree, deep)
{
    size_t depth = 1000000, lines;
    char *calls = malloc(depth + 1), *text;

    for (size_t i = 0; i < depth; i++)
        calls[i] = (char)('a' + i % 7);
    calls[depth] = '\0';
    text = fold(calls, true, &lines);
    cr_assert_eq(lines, depth);
    free(text);
    free(calls);
}
