/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "collector/stream/goroutine_state.h"

enum {
    STREAMS_MAX = 16384, /* goroutines of a process with a stream of their own */
    NAME_MAX_BYTES = 400,
};
#define ANCHOR_NS 1000000u

void recorded_goroutine_forget(struct goroutine_streams *goroutines, struct goroutine *goroutine)
{
    HASH_DEL(goroutines->alive, goroutine);
    free(goroutine->name);
    free(goroutine);
}

struct goroutine *recorded_goroutine_find(struct goroutine_streams *goroutines, uint64_t id)
{
    struct goroutine *goroutine;

    HASH_FIND(hh, goroutines->alive, &id, sizeof(id), goroutine);
    return goroutine;
}

/* The goroutine, known from now on; NULL: no memory. */
struct goroutine *recorded_goroutine_meet(struct goroutine_streams *goroutines, uint64_t id)
{
    struct goroutine *goroutine = recorded_goroutine_find(goroutines, id);

    if (goroutine)
        return goroutine;
    goroutine = calloc(1, sizeof(*goroutine));
    if (!goroutine)
        return NULL;
    goroutine->id = id;
    HASH_ADD(hh, goroutines->alive, id, sizeof(goroutine->id), goroutine);
    return goroutine;
}

static int cannot_append(struct translation *at, int code)
{
    return code ? error_set(&at->streams->error, code, NULL, "cannot append an event of a goroutine") : 0;
}

static int anchor(struct translation *at, struct goroutine *goroutine)
{
    if (at->streams->options.times == STREAM_TIMES_NONE ||
        at->event.ns - goroutine->last_anchor_ns < ANCHOR_NS)
        return 0;
    goroutine->last_anchor_ns = at->event.ns;
    return cannot_append(at, thread_writer_anchor(goroutine->writer, at->event.ns));
}

static int write_call(struct translation *at, struct goroutine *goroutine, uint32_t function_id)
{
    int r = anchor(at, goroutine);

    return r ? r : cannot_append(at, thread_writer_call(goroutine->writer, function_id));
}

static int write_return(struct translation *at, struct goroutine *goroutine)
{
    goroutine->open = false;
    return cannot_append(at, thread_writer_return(goroutine->writer));
}

/* Gives a goroutine its stream, which begins with its function. */
int goroutine_begin_stream(struct translation *at, struct goroutine *goroutine, uint32_t function_id)
{
    char label[48];
    const struct trace_thread_description description = {
        .process_id = at->process->process_id,
        .tid = (int32_t)at->record->header.tid,
        .label = label,
        .name = goroutine->name,
        .started_ns = at->event.ns,
        .returns = TRACE_RETURNS_INFERRED,
    };
    int r;

    if (at->goroutines->stream_count >= STREAMS_MAX) {
        r = at->goroutines->told_cap
                ? 0
                : trace_writer_loss(at->streams->writer, at->event.ns, 0,
                                    "too many goroutines for streams of their own", &at->streams->error);
        at->goroutines->told_cap = true;
        return r;
    }
    at->goroutines->stream_count++;
    snprintf(label, sizeof(label), "%u.g%llu", at->process->number, (unsigned long long)goroutine->id);
    r = trace_writer_thread(at->streams->writer, &description, &goroutine->writer, &at->streams->error);
    return r || !function_id ? r : write_call(at, goroutine, function_id);
}

/* "main.worker (main.go:12 < main.go:40)": a function, and the creation sites up to the main goroutine, which
 * the runtime has created. */
int goroutine_name(struct goroutine *goroutine, const struct goroutine *parent, const char *function,
                   const struct go_source_place *place)
{
    const char *above = parent && parent->name ? strchr(parent->name, '(') : NULL;
    const char *rest = above ? above + 1 : ")";
    const char *between = above && above[1] != ')' ? " < " : "";

    free(goroutine->name);
    goroutine->name = parent ? NULL : strdup(function);
    if (!parent)
        return goroutine->name ? 0 : -ENOMEM;
    if (asprintf(&goroutine->name, "%s (%s%s%.*s", function, place->text, between, NAME_MAX_BYTES, rest) >= 0)
        return 0;
    goroutine->name = NULL;
    return -ENOMEM;
}

int goroutine_operation(struct translation *at, struct goroutine *goroutine, bool inner)
{
    int r = 0;

    goroutine->blocked = false;
    if (!goroutine->writer || inner || !at->event.site)
        return 0;
    if (goroutine->open)
        r = write_return(at, goroutine);
    if (!r)
        r = write_call(at, goroutine, at->event.site);
    goroutine->open = !r;
    return r;
}

/* `ended`: it has returned from its function; otherwise it is left where it stands. */
int goroutine_end_stream(struct translation *at, struct goroutine *goroutine, bool ended)
{
    int r = 0;

    if (!goroutine->writer)
        return 0;
    if (goroutine->open && !goroutine->blocked)
        r = write_return(at, goroutine);
    if (!r && ended)
        r = cannot_append(at, thread_writer_return(goroutine->writer));
    if (r == -EINVAL) /* its beginning was not seen */
        r = 0;
    if (!r && !ended)
        r = thread_writer_settled(goroutine->writer, &at->streams->error);
    return r ? r : thread_writer_end(goroutine->writer, at->event.ns, &at->streams->error);
}
