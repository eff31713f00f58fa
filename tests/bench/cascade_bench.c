/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: cascade_bench [EVENTS]     (10000000)
 *
 * What the graph of a run with many sync events takes: made-up processes of 8 threads each, which lock, wait,
 * send to each other, queue events and handle them; the same ones each time. Prints a JSON array with an
 * object for each shape:
 *
 * - shape: `threads`, 4 processes; `servers`, 16; `events`, 4, and every third step queues an event or
 * handles one;
 * - events, edges, chains;
 * - append, build, sections, queries: seconds of processor time for reading the events in, for the graph, for
 * the critical sections, and for a million questions whether one random event must be before another;
 * - peak_mib: of the process so far.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "analyzer/cascade/contention.h"
#include "base/clock.h"

enum { THREADS = 8, LOCKS = 64, QUERIES = 1000000, HANDLED = 1 };

struct shape {
    const char *name;
    unsigned processes;
    bool events;
};

struct bench {
    struct cascade_trace trace;
    const struct shape *shape;
    uint64_t seed, ns, queued, handled;
    uint64_t *positions; /* of the bytes of each channel */
};

static void fail(const char *what)
{
    fprintf(stderr, "cascade_bench: %s\n", what);
    exit(1);
}

static uint32_t below(struct bench *bench, uint32_t limit)
{
    bench->seed = bench->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(bench->seed >> 33) % limit;
}

static void say(struct bench *bench, uint32_t process, uint32_t thread, enum sync_event_kind kind,
                enum sync_phase phase, uint64_t object, uint64_t other, int64_t result)
{
    const struct process_event event = {.ns = ++bench->ns,
                                        .object = object,
                                        .other = other,
                                        .result = result,
                                        .position = bench->ns,
                                        .thread = thread,
                                        .site = 1 + below(bench, 100),
                                        .kind = (uint8_t)kind,
                                        .phase = (uint8_t)phase};

    if (cascade_trace_append(&bench->trace, process, &event) < 0)
        fail("no memory");
}

/* ------------------------------------------------------------------------------------------ what threads do
 */

/* Each process sends to the next one, over one connection: channel 2p + 1 at its end, 2p + 2 at the other. */
static void add_channels(struct bench *bench)
{
    unsigned count = bench->shape->processes * 2;

    bench->trace.channels = calloc(count, sizeof(*bench->trace.channels));
    bench->positions = calloc(count, sizeof(*bench->positions));
    if (!bench->trace.channels || !bench->positions)
        fail("no memory");
    bench->trace.channel_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct sync_channel *channel = &bench->trace.channels[i];
        char local[32], remote[32];

        snprintf(local, sizeof(local), "10.0.0.%u:%u", i / 2, 1000 + i % 2);
        snprintf(remote, sizeof(remote), "10.0.0.%u:%u", i / 2, 1001 - i % 2);
        channel->channel = i + 1;
        channel->kind = SYNC_CHANNEL_TCP;
        channel->local = strdup(local);
        channel->remote = strdup(remote);
        channel->name = strdup("");
    }
}

static void lock_and_write(struct bench *bench, uint32_t process, uint32_t thread)
{
    uint64_t lock = 0x1000 + below(bench, LOCKS) * 64;

    say(bench, process, thread, SYNC_MUTEX_LOCK, SYNC_BEGIN, lock, 0, 0);
    say(bench, process, thread, SYNC_WRITE, SYNC_BEGIN, 0, 0, 0);
    say(bench, process, thread, SYNC_WRITE, SYNC_END, 0, 0, 100);
    say(bench, process, thread, SYNC_MUTEX_UNLOCK, SYNC_AT, lock, 0, 0);
}

static void post_and_wait(struct bench *bench, uint32_t process, uint32_t thread)
{
    uint64_t semaphore = 0x9000 + below(bench, LOCKS) * 64;

    say(bench, process, thread, SYNC_SEM_POST, SYNC_AT, semaphore, 0, 0);
    say(bench, process, (thread + 1 + below(bench, THREADS - 1)) % THREADS, SYNC_SEM_WAIT, SYNC_END,
        semaphore, 0, 0);
}

static void send_and_receive(struct bench *bench, uint32_t process, uint32_t thread)
{
    uint32_t next = (process + 1) % bench->shape->processes;
    uint64_t *position = &bench->positions[process * 2];

    say(bench, process, thread, SYNC_SEND, SYNC_BEGIN, process * 2 + 1, 0, 0);
    say(bench, process, thread, SYNC_SEND, SYNC_END, process * 2 + 1, *position, 10);
    say(bench, next, below(bench, THREADS), SYNC_RECEIVE, SYNC_END, process * 2 + 2, *position, 10);
    *position += 10;
}

/* Thread 0 of process 0 handles what all others queue. */
static void queue_and_handle(struct bench *bench, uint32_t thread)
{
    say(bench, 0, 1 + thread % (THREADS - 1), SYNC_ENQUEUE, SYNC_AT, 0x100000 + bench->queued++ * 16,
        HANDLED + 1, 0);
    if (bench->queued - bench->handled < 1 + below(bench, 20))
        return;
    say(bench, 0, 0, SYNC_HANDLER, SYNC_BEGIN, 0x100000 + bench->handled++ * 16, HANDLED, 0);
    say(bench, 0, 0, SYNC_MUTEX_LOCK, SYNC_BEGIN, 0x1000, 0, 0);
    say(bench, 0, 0, SYNC_MUTEX_UNLOCK, SYNC_AT, 0x1000, 0, 0);
    say(bench, 0, 0, SYNC_HANDLER, SYNC_END, 0, HANDLED, 0);
}

static void make_events(struct bench *bench, size_t events)
{
    while (bench->trace.count < events) {
        uint32_t process = below(bench, bench->shape->processes), thread = below(bench, THREADS);

        switch (below(bench, 6)) {
        case 0:
            post_and_wait(bench, process, thread);
            break;
        case 1:
            send_and_receive(bench, process, thread);
            break;
        case 2:
        case 3:
            if (bench->shape->events) {
                queue_and_handle(bench, thread);
                break;
            }
            /* fallthrough */
        default:
            lock_and_write(bench, process, bench->shape->events && !process && !thread ? 1 : thread);
        }
    }
}

/* ------------------------------------------------------------------------------------------ measuring */

static double seconds_since(uint64_t *begin)
{
    uint64_t now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    double seconds = (double)(now - *begin) / 1e9;

    *begin = now;
    return seconds;
}

static uint64_t ask(struct bench *bench, const struct causality *causality)
{
    uint64_t before = 0;

    for (int i = 0; i < QUERIES; i++)
        before += event_before(causality, below(bench, (uint32_t)bench->trace.count),
                               below(bench, (uint32_t)bench->trace.count));
    return before;
}

static void measure(const struct shape *shape, size_t events)
{
    struct bench bench = {.shape = shape, .seed = 1};
    struct contention contention;
    struct causality causality;
    struct handlers handlers;
    double append, build, sections, queries;
    uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    struct rusage usage;
    uint64_t before;
    uint32_t number;
    size_t edges;

    for (unsigned i = 0; i < shape->processes; i++)
        if (cascade_trace_process(
                &bench.trace, &(struct trace_process){.label = "0", .exe = "", .pid = i + 1}, &number) < 0)
            fail("no memory");
    add_channels(&bench);
    make_events(&bench, events);
    append = seconds_since(&begin);
    if (handlers_find(&bench.trace, &handlers) < 0 || causality_find(&bench.trace, &handlers, &causality) < 0)
        fail("the graph cannot be built");
    build = seconds_since(&begin);
    if (contention_find(&bench.trace, &handlers, &contention) < 0)
        fail("no memory");
    sections = seconds_since(&begin);
    before = ask(&bench, &causality);
    queries = seconds_since(&begin);
    hb_edges(causality.graph, &edges);
    getrusage(RUSAGE_SELF, &usage);
    printf(
        "{\"shape\": \"%s\", \"events\": %zu, \"edges\": %zu, \"chains\": %u, \"append\": %.2f, \"build\": "
        "%.2f, "
        "\"sections\": %.2f, \"queries\": %.2f, \"before_percent\": %.1f, \"peak_mib\": %ld}",
        shape->name, bench.trace.count, edges, hb_chain_count(causality.graph), append, build, sections,
        queries, 100.0 * (double)before / QUERIES, usage.ru_maxrss / 1024);
    contention_release(&contention);
    causality_release(&causality);
    handlers_release(&handlers);
    cascade_trace_release(&bench.trace);
    free(bench.positions);
}

int main(int argc, char **argv)
{
    static const struct shape shapes[] = {{"threads", 4, false}, {"servers", 16, false}, {"events", 4, true}};
    size_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        fputs(i ? ",\n " : "[", stdout);
        measure(&shapes[i], events);
        fflush(stdout);
    }
    puts("]");
    return 0;
}
