/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes and reads a trace store with libtracestore:
 *
 *     cc two_recorders.c -o two_recorders $(pkg-config --cflags --libs tracestore sqlite3)
 *     ./two_recorders example.db
 *
 * A child process records a run, "background", committing what it has every few milliseconds. Meanwhile the
 * parent records a run of its own, "foreground", into the same file, reads it event by event, asks a question
 * in SQL, and watches the other run grow.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <tracestore.h>
#include <unistd.h>

static struct error err;

static void check(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "two_recorders: %s\n", err.message);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ------------------------------------------------------------------------------------------ writing */

/* A run of one thread that calls two functions. */
struct recording {
    struct trace_writer *writer;
    struct thread_writer *thread;
    uint32_t outer, inner;
};

static void begin(struct tracestore *store, const char *name, struct recording *recording)
{
    const struct trace_run_description run = {.name = name, .command = name, .started_ns = now_ns()};
    const struct trace_image_description image = {.path = "/usr/bin/example", .build_id = "", .kind = "main"};
    const struct trace_process_description process = {
        .pid = getpid(), .rank = -1, .exe = "/usr/bin/example", .argv = name, .started_ns = now_ns()};
    struct trace_thread_description thread = {
        .tid = getpid(), .label = "0.0", .started_ns = now_ns(), .returns = TRACE_RETURNS_PROBED};
    const struct trace_function_description functions[] = {{.name = "outer", .address = 0x1000, .size = 16},
                                                           {.name = "inner", .address = 0x2000, .size = 16}};
    uint32_t ids[2];
    int64_t image_id;

    check(trace_writer_begin(store, &run, NULL, &recording->writer, &err));
    check(trace_writer_image(recording->writer, &image, &image_id, &err));
    check(trace_writer_functions(recording->writer, image_id, functions, 2, ids, &err));
    check(trace_writer_process(recording->writer, &process, &thread.process_id, &err));
    check(trace_writer_thread(recording->writer, &thread, &recording->thread, &err));
    recording->outer = ids[0];
    recording->inner = ids[1];
}

/* One call of outer, with three calls of inner in it: eight events. */
static void record_round(struct recording *recording)
{
    check(thread_writer_anchor(recording->thread, now_ns()));
    check(thread_writer_call(recording->thread, recording->outer));
    for (int i = 0; i < 3; i++) {
        check(thread_writer_call(recording->thread, recording->inner));
        check(thread_writer_return(recording->thread));
    }
    check(thread_writer_return(recording->thread));
}

static void end(struct recording *recording)
{
    check(trace_writer_end(recording->writer, now_ns(), 0, &err));
    trace_writer_free(recording->writer);
}

/* Records until `stop` can be read; tells `ready` when the first events are committed. */
static void record_background(const char *path, int ready, int stop)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    struct tracestore *store;
    struct recording recording;
    char byte = 0;

    check(tracestore_open(path, TRACESTORE_CREATE, &store, &err));
    begin(store, "background", &recording);
    for (int commits = 0; read(stop, &byte, 1) < 0; commits++) {
        for (int i = 0; i < 100; i++)
            record_round(&recording);
        check(trace_writer_flush(recording.writer, now_ns(), &err));
        if (!commits && write(ready, &byte, 1) != 1)
            break;
        nanosleep(&pause, NULL);
    }
    end(&recording);
    tracestore_free(store);
}

/* ------------------------------------------------------------------------------------------ reading */

static int64_t find_thread(struct tracestore *store, const char *run_name, int64_t *ret_run_id)
{
    struct tracestore_thread *threads;
    struct tracestore_run run;
    int64_t thread_id;
    size_t count;

    check(tracestore_find_run(store, run_name, &run, &err));
    check(tracestore_threads(store, run.run_id, &threads, &count, &err));
    if (count != 1)
        exit(1);
    thread_id = threads[0].thread_id;
    *ret_run_id = run.run_id;
    tracestore_threads_free(threads, count);
    tracestore_run_release(&run);
    return thread_id;
}

/* The events of a thread, each of them looked at: outer at depth 0, inner at depth 1. */
static uint64_t count_events(struct tracestore *store, int64_t thread_id)
{
    struct event_iter *iter;
    struct event event;
    uint64_t count = 0;
    int r;

    check(event_iter_open(store, thread_id, 0, &iter, &err));
    while ((r = event_iter_next(iter, &event, &err)) == 0) {
        uint64_t place = event.seq % 8;

        if (event.seq != count++ || event.depth != (place > 0 && place < 7)) {
            fprintf(stderr, "two_recorders: event %" PRIu64 " is not what was written\n", event.seq);
            exit(1);
        }
    }
    check(r);
    event_iter_free(iter);
    return count;
}

static void print_counts(struct tracestore *store, int64_t run_id)
{
    sqlite3_stmt *row;

    if (sqlite3_prepare_v2(tracestore_db(store),
                           "SELECT name, sum(calls) FROM call_counts WHERE run_id = ?1 GROUP BY name", -1,
                           &row, NULL) != SQLITE_OK)
        exit(1);
    sqlite3_bind_int64(row, 1, run_id);
    while (sqlite3_step(row) == SQLITE_ROW)
        printf("%s %lld\n", sqlite3_column_text(row, 0), (long long)sqlite3_column_int64(row, 1));
    sqlite3_finalize(row);
}

/* Reads again and again, while it is written, until it has grown three times. */
static void watch(struct tracestore *store, const char *run_name)
{
    int64_t run_id, thread_id = find_thread(store, run_name, &run_id);
    uint64_t seen = count_events(store, thread_id);

    for (int growths = 0; growths < 3;) {
        uint64_t count = count_events(store, thread_id);

        growths += count > seen;
        seen = count > seen ? count : seen;
    }
    printf("%s grows\n", run_name);
}

static void write_and_read(const char *path)
{
    struct tracestore *writing, *reading;
    struct recording recording;
    int64_t run_id;

    check(tracestore_open(path, TRACESTORE_CHANGE, &writing, &err));
    begin(writing, "foreground", &recording);
    for (int i = 0; i < 100000; i++)
        record_round(&recording);
    end(&recording);
    check(tracestore_open(path, TRACESTORE_READ, &reading, &err));
    printf("foreground %" PRIu64 " events\n",
           count_events(reading, find_thread(reading, "foreground", &run_id)));
    print_counts(reading, run_id);
    watch(reading, "background");
    tracestore_free(reading);
    tracestore_free(writing);
}

int main(int argc, char **argv)
{
    int ready[2], stop[2], status;
    char byte;
    pid_t child;

    if (argc != 2 || pipe(ready) || pipe(stop) || fcntl(stop[0], F_SETFL, O_NONBLOCK))
        return 2;
    child = fork();
    if (child < 0)
        return 1;
    if (!child) {
        close(stop[1]);
        record_background(argv[1], ready[1], stop[0]);
        return 0;
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        return 1;
    write_and_read(argv[1]);
    close(stop[1]);
    waitpid(child, &status, 0);
    return status != 0;
}
