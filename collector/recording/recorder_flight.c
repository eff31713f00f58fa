/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_flight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "collector/stream/call_watch.h"

#define LOOK_NS 250000000u /* between two looks at calls that are open */

static const struct image_function *function_of(const struct recorder *recorder, uint32_t number)
{
    struct function_place place;

    if (!image_table_place(recorder->images, number, &place))
        return NULL;
    return &place.image->functions[number - place.image->first_function];
}

static bool asks(void *context, uint32_t number, uint64_t *ret_slow_ns, bool *ret_calls)
{
    struct recorder *recorder = context;
    const struct image_function *function = function_of(recorder, number);

    return function && flight_watches(recorder->options.storage.flight, function, ret_slow_ns, ret_calls);
}

static void on_hit(void *context, const struct call_hit *hit)
{
    struct recorder *recorder = context;
    const struct image_function *function = function_of(recorder, hit->function);
    const char *name = function->demangled ? function->demangled : function->name;
    char why[256];

    if (hit->slow_ns)
        snprintf(why, sizeof(why), "slow: %.120s %s %.1f ms in thread %u.%u (tid %u)", name,
                 hit->is_open ? "has not returned for" : "took", (double)hit->slow_ns / 1e6, hit->process,
                 hit->thread, hit->tid);
    else
        snprintf(why, sizeof(why), "call: %.120s in thread %u.%u (tid %u)", name, hit->process, hit->thread,
                 hit->tid);
    flight_fire(recorder->options.storage.flight, why);
}

static bool is_named(const struct recorder *recorder, pid_t pid)
{
    for (size_t i = 0; i < recorder->named_count; i++)
        if (recorder->named[i] == pid)
            return true;
    return false;
}

void recorder_flight_ended(struct recorder *recorder, pid_t pid, int wait_status)
{
    flight_process_ended(recorder->options.storage.flight, pid, wait_status, is_named(recorder, pid));
}

int recorder_flight_open(struct recorder *recorder, struct stream_options *stream, struct error *err)
{
    const struct call_watch_options options = {.asks = asks, .hit = on_hit, .context = recorder};

    if (!flight_has_functions(recorder->options.storage.flight, false))
        return 0;
    recorder->call_watch = call_watch_new(&options);
    stream->watch = recorder->call_watch;
    return recorder->call_watch ? 0 : error_no_memory(err);
}

int recorder_flight_name(struct recorder *recorder, pid_t pid)
{
    if (array_reserve(&recorder->named, &recorder->named_capacity, recorder->named_count + 1))
        return -ENOMEM;
    recorder->named[recorder->named_count++] = pid;
    return 0;
}

void recorder_flight_release(struct recorder *recorder)
{
    call_watch_free(recorder->call_watch);
    free(recorder->named);
}

struct trace_writer_window recorder_window(const struct recorder *recorder)
{
    return trace_writer_window(recorder->writer);
}

void recorder_commit(struct recorder *recorder)
{
    recorder->commit_asked = 1;
}

int recorder_flight_round(struct recorder *recorder, uint64_t now_ns,
                          int (*flush)(void *context, struct error *err), struct error *err)
{
    struct flight *flight = recorder->options.storage.flight;
    int r = flight_listen(flight, err);

    if (recorder->commit_asked) {
        recorder->commit_asked = 0;
        flight_ask(flight, "asked for");
    }
    if (now_ns - recorder->watched_ns >= LOOK_NS) {
        recorder->watched_ns = now_ns;
        streams_check_watched(recorder->streams, now_ns);
    }
    /* When no process lives any more the recording ends, and then what it has is committed once. */
    if (r || !streams_live_processes(recorder->streams) || !flight_is_due(flight, now_ns))
        return r;
    r = flush(recorder, err);
    if (r == -EBUSY || r == -ENOSPC)
        return 0; /* the next round tries again */
    return r ? r : flight_commit(flight, now_ns, err);
}
