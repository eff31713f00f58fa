/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From wire records to events of goroutines and their streams, without a kernel: the records are made here,
 * the Go program's file and the store are real ones. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "collector/go/program.h"
#include "collector/images/image_table.h"
#include "collector/stream/streams.h"
#include "image/functions/gopclntab.h"

enum { PID = 70, OTHER_TID = 71, FIRST_PROBE = 1000, EVENTS_MAX = 64 };
#define BIAS 0x10000000u
#define LOCK 0xc000001000u

static struct {
    char folder[64], program[128], path[128];
    struct tracestore *store;
    struct trace_writer *writer;
    struct streams *streams;
    struct traced_image image;
    struct go_symbol *symbols;
    size_t symbol_count;
    struct process_event events[EVENTS_MAX];
    size_t count;
    unsigned ends;
    int status;
    uint64_t ns;
} world;

static int keep_event(void *context, const struct go_process *process, const struct process_event *event)
{
    (void)context;
    cr_expect_eq(process->pid, PID);
    cr_assert_lt(world.count, EVENTS_MAX);
    world.events[world.count++] = *event;
    return 0;
}

static int keep_end(void *context, const struct go_process *process, int exit_status)
{
    (void)context;
    (void)process;
    world.ends++;
    world.status = exit_status;
    return 0;
}

static struct wire_losses no_losses(struct life_cycle_source *source, uint32_t tid)
{
    (void)source;
    (void)tid;
    return (struct wire_losses){.calls = 0, .returns = 0};
}

static const struct life_cycle_operations source_operations = {.consume_losses = no_losses};
static struct life_cycle_source source = {&source_operations};

static uint64_t function(const char *name)
{
    for (size_t i = 0; i < world.symbol_count; i++)
        if (!strcmp(world.symbols[i].name, name))
            return world.symbols[i].address;
    cr_assert_fail("no function %s", name);
    return 0;
}

static void start_process(void)
{
    const struct stream_program program = {.image = &world.image,
                                           .go = &world.image,
                                           .starting = true,
                                           .exe = strdup("/bin/test"),
                                           .argv = strdup("test"),
                                           .rank = -1};
    const struct stream_code code = {
        .start = BIAS + 0x400000, .end = BIAS + 0x800000, .load_bias = BIAS, .image = &world.image};
    const pid_t tids[] = {PID, OTHER_TID};
    struct error err = {0};

    cr_assert_eq(streams_add_process(world.streams, PID, tids, 2, &err), 0, "%s", err.message);
    cr_assert_eq(streams_set_program(world.streams, PID, &program, &err), 0, "%s", err.message);
    cr_assert_eq(streams_set_code(world.streams, PID, &code, 1, &err), 0, "%s", err.message);
}

static void begin(void)
{
    const struct go_program_options go = {.detail = GO_DETAIL_OPERATIONS, .first_probe = FIRST_PROBE};
    const struct stream_options options = {.source = &source,
                                           .goroutines = {.event = keep_event, .end = keep_end}};
    const struct trace_run_description run = {.name = "t", .command = "test", .options = "", .started_ns = 1};
    struct error err = {0};
    char command[512];

    memset(&world, 0, sizeof(world));
    world.ns = 1000000000;
    snprintf(world.folder, sizeof(world.folder), "/tmp/goroutines.XXXXXX");
    cr_assert(mkdtemp(world.folder));
    snprintf(world.program, sizeof(world.program), "%s/counted", world.folder);
    snprintf(world.path, sizeof(world.path), "%s/store.db", world.folder);
    snprintf(command, sizeof(command),
             "cd tests/programs/go/counted && CGO_ENABLED=0 GOTOOLCHAIN=local GOENV=off GOPROXY=off "
             "GOFLAGS=-mod=mod GO111MODULE=on /usr/lib/go-1.22/bin/go build -o %s .",
             world.program);
    cr_assert_eq(system(command), 0, "%s", command); // NOLINT(bugprone-command-processor,cert-env33-c)
    world.image.path = world.program;
    cr_assert_eq(elf_image_open(world.program, &world.image.elf, &err), 0, "%s", err.message);
    cr_assert_eq(go_program_read(world.image.elf, &go, &world.image.go, &err), 0, "%s", err.message);
    cr_assert_eq(gopclntab_symbols(world.image.elf, &world.symbols, &world.symbol_count), 0);
    cr_assert_eq(tracestore_open(world.path, TRACESTORE_CREATE, &world.store, &err), 0, "%s", err.message);
    cr_assert_eq(trace_writer_begin(world.store, &run, NULL, &world.writer, &err), 0, "%s", err.message);
    cr_assert_eq(streams_new(&options, NULL, world.writer, &world.streams, &err), 0, "%s", err.message);
    start_process();
}

static void end(void)
{
    char command[160];

    streams_free(world.streams);
    trace_writer_free(world.writer);
    tracestore_free(world.store);
    go_program_free(world.image.go);
    elf_image_free(world.image.elf);
    free(world.symbols);
    snprintf(command, sizeof(command), "rm -r %s", world.folder);
    cr_assert_eq(system(command), 0, "%s", command); // NOLINT(bugprone-command-processor,cert-env33-c)
}

TestSuite(goroutine_streams, .init = begin, .fini = end);

/* The index of the first probe of this kind and operation. */
static uint32_t probe_of(enum go_place_kind kind, enum go_op operation, bool slow_path)
{
    const struct go_targets *targets = go_program_targets(world.image.go);

    for (size_t i = 0; i < targets->count; i++)
        if (targets->items[i].probe.kind == kind && targets->items[i].operation == operation &&
            targets->items[i].slow_path == slow_path)
            return FIRST_PROBE + (uint32_t)i;
    cr_assert_fail("no probe of kind %d, operation %d", (int)kind, (int)operation);
    return 0;
}

/* A record of the probe by goroutine 1, from a call in main.main, on the main thread. */
static struct wire_go record_of(uint32_t probe)
{
    return (struct wire_go){.header = {.kind = WIRE_GO, .tid = PID, .ns = world.ns += 10},
                            .probe = probe,
                            .goroutine = 1,
                            .place = BIAS + function("main.main") + 9};
}

static void handle(const void *record, size_t size)
{
    cr_assert_eq(streams_handle(world.streams, record, size), 0, "%s", streams_error(world.streams)->message);
}

static void happens(struct wire_go record)
{
    handle(&record, sizeof(record));
}

static void creates(uint64_t maker, uint64_t made, const char *name, uint32_t tid)
{
    struct wire_go spawn = record_of(probe_of(GO_AT_SPAWN, GO_OP_GO, false)),
                   spawned = record_of(probe_of(GO_AT_SPAWNED, GO_OP_NONE, false));

    spawn.header.tid = spawned.header.tid = tid;
    spawn.goroutine = spawned.goroutine = maker;
    spawn.value = BIAS + function(name);
    spawned.object = made;
    happens(spawn);
    happens(spawned);
}

static void operates(uint32_t probe, uint64_t object, uint64_t value)
{
    struct wire_go record = record_of(probe);

    record.object = object;
    record.value = value;
    happens(record);
}

static const struct process_event *last(void)
{
    cr_assert(world.count);
    return &world.events[world.count - 1];
}

/* What a statement gives, rows with blanks between. */
static void assert_stored(const char *sql, const char *wanted)
{
    char got[512] = "";
    struct error err = {0};
    sqlite3_stmt *statement;
    sqlite3 *db;

    cr_assert_eq(trace_writer_flush(world.writer, streams_realtime(world.streams, world.ns), &err), 0, "%s",
                 err.message);
    cr_assert_eq(sqlite3_open_v2(world.path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    while (sqlite3_step(statement) == SQLITE_ROW) {
        size_t used = strlen(got);

        snprintf(got + used, sizeof(got) - used, "%s%s", used ? "; " : "",
                 (const char *)sqlite3_column_text(statement, 0));
    }
    cr_assert_str_eq(got, wanted);
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

Test(goroutine_streams, goroutines_are_named_by_how_they_were_created)
{
    creates(0, 1, "runtime.main", PID);
    creates(1, 7, "main.channels", PID);
    creates(7, 8, "main.choices", PID);
    creates(1, 9, "runtime.bgsweep", PID);
    cr_expect_eq(last()->kind, GO_EVENT_CREATE);
    cr_expect_eq(last()->goroutine, 1);
    cr_expect_eq(last()->other, 9);
    assert_stored(
        "SELECT label || ' ' || replace(name, (SELECT substr(name, instr(name, '('), 13) FROM threads "
        "WHERE label = '0.g7'), '(main.go:N)') FROM threads WHERE label LIKE '%g%' AND label <> '0.g8'",
        "0.g1 runtime.main; 0.g7 main.channels (main.go:N)");
    assert_stored("SELECT name GLOB 'main.choices (main.go:* < main.go:*)' FROM threads WHERE label = '0.g8'",
                  "1");
}

Test(goroutine_streams, creations_of_two_threads_are_told_apart)
{
    struct wire_go spawn = record_of(probe_of(GO_AT_SPAWN, GO_OP_GO, false)), spawned;

    spawn.header.tid = OTHER_TID;
    spawn.goroutine = 2;
    spawn.value = BIAS + function("main.choices");
    creates(0, 1, "runtime.main", PID);
    creates(0, 2, "main.main", PID);
    happens(spawn);
    creates(1, 7, "main.channels", PID);
    spawned = record_of(probe_of(GO_AT_SPAWNED, GO_OP_NONE, false));
    spawned.header.tid = OTHER_TID;
    spawned.goroutine = 2;
    spawned.object = 8;
    happens(spawned);
    assert_stored("SELECT name GLOB 'main.channels (*' FROM threads WHERE label = '0.g7'", "1");
    assert_stored("SELECT name GLOB 'main.choices (*' FROM threads WHERE label = '0.g8'", "1");
}

Test(goroutine_streams, the_slow_path_of_a_lock_is_told_once)
{
    operates(probe_of(GO_AT_LOCK, GO_OP_MUTEX_LOCK, false), LOCK, 1);
    cr_assert_eq(world.count, 1);
    cr_expect_eq(last()->kind, GO_EVENT_OPERATE);
    cr_expect_eq(last()->operation, GO_OP_MUTEX_LOCK);
    cr_expect_eq(last()->object, LOCK);
    cr_expect_not(last()->flags & GO_FLAG_DONE);
    operates(probe_of(GO_AT_OPERATION, GO_OP_MUTEX_LOCK, true), LOCK, 0);
    cr_assert_eq(world.count, 1);
    operates(probe_of(GO_AT_OPERATION, GO_OP_MUTEX_LOCK, true), LOCK + 8, 0);
    cr_assert_eq(world.count, 2, "another lock");
    operates(probe_of(GO_AT_OPERATION, GO_OP_MUTEX_LOCK, false), LOCK + 8, 0);
    cr_assert_eq(world.count, 3, "the goroutine locks again what it holds");
    operates(probe_of(GO_AT_LOCK, GO_OP_MUTEX_LOCK, false), LOCK, 0);
    cr_expect(last()->flags & GO_FLAG_DONE);
}

Test(goroutine_streams, the_mutex_inside_a_rwmutex_tells_nothing)
{
    operates(probe_of(GO_AT_OPERATION, GO_OP_RWMUTEX_LOCK, false), LOCK, 0);
    operates(probe_of(GO_AT_OPERATION, GO_OP_MUTEX_LOCK, true), LOCK, 0);
    operates(probe_of(GO_AT_OPERATION, GO_OP_MUTEX_LOCK, false), LOCK, 0);
    cr_assert_eq(world.count, 1);
}

Test(goroutine_streams, answers_of_trylock)
{
    operates(probe_of(GO_AT_LOCK, GO_OP_MUTEX_TRYLOCK, false), LOCK, 0);
    cr_assert_eq(world.count, 2);
    cr_expect_eq(last()->kind, GO_EVENT_RESULT);
    cr_expect_eq(last()->value, 1);
    operates(probe_of(GO_AT_OPERATION, GO_OP_RWMUTEX_TRYLOCK, false), LOCK, 0);
    cr_expect_eq(last()->kind, GO_EVENT_OPERATE, "nobody knows yet");
    operates(probe_of(GO_AT_RESULT, GO_OP_RWMUTEX_TRYLOCK, false), 0xff00, 0);
    cr_expect_eq(last()->kind, GO_EVENT_RESULT);
    cr_expect_eq(last()->operation, GO_OP_RWMUTEX_TRYLOCK);
    cr_expect_eq(last()->value, 0, "a bool is the low byte");
}

Test(goroutine_streams, selects_bring_their_cases)
{
    struct wire_go_select record = {.go = record_of(probe_of(GO_AT_SELECT, GO_OP_SELECT, false)),
                                    .cases = {{.channel = 0x11}, {.channel = 0x22}}};

    record.go.object = 1; /* one of them sends */
    record.go.value = 1;
    record.go.cases = 2;
    handle(&record, sizeof(record));
    cr_assert_eq(world.count, 3);
    cr_expect_eq(world.events[0].kind, GO_EVENT_OPERATE);
    cr_expect_eq(world.events[0].value, 2);
    cr_expect_eq(world.events[1].object, 0x11);
    cr_expect_eq(world.events[1].flags, GO_FLAG_SEND);
    cr_expect_eq(world.events[2].object, 0x22);
    cr_expect_eq(world.events[2].flags, 0);
    cr_expect_lt(streams_handle(world.streams, &record, sizeof(record.go)), 0, "a record without its cases");
}

Test(goroutine_streams, losses_are_told_where_they_are)
{
    const struct wire_lost lost = {.header = {.kind = WIRE_LOST, .tid = PID, .ns = world.ns += 10}, .go = 5};

    happens(record_of(probe_of(GO_AT_PANIC, GO_OP_NONE, false)));
    handle(&lost, sizeof(lost));
    cr_assert_eq(world.count, 2);
    cr_expect_eq(last()->kind, GO_EVENT_LOST);
    cr_expect_eq(last()->value, 5);
    assert_stored("SELECT sum(count) FROM losses", "5");
}

Test(goroutine_streams, the_end_of_the_process_is_told_with_its_status)
{
    const struct wire_exit record = {
        .header = {.kind = WIRE_EXIT, .flags = WIRE_LAST_THREAD, .tid = PID, .ns = world.ns += 10},
        .tgid = PID,
        .exit_code = 2 << 8,
    };

    creates(0, 1, "runtime.main", PID);
    handle(&record, sizeof(record));
    cr_expect_eq(world.ends, 1);
    cr_expect_eq(world.status, 2);
}
