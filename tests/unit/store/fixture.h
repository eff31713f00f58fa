/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of store/ share: a store of one's own, generated streams, and reading them back. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/api/tracestore.h"
#include "store/db/sqlite.h"

/* A pseudo-random sequence that is the same on every machine. */
struct generator {
    uint64_t state;
};
uint64_t generator_next(struct generator *generator);
/* 0..limit-1 */
uint32_t generator_below(struct generator *generator, uint32_t limit);

/* A stream: function ids for calls, 0 for returns, TRACESTORE_LOST_FUNCTION for losses. Returns never
 * outnumber calls. */
struct stream {
    uint32_t *events;
    size_t count, capacity;
};
void stream_add(struct stream *stream, uint32_t event);
void stream_release(struct stream *stream);

enum stream_kind {
    STREAM_RANDOM,
    STREAM_LOOPS,
    STREAM_RECURSION,
    STREAM_DEEP,
    STREAM_MANY_FUNCTIONS,
    STREAM_LOSSES
};
#define STREAM_KINDS 6
void stream_generate(struct stream *stream, enum stream_kind kind, uint64_t seed, size_t count);

/* A store in a folder of its own, with a run of one process. */
struct fixture {
    char folder[64], path[96];
    struct tracestore *store;
    struct trace_writer *writer;
    int64_t process_id, image_id;
};
void fixture_open(struct fixture *fixture, const struct trace_writer_options *options);
/* Frees the writer, ended or not, and the store, and removes the folder. */
void fixture_close(struct fixture *fixture);
struct thread_writer *fixture_thread(struct fixture *fixture, const char *label, enum trace_returns returns);
uint32_t fixture_function(struct fixture *fixture, const char *name);
/* In a new store: functions with the ids 1 to `count`. */
void fixture_functions(struct fixture *fixture, uint32_t count);

void write_events(struct thread_writer *thread, const struct stream *stream, size_t from, size_t to);

/* Reads the thread and expects the first `count` events of the stream, right in every field, and then the
 * end. */
void expect_stream(struct tracestore *store, int64_t thread_id, const struct stream *stream, size_t count);

/* The first column of the first row; -1 for NULL or no row. */
int64_t ask(struct sqlite3 *db, const char *sql);
void run_sql(struct sqlite3 *db, const char *sql);

#endif
