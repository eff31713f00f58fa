/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verdicts as people and programs get them, of runs that the tests write into a store. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/go/go_verdict.h"

/* main.c has these, and a main() too. */
struct cli cli;
int cli_fail(const struct error *err)
{
    cr_assert_fail("%s", err->message);
    return EXIT_FAILED;
}

struct recording {
    char directory[64], path[96];
    struct tracestore *store;
    struct trace_writer *writer;
    struct process_writer *go;
    uint32_t sites[8]; /* function_ids of the places below */
    uint64_t ns;
};

/* The paper's listing 1. */
enum place { MAIN, MONITOR, STATUS_CHANGE, GO_MONITOR, GO_STATUS, LOCK_21, LOCK_25, SEND_27 };
static const struct {
    const char *name;
    int line;
} places[] = {
    {"main.main", 9},
    {"main.Monitor", 15},
    {"main.StatusChange", 24},
    {"main.main:go go", 12},
    {"main.main:go go", 13},
    {"main.Monitor:mutex lock", 21},
    {"main.StatusChange:mutex lock", 25},
    {"main.StatusChange:chan send", 27},
};
enum { MUTEX = 0x1000, CHANNEL = 0x2000, REASON_LOCK = 1, REASON_SEND = 2, REASON_SLEEP = 3 };

static void begin(struct recording *recording)
{
    static const char *const reasons[] = {NULL, "sync.Mutex.Lock", "chan send", "sleep"};
    const struct trace_run_description run = {.name = "r", .command = "./moby", .started_ns = 1000};
    const struct trace_image_description image = {"/bin/moby", "", "main"};
    const struct trace_process_description process = {.pid = 7, .rank = -1, .exe = "moby", .argv = "moby"};
    struct go_program_description program = {.version = "go1.22",
                                             .operations = true,
                                             .wait_reasons = reasons,
                                             .wait_reason_count = ARRAY_SIZE(reasons),
                                             .from_start = true};
    struct error err = {0};

    strcpy(recording->directory, "/tmp/tracectl-go.XXXXXX");
    cr_assert_not_null(mkdtemp(recording->directory));
    snprintf(recording->path, sizeof(recording->path), "%s/store.db", recording->directory);
    cr_assert_eq(tracestore_open(recording->path, TRACESTORE_CREATE, &recording->store, &err), 0, "%s",
                 err.message);
    cr_assert_eq(trace_writer_begin(recording->store, &run, NULL, &recording->writer, &err), 0);
    cr_assert_eq(trace_writer_image(recording->writer, &image, &program.image_id, &err), 0);
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        const struct trace_function_description function = {
            .name = places[i].name, .address = i + 1, .file = "/src/moby.go", .line = places[i].line};

        cr_assert_eq(
            trace_writer_function(recording->writer, program.image_id, &function, &recording->sites[i], &err),
            0);
    }
    cr_assert_eq(trace_writer_process(recording->writer, &process, &program.process_id, &err), 0);
    cr_assert_eq(trace_writer_go_program(recording->writer, &program, &recording->go, &err), 0);
    recording->ns = 1000;
}

static void add(struct recording *recording, struct process_event event)
{
    event.ns = recording->ns += 1000;
    event.tid = (uint32_t)event.goroutine;
    cr_assert_eq(process_writer_append(recording->go, &event), 0);
}

static void make(struct recording *recording, uint64_t goroutine, enum place function, enum place at)
{
    add(recording, (struct process_event){.kind = GO_EVENT_CREATE,
                                          .goroutine = 1,
                                          .other = goroutine,
                                          .value = recording->sites[function],
                                          .site = recording->sites[at]});
}

static void operate(struct recording *recording, uint64_t goroutine, enum go_op operation, uint64_t object,
                    enum place at, unsigned flags)
{
    add(recording, (struct process_event){.kind = GO_EVENT_OPERATE,
                                          .goroutine = goroutine,
                                          .operation = (uint8_t)operation,
                                          .object = object,
                                          .site = recording->sites[at],
                                          .flags = (uint8_t)flags});
}

static void event(struct recording *recording, uint64_t goroutine, enum go_event_kind kind, int64_t value)
{
    add(recording, (struct process_event){.kind = (uint8_t)kind, .goroutine = goroutine, .value = value});
}

/* The interleaving of listing 1 that leaks; Monitor has tried to receive before. */
static void write_leak(struct recording *recording)
{
    event(recording, 1, GO_EVENT_RUN, 0);
    make(recording, 6, MONITOR, GO_MONITOR);
    make(recording, 7, STATUS_CHANGE, GO_STATUS);
    event(recording, 6, GO_EVENT_RUN, 0);
    operate(recording, 6, GO_OP_CHAN_RECV, CHANNEL, MONITOR, GO_FLAG_TRY);
    event(recording, 6, GO_EVENT_RESULT, 0);
    event(recording, 7, GO_EVENT_RUN, 0);
    operate(recording, 7, GO_OP_MUTEX_LOCK, MUTEX, LOCK_25, GO_FLAG_DONE);
    operate(recording, 7, GO_OP_CHAN_SEND, CHANNEL, SEND_27, 0);
    event(recording, 7, GO_EVENT_BLOCK, REASON_SEND);
    operate(recording, 6, GO_OP_MUTEX_LOCK, MUTEX, LOCK_21, 0);
    event(recording, 6, GO_EVENT_BLOCK, REASON_LOCK);
}

static void end(struct recording *recording, struct go_judged_run *run)
{
    struct error err = {0};

    event(recording, 1, GO_EVENT_EXIT, 0);
    cr_assert_eq(trace_writer_end(recording->writer, recording->ns, 0, &err), 0, "%s", err.message);
    cr_assert_eq(go_judge_run(recording->store, 1, run, &err), 0, "%s", err.message);
}

static void finish(struct recording *recording, struct go_judged_run *run)
{
    char command[128];

    go_judged_run_release(run);
    trace_writer_free(recording->writer);
    tracestore_free(recording->store);
    snprintf(command, sizeof(command), "%s-wal", recording->path);
    unlink(command);
    snprintf(command, sizeof(command), "%s-shm", recording->path);
    unlink(command);
    unlink(recording->path);
    rmdir(recording->directory);
}

static void expect_text(const struct go_judged_run *run, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    cr_assert_not_null(out);
    go_verdict_text(out, run);
    fclose(out);
    cr_assert_str_eq(text, expected);
    free(text);
}

Test(go_verdict_text, tells_who_waits_for_whom)
{
    struct recording recording = {0};
    struct go_judged_run run = {0};

    begin(&recording);
    write_leak(&recording);
    end(&recording, &run);
    cr_assert_eq(run.kind, GO_VERDICT_LEAK);
    expect_text(&run,
                "leak: 2 goroutines are blocked forever\n\n"
                "0.g6: blocked (sync.Mutex.Lock) for 0.000 s\n"
                "    in           main.Monitor, moby.go:21: mutex lock\n"
                "    created by   main.main at moby.go:12 (0.g1)\n"
                "    waits for    mutex 0x1000\n"
                "    held by      0.g7 since moby.go:25\n"
                "    last used by 0.g7, mutex lock at moby.go:25\n\n"
                "0.g7: blocked (chan send) for 0.000 s\n"
                "    in           main.StatusChange, moby.go:27: chan send\n"
                "    created by   main.main at moby.go:13 (0.g1)\n"
                "    waits for    channel 0x2000\n"
                "    last used by 0.g6, chan recv at moby.go:15\n\n"
                "These goroutines wait for each other:\n"
                "    0.g6 waits for mutex 0x1000 (moby.go:21), held by 0.g7 since moby.go:25,\n"
                "    0.g7 waits for channel 0x2000 (moby.go:27), whose other end only 0.g6 has used, at "
                "moby.go:15\n");
    finish(&recording, &run);
}

Test(go_verdict_text, the_same_as_json)
{
    struct recording recording = {0};
    struct go_judged_run run = {0};
    json_t *document;
    const char *verdict, *goroutine, *state, *reason, *object, *function, *file, *by, *at;
    int line;

    begin(&recording);
    write_leak(&recording);
    end(&recording, &run);
    document = go_verdict_json(&run);
    cr_assert_eq(json_unpack(document, "{s:s, s:[{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:s}]}", "verdict",
                             &verdict, "leaked", "goroutine", &goroutine, "state", &state, "wait_reason",
                             &reason, "object", &object, "function", &function, "file", &file, "line", &line,
                             "created_by", &by, "created_at", &at),
                 0);
    cr_assert_str_eq(verdict, "leak");
    cr_assert_str_eq(goroutine, "0.g6");
    cr_assert_str_eq(state, "blocked");
    cr_assert_str_eq(reason, "sync.Mutex.Lock");
    cr_assert_str_eq(object, "mutex 0x1000");
    cr_assert_str_eq(function, "main.Monitor");
    cr_assert_str_eq(file, "/src/moby.go");
    cr_assert_eq(line, 21);
    cr_assert_str_eq(by, "main.main");
    cr_assert_str_eq(at, "/src/moby.go:12");
    cr_assert_eq(json_array_size(json_object_get(document, "leaked")), 2);
    cr_assert_eq(json_array_size(json_object_get(document, "cycle")), 2);
    cr_assert_eq(json_array_size(json_object_get(document, "unfinished")), 0);
    json_decref(document);
    finish(&recording, &run);
}

Test(go_verdict_text, alike_goroutines_are_told_together)
{
    struct recording recording = {0};
    struct go_judged_run run = {0};

    begin(&recording);
    event(&recording, 1, GO_EVENT_RUN, 0);
    for (uint64_t i = 10; i < 15; i++) {
        make(&recording, i, STATUS_CHANGE, GO_STATUS);
        event(&recording, i, GO_EVENT_RUN, 0);
        operate(&recording, i, GO_OP_SLEEP, 0, MONITOR, 0);
        event(&recording, i, GO_EVENT_BLOCK, REASON_SLEEP);
    }
    end(&recording, &run);
    cr_assert_eq(run.kind, GO_VERDICT_PASS);
    expect_text(&run,
                "pass: no goroutine is blocked forever, 5 had not finished\n\n"
                "Not finished at the end, but not leaked:\n\n"
                "0.g10, 0.g11, 0.g12 and 2 more: blocked (sleep) for 0.000 s\n"
                "    in           main.Monitor, moby.go:15: sleep\n"
                "    created by   main.main at moby.go:13 (0.g1)\n"
                "    not leaked   sleeping\n");
    finish(&recording, &run);
}
