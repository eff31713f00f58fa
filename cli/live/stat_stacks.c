/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/live/stat_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/common/output.h"

enum { LABELS_SHOWN = 8 };

struct ordered {
    const struct sample_set *set;
    size_t thread;
    size_t same; /* how many have its stack and state */
};

/* ------------------------------------------------------------------------------------------------- text */

/* Threads with equal stacks and states side by side; those of one stack in the order of the set. */
static int compare(const void *left, const void *right)
{
    const struct ordered *a = left, *b = right;
    const struct sample_thread *x = &a->set->threads[a->thread], *y = &b->set->threads[b->thread];
    size_t common = x->count < y->count ? x->count : y->count;
    int difference = 0;

    if (common)
        difference =
            memcmp(a->set->stacks + x->first, b->set->stacks + y->first, common * sizeof(*a->set->stacks));
    if (!difference)
        difference = (x->count > y->count) - (x->count < y->count);
    if (!difference)
        difference = (x->state > y->state) - (x->state < y->state);
    if (!difference)
        difference = (int)(x->flags > y->flags) - (int)(x->flags < y->flags);
    return difference;
}

static int compare_stably(const void *left, const void *right)
{
    const struct ordered *a = left, *b = right;
    int difference = compare(left, right);

    return difference ? difference : (a->thread > b->thread) - (a->thread < b->thread);
}

/* The first of each group counts it. The largest group first, and then in the order of the threads. */
static int compare_groups(const void *left, const void *right)
{
    const struct ordered *a = left, *b = right;

    if (a->same != b->same)
        return a->same < b->same ? 1 : -1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

static void print_place(FILE *out, const struct sample_set *set, const struct sample_place *place)
{
    const char *file = sample_text(set, place->file);
    const char *image =
        place->image == SAMPLE_NO_IMAGE ? "?" : sample_text(set, set->images[place->image].path);
    const char *base = path_file_name(image);

    if (place->function)
        text_print(out, "    %s", sample_text(set, place->function));
    else
        text_print(out, "    %s+0x%" PRIx64, base, place->address);
    if (place->file)
        text_print(out, " at %s:%u", path_file_name(file), place->line);
    else if (place->function)
        text_print(out, " in %s", base);
    text_print(out, "%s%s%s\n", place->flags & SAMPLE_INLINED ? " (inlined)" : "",
               place->flags & SAMPLE_SIGNAL ? " (signal handler)" : "",
               place->flags & SAMPLE_AFTER_GAP ? " (calls may be missing here)" : "");
}

static bool of_several(const struct sample_set *set)
{
    return set->thread_count && set->threads[0].process != set->threads[set->thread_count - 1].process;
}

static void print_group(FILE *out, const struct ordered *first, const struct ordered *members)
{
    const struct sample_set *set = first->set;
    const struct sample_thread *thread = &set->threads[first->thread];

    text_print(out, "%zu %s%s:", first->same, sample_is_goroutine(set, thread) ? "goroutine" : "thread",
               first->same == 1 ? "" : "s");
    for (size_t i = 0; i < first->same && i < LABELS_SHOWN; i++) {
        const struct sample_thread *member = &set->threads[members[i].thread];
        const char *name = sample_text(set, member->name);

        text_print(out, " %s%s%s%s", sample_text(set, member->label), *name ? " (" : "", name,
                   *name ? ")" : "");
        if (of_several(set))
            text_print(out, " pid %d", (int)member->process);
    }
    text_print(out, "%s  %s%s\n", first->same > LABELS_SHOWN ? " ..." : "", sample_text(set, thread->state),
               thread->flags & SAMPLE_MOVED ? ", moving" : "");
    for (size_t i = thread->count; i-- > 0;)
        print_place(out, set, sample_place_of(set, first->thread, i));
    if (!thread->count)
        fputs("    (unknown: the thread could not be paused)\n", out);
    else if (thread->flags & SAMPLE_INCOMPLETE)
        fputs("    (outer frames unknown)\n", out);
    fputc('\n', out);
}

int stat_stacks_text(FILE *out, const struct sample_set *set)
{
    size_t count = set->thread_count, groups = 0;
    AUTO_FREE struct ordered *members = calloc(count + 1, sizeof(*members));
    AUTO_FREE struct ordered *first = calloc(count + 1, sizeof(*first));
    AUTO_FREE size_t *at = calloc(count + 1, sizeof(*at)); /* by thread: where its group begins */

    if (!members || !first || !at)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        members[i] = (struct ordered){set, i, 1};
    qsort(members, count, sizeof(*members), compare_stably);
    for (size_t i = 0; i < count; i += first[groups - 1].same) {
        struct ordered *group = &first[groups++];

        *group = members[i];
        while (i + group->same < count && !compare(&members[i], &members[i + group->same]))
            group->same++;
        at[group->thread] = i;
    }
    qsort(first, groups, sizeof(*first), compare_groups);
    for (size_t i = 0; i < groups; i++)
        print_group(out, &first[i], &members[at[first[i].thread]]);
    return 0;
}

/* ------------------------------------------------------------------------------------------------- JSON */

static json_t *text_or_null(const struct sample_set *set, uint32_t number)
{
    return number ? cli_json_text(sample_text(set, number)) : json_null();
}

static json_t *address_or_null(uint64_t address)
{
    return address == SAMPLE_NO_ADDRESS ? json_null() : json_integer((json_int_t)address);
}

static json_t *place_json(const struct sample_set *set, const struct sample_place *place)
{
    json_t *image =
        place->image == SAMPLE_NO_IMAGE ? json_null() : text_or_null(set, set->images[place->image].path);

    return json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:b, s:b, s:b}", "function",
                     text_or_null(set, place->function), "file", text_or_null(set, place->file), "line",
                     (json_int_t)place->line, "image", image, "address", address_or_null(place->address),
                     "entry", address_or_null(place->entry), "inlined", place->flags & SAMPLE_INLINED ? 1 : 0,
                     "signal", place->flags & SAMPLE_SIGNAL ? 1 : 0, "gap",
                     place->flags & SAMPLE_AFTER_GAP ? 1 : 0);
}

json_t *stat_stacks_json(const struct sample_set *set)
{
    json_t *threads = json_array();

    for (size_t i = 0; i < set->thread_count; i++) {
        const struct sample_thread *thread = &set->threads[i];
        json_t *frames = json_array();

        for (size_t j = thread->count; j-- > 0;)
            json_array_append_new(frames, place_json(set, sample_place_of(set, i, j)));
        json_array_append_new(
            threads,
            json_pack("{s:o, s:i, s:i, s:o, s:o, s:o, s:b, s:b, s:o}", "thread",
                      text_or_null(set, thread->label), "pid", (int)thread->process, "tid", (int)thread->tid,
                      "rank", thread->rank == SAMPLE_NO_RANK ? json_null() : json_integer(thread->rank),
                      "name", text_or_null(set, thread->name), "state", text_or_null(set, thread->state),
                      "moved", thread->flags & SAMPLE_MOVED ? 1 : 0, "complete",
                      thread->flags & SAMPLE_INCOMPLETE ? 0 : 1, "frames", frames));
    }
    return threads;
}
