/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/call_watch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "collector/stream/streams_private.h"

#define PATIENCE_NS 1000000000u

struct watched_call {
    size_t index; /* on the thread's stack */
    uint32_t function;
    bool told;
    uint64_t ns, slow_ns;
};

/* A function; what it is asked for is looked up when it is called first. */
struct watched_function {
    uint64_t slow_ns;
    bool is_known, calls;
};

struct call_watch {
    struct call_watch_options options;
    struct watched_function *functions;
    size_t count, capacity;
};

struct call_watch *call_watch_new(const struct call_watch_options *options)
{
    struct call_watch *watch = calloc(1, sizeof(*watch));

    if (watch)
        watch->options = *options;
    return watch;
}

void call_watch_free(struct call_watch *watch)
{
    if (!watch)
        return;
    free(watch->functions);
    free(watch);
}

void watched_calls_release(struct watched_calls *watched)
{
    free(watched->calls);
    *watched = (struct watched_calls){0};
}

/* NULL: no memory. */
static const struct watched_function *find(struct call_watch *watch, uint32_t function)
{
    struct watched_function *found;

    if (function >= watch->count) {
        if (array_reserve(&watch->functions, &watch->capacity, (size_t)function + 1))
            return NULL;
        while (watch->count <= function)
            watch->functions[watch->count++] = (struct watched_function){0};
    }
    found = &watch->functions[function];
    if (!found->is_known)
        watch->options.asks(watch->options.context, function, &found->slow_ns, &found->calls);
    found->is_known = true;
    return found;
}

static struct call_hit hit_of(const struct traced_thread *thread, uint32_t function)
{
    return (struct call_hit){.process = thread->process->number,
                             .thread = thread->number,
                             .tid = thread->tid,
                             .function = function};
}

/* The call has lasted until `ns` at least. */
static void judge(struct call_watch *watch, const struct traced_thread *thread, struct watched_call *call,
                  uint64_t ns, uint64_t patience_ns, bool is_open)
{
    uint64_t lasted = ns > call->ns && call->ns ? ns - call->ns : 0;
    struct call_hit hit = hit_of(thread, call->function);

    if (call->told || lasted < call->slow_ns + patience_ns)
        return;
    call->told = true;
    hit.slow_ns = lasted;
    hit.is_open = is_open;
    watch->options.hit(watch->options.context, &hit);
}

/* Takes the calls off that are not on the stack any more: of the `depth` outermost ones that are left, and of
 * one that has just returned at `returned_ns` (0: none has). */
static void close_calls(struct call_watch *watch, struct traced_thread *thread, size_t depth,
                        uint64_t returned_ns)
{
    struct watched_calls *watched = &thread->watched;

    while (watched->count && watched->calls[watched->count - 1].index >= depth) {
        struct watched_call *call = &watched->calls[--watched->count];
        bool is_exact = returned_ns && call->index == depth;

        judge(watch, thread, call, is_exact ? returned_ns : watched->last_ns, 0, false);
    }
}

static int open_call(struct traced_thread *thread, uint32_t function, uint64_t slow_ns)
{
    struct watched_calls *watched = &thread->watched;

    if (array_reserve(&watched->calls, &watched->capacity, watched->count + 1))
        return -ENOMEM;
    watched->calls[watched->count++] = (struct watched_call){
        .index = thread->stack.depth - 1, .function = function, .ns = watched->last_ns, .slow_ns = slow_ns};
    return 0;
}

int call_watch_call(struct call_watch *watch, struct traced_thread *thread, const struct call_evidence *call,
                    uint64_t ns)
{
    const struct watched_function *function = find(watch, call->function);
    const struct call_hit hit = hit_of(thread, call->function);

    if (!function)
        return -ENOMEM;
    if (thread->stack.depth)
        close_calls(watch, thread, thread->stack.depth - 1, 0);
    if (ns)
        thread->watched.last_ns = ns;
    if (function->calls)
        watch->options.hit(watch->options.context, &hit);
    return function->slow_ns && thread->stack.depth ? open_call(thread, call->function, function->slow_ns)
                                                    : 0;
}

void call_watch_return(struct call_watch *watch, struct traced_thread *thread, uint64_t ns)
{
    close_calls(watch, thread, thread->stack.depth, ns ? ns : thread->watched.last_ns);
    if (ns)
        thread->watched.last_ns = ns;
}

void call_watch_check(struct call_watch *watch, struct traced_thread *thread, uint64_t ns,
                      uint64_t patience_ns)
{
    struct watched_calls *watched = &thread->watched;

    for (size_t i = 0; i < watched->count; i++) {
        struct watched_call *call = &watched->calls[i];

        if (call->index < thread->stack.depth &&
            call_frame_return_is_seen(&thread->stack.frames[call->index]))
            judge(watch, thread, call, ns, patience_ns, true);
    }
}

void streams_check_watched(struct streams *streams, uint64_t ns)
{
    struct traced_thread *thread = NULL, *next = NULL;

    if (!streams->options.watch)
        return;
    HASH_ITER (hh, streams->registry.threads, thread, next)
        if (thread->watched.count)
            call_watch_check(streams->options.watch, thread, ns, PATIENCE_NS);
}
