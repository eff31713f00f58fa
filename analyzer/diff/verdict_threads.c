/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/verdict_threads.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MOST_RANGES 6

struct label {
    unsigned long process, thread;
    bool plain; /* "P.T": no goroutine, no other form */
};

static struct label parse_label(const char *text)
{
    struct label label = {0};
    int length = 0;

    label.plain = sscanf(text, "%lu.%lu%n", &label.process, &label.thread, &length) == 2 && !text[length];
    return label;
}

/* Whether `next` follows `label` in steps of processes or of threads. */
static bool follows(struct label label, struct label next, bool processes)
{
    if (!label.plain || !next.plain)
        return false;
    return processes ? next.process == label.process + 1 && next.thread == label.thread
                     : next.process == label.process && next.thread == label.thread + 1;
}

static const char *label_of(const struct run_comparison *comparison, size_t thread)
{
    return thread_diff_label(&comparison->threads[thread]);
}

/* How many of the threads, from the first on, are a range of at least three. */
static size_t range_length(const struct run_comparison *comparison, const size_t *threads, size_t count)
{
    for (int processes = 1; processes >= 0; processes--) {
        size_t length = 1;

        while (length < count && follows(parse_label(label_of(comparison, threads[length - 1])),
                                         parse_label(label_of(comparison, threads[length])), processes))
            length++;
        if (length >= 3)
            return length;
    }
    return 1;
}

static int compare_indices(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? -1 : x > y;
}

void diff_verdict_threads(FILE *out, const struct run_comparison *comparison, const size_t *threads,
                          size_t count)
{
    size_t *sorted = malloc((count + 1) * sizeof(*sorted)), printed = 0;

    if (!sorted)
        return;
    memcpy(sorted, threads, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_indices);
    for (size_t i = 0; i < count; printed++) {
        size_t length = range_length(comparison, sorted + i, count - i);

        if (printed == MOST_RANGES && i + length < count) {
            text_print(out, " and %zu more", count - i);
            break;
        }
        text_print(out, "%s%s", printed ? ", " : "", label_of(comparison, sorted[i]));
        if (length > 1)
            text_print(out, "-%s", label_of(comparison, sorted[i + length - 1]));
        i += length;
    }
    free(sorted);
}
