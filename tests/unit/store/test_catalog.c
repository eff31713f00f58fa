/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "fixture.h"

static void end_run(struct fixture *fixture)
{
    struct error err = {0};

    cr_assert_eq(trace_writer_end(fixture->writer, 99000, 0, &err), 0, "%s", err.message);
    trace_writer_free(fixture->writer);
    fixture->writer = NULL;
}

static void begin_run(struct fixture *fixture, const char *name, const char *command)
{
    const struct trace_run_description run = {.name = name, .command = command, .started_ns = 2000};
    const struct trace_process_description process = {.pid = 5, .rank = 2};

    cr_assert_eq(trace_writer_begin(fixture->store, &run, NULL, &fixture->writer, NULL), 0);
    cr_assert_eq(trace_writer_process(fixture->writer, &process, &fixture->process_id, NULL), 0);
}

/* The number of the run that `name` means; the negative errno if there is none. */
static int64_t find(struct fixture *fixture, const char *name)
{
    struct tracestore_run run;
    struct error err = {0};
    int code = tracestore_find_run(fixture->store, name, &run, &err);
    int64_t id = code ? code : run.run_id;

    if (code)
        cr_assert_not_null(strstr(err.message, "tracectl runs"), "%s", err.message);
    else
        tracestore_run_release(&run);
    return id;
}

Test(catalog, runs_are_found_by_every_spelling)
{
    struct fixture fixture;

    fixture_open(&fixture, NULL); /* run 1, "test" */
    end_run(&fixture);
    begin_run(&fixture, "test", "a b");
    end_run(&fixture);
    begin_run(&fixture, NULL, "/usr/bin/make -j 4");
    end_run(&fixture);
    begin_run(&fixture, "42", "");
    end_run(&fixture);
    cr_assert_eq(find(&fixture, "1"), 1);
    cr_assert_eq(find(&fixture, "test"), 2, "the newest of that name");
    cr_assert_eq(find(&fixture, "make-3"), 3);
    cr_assert_eq(find(&fixture, "latest"), 4);
    cr_assert_eq(find(&fixture, "latest~0"), 4);
    cr_assert_eq(find(&fixture, "latest~3"), 1);
    cr_assert_eq(find(&fixture, "42"), 4, "a name that looks like a number");
    cr_assert_eq(find(&fixture, "latest~4"), -ENOENT);
    cr_assert_eq(find(&fixture, "latest~"), -ENOENT);
    cr_assert_eq(find(&fixture, "latest~x"), -ENOENT);
    cr_assert_eq(find(&fixture, "5"), -ENOENT);
    cr_assert_eq(find(&fixture, ""), -ENOENT);
    cr_assert_eq(find(&fixture, "99999999999999999999999"), -ENOENT);
    fixture_close(&fixture);
}

static void check_totals(struct fixture *fixture, uint64_t segments, bool complete)
{
    struct tracestore_totals totals;
    struct tracestore_thread *threads;
    struct tracestore_function *functions;
    size_t count;

    cr_assert_eq(tracestore_run_totals(fixture->store, 1, &totals, NULL), 0);
    cr_assert_eq(totals.events, 9);
    cr_assert_eq(totals.calls, 5);
    cr_assert_eq(totals.returns, 3);
    cr_assert_eq(totals.lost, 17);
    cr_assert_eq(totals.threads, 2);
    cr_assert_eq(totals.functions, 3);
    cr_assert_eq(totals.muted_functions, 1);
    cr_assert_eq(totals.segments, segments);
    cr_assert_eq(totals.raw_bytes, 18);
    cr_assert_eq(totals.loss_unknown, !complete);
    cr_assert(!totals.complete, "calls were lost");
    cr_assert_gt(totals.stored_bytes, 9);
    cr_assert_gt(totals.catalog_bytes, 100);

    cr_assert_eq(tracestore_threads(fixture->store, 1, &threads, &count, NULL), 0);
    cr_assert_eq(count, 2, "the thread without events is left out");
    cr_assert_str_eq(threads[0].label, "0.2");
    cr_assert_str_eq(threads[1].label, "0.10");
    cr_assert_eq(threads[0].events, 2);
    cr_assert_eq(threads[1].events, 7);
    cr_assert_eq(threads[0].returns, TRACE_RETURNS_NONE);
    cr_assert_eq(threads[1].tid, 78);
    tracestore_threads_free(threads, count);

    cr_assert_eq(tracestore_functions(fixture->store, 1, &functions, &count, NULL), 0);
    cr_assert_eq(count, 3);
    cr_assert_str_eq(functions[0].name, "alpha");
    cr_assert_str_eq(functions[2].demangled, "gamma");
    cr_assert_str_eq(functions[1].image, "/bin/prog");
    cr_assert_str_eq(functions[1].file, "");
    tracestore_functions_free(functions, count);
}

Test(catalog, totals_are_the_same_in_journal_and_segments)
{
    struct fixture fixture;
    struct thread_writer *ten, *two;
    uint32_t alpha, beta, gamma;

    fixture_open(&fixture, NULL);
    alpha = fixture_function(&fixture, "alpha");
    beta = fixture_function(&fixture, "beta");
    gamma = fixture_function(&fixture, "gamma");
    fixture_function(&fixture, "never_called");
    cr_assert_eq(fixture_function(&fixture, "beta"), beta, "the same function again");
    ten = fixture_thread(&fixture, "0.10", TRACE_RETURNS_PROBED);
    two = fixture_thread(&fixture, "0.2", TRACE_RETURNS_NONE);
    fixture_thread(&fixture, "0.1", TRACE_RETURNS_PROBED);
    thread_writer_call(ten, alpha);
    thread_writer_call(ten, beta);
    thread_writer_return(ten);
    thread_writer_lost(ten, 3000, 17, "ring full", NULL);
    thread_writer_call(ten, beta);
    thread_writer_return(ten);
    thread_writer_return(ten);
    thread_writer_call(two, gamma);
    thread_writer_call(two, gamma);
    trace_writer_blind(fixture.writer, beta, 1, 2, "governor", 1, NULL);
    cr_assert_eq(trace_writer_flush(fixture.writer, 4000, NULL), 0);
    check_totals(&fixture, 0, false);
    cr_assert_eq(trace_writer_end(fixture.writer, 5000, 0, NULL), 0);
    check_totals(&fixture, 2, true);
    fixture_close(&fixture);
}

Test(catalog, images_and_functions_are_shared_by_runs)
{
    struct fixture fixture;
    struct trace_image_description image = {.path = "/bin/prog", .build_id = "ab", .kind = "main"};
    const struct trace_function_description functions[] = {{.name = "a", .address = 16},
                                                           {.name = "b", .address = 16}};
    uint32_t ids[2], again[2];
    int64_t image_id;

    fixture_open(&fixture, NULL);
    cr_assert_eq(trace_writer_functions(fixture.writer, fixture.image_id, functions, 2, ids, NULL), 0);
    cr_assert_neq(ids[0], ids[1]);
    end_run(&fixture);
    begin_run(&fixture, "second", "x");
    cr_assert_eq(trace_writer_image(fixture.writer, &image, &image_id, NULL), 0);
    cr_assert_eq(image_id, fixture.image_id);
    cr_assert_eq(trace_writer_functions(fixture.writer, image_id, functions, 2, again, NULL), 0);
    cr_assert_arr_eq(ids, again, sizeof(ids));
    image.build_id = "cd";
    cr_assert_eq(trace_writer_image(fixture.writer, &image, &image_id, NULL), 0);
    cr_assert_neq(image_id, fixture.image_id, "another build of the same file");
    fixture_close(&fixture);
}

/* Two runs may have asked for a function by two of its names: it is compared by the same name, and shown by
 * another. */
Test(catalog, functions_have_other_names)
{
    static char *const aliases[] = {"_IO_puts", "put_string", NULL};
    struct trace_function_description puts = {.name = "puts", .address = 16, .aliases = aliases};
    const struct trace_function_description plain = {.name = "plain", .address = 32};
    struct tracestore_function *functions;
    struct fixture fixture;
    struct thread_writer *thread;
    uint32_t id, again, asked, other;
    size_t count;

    fixture_open(&fixture, NULL);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    cr_assert_eq(trace_writer_function(fixture.writer, fixture.image_id, &puts, &id, NULL), 0);
    cr_assert_eq(trace_writer_function(fixture.writer, fixture.image_id, &puts, &again, NULL), 0);
    puts.demangled = "_IO_puts";
    cr_assert_eq(trace_writer_function(fixture.writer, fixture.image_id, &puts, &asked, NULL), 0);
    cr_assert_eq(trace_writer_function(fixture.writer, fixture.image_id, &plain, &other, NULL), 0);
    cr_assert_eq(id, again);
    cr_assert_neq(id, asked);
    cr_assert_eq(thread_writer_call(thread, asked), 0);
    cr_assert_eq(thread_writer_call(thread, other), 0);
    end_run(&fixture);
    cr_assert_eq(tracestore_functions(fixture.store, 1, &functions, &count, NULL), 0);
    cr_assert_eq(count, 2);
    cr_assert_str_eq(functions[0].name, "puts");
    cr_assert_str_eq(functions[0].demangled, "_IO_puts");
    cr_assert_not_null(functions[0].aliases);
    for (size_t i = 0; i < 2; i++)
        cr_assert_str_eq(functions[0].aliases[i], aliases[i]);
    cr_assert_null(functions[0].aliases[2]);
    cr_assert_null(functions[1].aliases);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM functions WHERE name = 'puts'"), 2);
    tracestore_functions_free(functions, count);
    fixture_close(&fixture);
}

/* ------------------------------------------------------------------------------------------ deletion */

static int64_t file_size(const struct fixture *fixture)
{
    struct stat status;

    cr_assert_eq(stat(fixture->path, &status), 0);
    return status.st_size;
}

Test(catalog, a_deleted_run_leaves_nothing_and_gives_its_space_back)
{
    struct fixture fixture;
    struct stream stream = {0};
    int64_t full;
    static const char *const tables[] = {"runs",     "processes",         "threads", "images", "functions",
                                         "segments", "segment_functions", "losses",  "blind",  "journal"};
    char sql[64];

    fixture_open(&fixture, NULL);
    fixture_function(&fixture, "some");
    stream_generate(&stream, STREAM_RANDOM, 1, 400000);
    write_events(fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED), &stream, 0, stream.count);
    trace_writer_loss(fixture.writer, 5, 0, "late", NULL);
    trace_writer_blind(fixture.writer, 1, 1, 2, "governor", 1, NULL);
    end_run(&fixture);
    tracestore_free(fixture.store);
    full = file_size(&fixture);
    cr_assert_eq(tracestore_open(fixture.path, TRACESTORE_CHANGE, &fixture.store, NULL), 0);
    cr_assert_eq(tracestore_delete_run(fixture.store, 1, NULL), 0);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", tables[i]);
        cr_assert_eq(ask(tracestore_db(fixture.store), sql), 0, "%s", tables[i]);
    }
    cr_assert_eq(tracestore_delete_run(fixture.store, 1, NULL), -ENOENT);
    tracestore_free(fixture.store);
    cr_assert_lt(file_size(&fixture), full / 2, "%lld of %lld bytes", (long long)file_size(&fixture),
                 (long long)full);
    cr_assert_eq(tracestore_open(fixture.path, TRACESTORE_READ, &fixture.store, NULL), 0);
    fixture_close(&fixture);
    stream_release(&stream);
}

Test(catalog, deleting_spares_other_runs)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;
    struct error err = {0};
    int64_t id;
    uint32_t shared;

    fixture_open(&fixture, NULL);
    shared = fixture_function(&fixture, "shared");
    thread_writer_call(fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED), shared);
    end_run(&fixture);
    begin_run(&fixture, "second", "x");
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    id = thread_writer_id(thread);
    for (int i = 0; i < 100; i++)
        stream_add(&stream, shared);
    write_events(thread, &stream, 0, 100);
    cr_assert_eq(trace_writer_flush(fixture.writer, 3000, NULL), 0);
    cr_assert_eq(tracestore_delete_run(fixture.store, 2, &err), -EBUSY);
    cr_assert_not_null(strstr(err.message, "being recorded"), "%s", err.message);
    cr_assert_eq(tracestore_delete_run(fixture.store, 1, NULL), 0);
    expect_stream(fixture.store, id, &stream, 100);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM functions"), 1);
    end_run(&fixture);
    expect_stream(fixture.store, id, &stream, 100);

    /* A recorder of another boot does not live any more. */
    begin_run(&fixture, "third", "x");
    trace_writer_free(fixture.writer);
    fixture.writer = NULL;
    cr_assert_eq(tracestore_delete_run(fixture.store, 3, NULL), -EBUSY, "this process lives");
    run_sql(tracestore_db(fixture.store), "UPDATE runs SET recorder = 'x' || recorder WHERE run_id = 3");
    cr_assert_eq(tracestore_delete_run(fixture.store, 3, NULL), 0);
    fixture_close(&fixture);
    stream_release(&stream);
}

/* SQLite's own count: dbstat has the bytes of all records; a cell has three more, and four in a table. */
Test(catalog, catalog_bytes_are_what_the_rows_take)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct tracestore_totals totals;
    int64_t records;
    sqlite3 *db;

    fixture_open(&fixture, &(struct trace_writer_options){.segment_bytes = 1000});
    db = tracestore_db(fixture.store);
    fixture_functions(&fixture, 300);
    stream_generate(&stream, STREAM_RANDOM, 1, 6000);
    for (int i = 0; i < 20; i++)
        write_events(fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED), &stream, 0, stream.count);
    cr_assert_eq(trace_writer_tag(fixture.writer, "some", "thing", NULL), 0);
    end_run(&fixture);
    cr_assert_eq(tracestore_run_totals(fixture.store, 1, &totals, NULL), 0);
    run_sql(db,
            "CREATE TEMP VIEW sizes AS SELECT name, sum(payload + ncell * (3 + (name IN ('runs',"
            " 'processes', 'threads', 'segments', 'images', 'functions')))) AS bytes FROM dbstat GROUP BY 1");
    records = ask(db,
                  "SELECT sum(bytes) - (SELECT sum(length(data)) FROM segments) FROM sizes"
                  " WHERE name NOT LIKE 'sqlite_s%' AND name NOT LIKE 'function%' AND name <> "
                  "'indexed_functions'") +
              ask(db,
                  "SELECT sum(bytes) * (SELECT count(DISTINCT function_id) FROM segment_functions)"
                  " / (SELECT count(*) FROM functions) FROM sizes WHERE name IN ('functions',"
                  " 'functions_by_name')");
    cr_assert_gt(totals.catalog_bytes, 20000);
    cr_assert_geq(totals.catalog_bytes, (uint64_t)records * 97 / 100);
    cr_assert_leq(totals.catalog_bytes, (uint64_t)records * 103 / 100);
    stream_release(&stream);
    fixture_close(&fixture);
}
