/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: inline_records_bench STORE [CALLS]
 *
 * What the collector spends on a call from inline probes: the calls of the store's first thread, as records with
 * stack pointers made up from their nesting (one size of frame a caller), go through collector/stream into a
 * store that is thrown away, once as they are recorded and once without the history of stretches. Prints CPU
 * time a call, and how many came in stretches. The reader of the chunks is not part of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "bpf/wire.h"
#include "collector/stream/streams_private.h"
#include "tests/unit/collector/stream/fake_images.h"

#define TID 70
#define CHUNK 4000 /* records that are read at once */

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "inline_records_bench: %s\n", what);
    exit(1);
}

struct made {
    struct agent_record *records;
    size_t count, capacity;
};

static struct made make_records(const char *path, size_t most)
{
    struct tracestore_thread *threads;
    struct event_iter *iter;
    struct made made = {0};
    struct tracestore *store;
    struct {
        uint32_t function;
        uint64_t sp;
    } *open = calloc(1 << 20, sizeof(*open));
    struct error err = {0};
    struct event event;
    size_t count, depth = 0;

    check(open && tracestore_open(path, 0, &store, &err) == 0, "cannot open the store");
    check(tracestore_threads(store, 1, &threads, &count, &err) == 0 && count, "it has no run 1");
    check(event_iter_open(store, threads[0].thread_id, 0, &iter, &err) == 0, "cannot read it");
    open[0].sp = 0x7ffe00000000;
    while (made.count < most && event_iter_next(iter, &event, &err) == 0) {
        if (event.kind == EVENT_RETURN)
            depth -= depth > 0;
        if (event.kind != EVENT_CALL || depth + 1 >= 1 << 20)
            continue;
        check(array_reserve(&made.records, &made.capacity, made.count + 1) == 0, "no memory");
        open[depth + 1].function = event.function;
        open[depth + 1].sp = open[depth].sp - 32 - (open[depth].function * 2654435761u >> 27) * 16;
        made.records[made.count++] = (struct agent_record){
            .function = event.function + 1,
            .return_address = 0x1000 + 16 * open[depth].function + event.function % 16 + 1,
            .sp = open[++depth].sp,
        };
    }
    event_iter_free(iter);
    tracestore_threads_free(threads, count);
    tracestore_free(store);
    free(open);
    return made;
}

static struct streams *begin(struct tracestore *store, struct trace_writer **ret_writer)
{
    static struct plan plan;
    static struct traced_image image = {
        .returns = TRACE_RETURNS_INFERRED, .plan = &plan, .entry_function = 0, .main_function = 1 << 30};
    const struct stream_options options = {.times = STREAM_TIMES_ANCHOR};
    const struct trace_run_description run = {
        .name = "b", .command = "bench", .options = "", .started_ns = 1};
    const struct stream_code code = {.start = 0x1000, .end = 0x101000, .image = &image};
    struct stream_program program = {
        .image = &image, .exe = strdup("/bin/test"), .argv = strdup("test"), .rank = -1};
    struct streams *streams;
    struct error err = {0};
    pid_t pid = TID;

    check(trace_writer_begin(store, &run, NULL, ret_writer, &err) == 0, "cannot write");
    check(streams_new(&options, NULL, *ret_writer, &streams, &err) == 0, "no streams");
    check(streams_add_process(streams, TID, &pid, 1, &err) == 0, "no process");
    check(streams_set_program(streams, TID, &program, &err) == 0, "no program");
    check(streams_set_code(streams, TID, &code, 1, &err) == 0, "no code");
    return streams;
}

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void measure(const struct made *made, bool stretches)
{
    char path[] = "/tmp/inline_records_XXXXXX";
    struct tracestore *store;
    struct trace_writer *writer;
    struct streams *streams;
    struct traced_thread *thread;
    struct error err = {0};
    uint64_t served = 0, before;
    double start, spent;
    int fd = mkstemp(path);

    check(fd >= 0 && close(fd) == 0 && unlink(path) == 0, "no file");
    check(tracestore_open(path, TRACESTORE_CREATE, &store, &err) == 0, "no store");
    streams = begin(store, &writer);
    thread = registry_thread(&streams->registry, TID);
    thread->history.rest = stretches ? 0 : UINT32_MAX;
    start = cpu_ns();
    for (size_t i = 0; i < made->count; i += CHUNK) {
        size_t piece = made->count - i < CHUNK ? made->count - i : CHUNK;

        before = thread->history.served;
        check(streams_inline_calls(streams, TID, &made->records[i], piece, 1000000 + 100 * i) == 0,
              "a record is refused");
        served += thread->history.served > before ? thread->history.served - before : 0;
    }
    spent = cpu_ns() - start;
    printf("%-20s %6.2f ns a call, %5.1f %% of %zu calls in stretches\n",
           stretches ? "stretches" : "one by one", spent / (double)made->count,
           100.0 * (double)served / (double)made->count, made->count);
    streams_free(streams);
    check(trace_writer_end(writer, 1, 0, &err) == 0, "cannot end");
    trace_writer_free(writer);
    tracestore_free(store);
    unlink(path);
}

int main(int count, char **arguments)
{
    struct made made;

    check(count >= 2, "usage: inline_records_bench STORE [CALLS]");
    made = make_records(arguments[1], count > 2 ? strtoull(arguments[2], NULL, 10) : 20000000);
    check(made.count > 0, "the store has no calls");
    for (int round = 0; round < 3; round++) {
        measure(&made, false);
        measure(&made, true);
    }
    free(made.records);
    return 0;
}
