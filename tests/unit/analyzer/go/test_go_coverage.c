/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Coverage of GoAT's requirements: table 4.3 of the dissertation, cell by cell, and each kind of operation.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/go/coverage.h"
#include "base/array.h"
#include "tests/unit/analyzer/go_script.h"

/* A site of a script is a line of one file; functions from 100 on are the bodies of goroutines. */
static int find(void *context, uint32_t id, struct go_place *ret_place)
{
    (void)context;
    *ret_place = (struct go_place){id < 100 ? "main.f" : "main.body", "/src/listing1.go", (int)id};
    return 0;
}

struct observation {
    struct go_coverage_observer *observer;
    struct go_replay *replay;
};

static int on_action(void *context, const struct go_goroutine *goroutine, const struct go_action *action)
{
    const struct observation *observation = context;

    return go_coverage_observer_action(observation->observer, goroutine, action);
}

static uint32_t observe(struct go_coverage *coverage, const char *name, const char *text)
{
    struct observation observation = {0};
    struct go_replay_options options = go_script_options();
    struct go_script script = go_script_read(text);
    uint32_t run;

    options.on_action = on_action;
    options.context = &observation;
    cr_assert_eq(go_coverage_add_run(coverage, name, &run), 0);
    cr_assert_eq(
        go_coverage_observer_new(coverage, run, (struct go_place_source){find, NULL}, &observation.observer),
        0);
    cr_assert_eq(go_replay_new(&options, &observation.replay), 0);
    for (size_t i = 0; i < script.count; i++) {
        cr_assert_eq(go_replay_event(observation.replay, &script.events[i]), 0);
        cr_assert_eq(go_coverage_observer_event(observation.observer, observation.replay, &script.events[i]),
                     0);
    }
    cr_assert_eq(go_replay_end(observation.replay), 0);
    go_replay_free(observation.replay);
    go_coverage_observer_free(observation.observer);
    free(script.events);
    return run;
}

#define ROW(number, op) \
    { \
        .file = (char *)"/src/listing1.go", .function = (char *)"main.f", .line = (number), \
        .operation = GO_OP_##op, .blocks = true \
    }

/* "0.0 1.0": the nodes and runs that have covered it, RUN.NODE; "-": no such requirement. */
static const char *cell(struct go_coverage *coverage, int line, size_t part, enum go_requirement_kind kind)
{
    static char text[256];
    const struct go_covered_usage *const *usages = NULL;
    size_t count = go_coverage_usages(coverage, &usages), length = 0;
    const struct go_requirement *requirement = NULL;

    for (size_t i = 0; i < count; i++)
        if (usages[i]->line == line && part < usages[i]->part_count)
            requirement = &usages[i]->parts[part].requirements[kind];
    if (!requirement || !requirement->wanted)
        return "-";
    text[0] = '\0';
    for (size_t i = 0; i < requirement->cover_count; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%u.%u", i ? " " : "",
                                   requirement->covers[i].run, requirement->covers[i].node);
    return text;
}

static struct go_coverage *coverage_of(const struct go_usage_row *rows, size_t count)
{
    struct go_coverage *coverage;

    cr_assert_eq(go_coverage_new(false, &coverage), 0);
    cr_assert_eq(go_coverage_add_model(coverage, rows, count), 0);
    return coverage;
}

/* ------------------------------------------------------------------------------------------ table 4.3 */

static struct go_coverage *listing_1(void)
{
    int lines[] = {18};
    bool sends[] = {false};
    struct go_usage_row rows[] = {ROW(12, GO),         ROW(13, GO),           ROW(17, SELECT),
                                  ROW(21, MUTEX_LOCK), ROW(22, MUTEX_UNLOCK), ROW(25, MUTEX_LOCK),
                                  ROW(26, CHAN_SEND),  ROW(27, MUTEX_UNLOCK)};

    rows[2].blocks = false;
    rows[2].case_lines = lines;
    rows[2].case_sends = sends;
    rows[2].case_count = 1;
    return coverage_of(rows, ARRAY_SIZE(rows));
}

static const char successful[] =
    "g1 run t1; g1 go g2 s12; g1 go g3 s13\n"
    "g2 run t2; g2 recv c1 s17 try; g2 result 0; g2 lock m1 s21 done\n"
    "g3 run t3; g3 lock m1 s25; g3 block lock\n"
    "g2 unlock m1 s22; g2 wake g3\n"
    "g3 run t3; g3 send c1 s26; g3 block send\n"
    "g2 recv c1 s17 try; g2 wake g3; g2 result 1; g2 end\n"
    "g3 run t3; g3 unlock m1 s27; g3 end; g1 end";

static const char leak[] =
    "g1 run t1; g1 go g2 s12; g1 go g3 s13\n"
    "g2 run t2; g2 recv c1 s17 try; g2 result 0; g2 yield\n"
    "g3 run t3; g3 lock m1 s25 done; g3 send c1 s26; g3 block send\n"
    "g2 run t2; g2 lock m1 s21; g2 block lock; g1 end";

Test(go_coverage, table_4_3_cell_by_cell)
{
    /* node 0 is G0 of the table, main; 1 Monitor; 2 StatusChange; run 0 is run #1 */
    static const struct {
        int line;
        enum go_requirement_kind kind;
        const char *covers;
    } table[] = {
        {12, GO_REQUIRE_NOP, "0.0 1.0"},
        {13, GO_REQUIRE_NOP, "0.0 1.0"},
        {17, GO_REQUIRE_BLOCKED, "0.1"},
        {17, GO_REQUIRE_UNBLOCKING, "0.1"},
        {21, GO_REQUIRE_BLOCKED, "1.1"},
        {21, GO_REQUIRE_BLOCKING, "0.1"},
        {22, GO_REQUIRE_UNBLOCKING, "0.1"},
        {22, GO_REQUIRE_NOP, ""},
        {25, GO_REQUIRE_BLOCKED, "0.2"},
        {25, GO_REQUIRE_BLOCKING, "1.2"},
        {26, GO_REQUIRE_BLOCKED, "0.2 1.2"},
        {26, GO_REQUIRE_UNBLOCKING, ""},
        {26, GO_REQUIRE_NOP, ""},
        {27, GO_REQUIRE_UNBLOCKING, ""},
        {27, GO_REQUIRE_NOP, "0.2"},
    };
    struct go_coverage *coverage = listing_1();
    struct go_coverage_count total;

    observe(coverage, "successful", successful);
    observe(coverage, "leak", leak);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        cr_expect_str_eq(cell(coverage, table[i].line, 0, table[i].kind), table[i].covers,
                         "line %d, requirement %d: %s", table[i].line, (int)table[i].kind,
                         cell(coverage, table[i].line, 0, table[i].kind));
    total = go_coverage_total(coverage);
    cr_expect_eq(total.total, ARRAY_SIZE(table), "no other requirements");
    cr_expect_eq((int)go_coverage_percent(total), 73);
    cr_expect_eq((int)go_coverage_percent(go_coverage_of_run(coverage, 0)), 60);
    cr_expect_eq((int)go_coverage_percent(go_coverage_of_run(coverage, 1)), 33);
    go_coverage_free(coverage);
}

Test(go_coverage, nodes_of_table_4_3)
{
    struct go_coverage *coverage = listing_1();
    struct go_coverage_node node;

    observe(coverage, "successful", successful);
    observe(coverage, "leak", leak);
    cr_expect_eq(go_coverage_node_count(coverage), 3, "goroutines of both runs are the same nodes");
    cr_expect(go_coverage_node(coverage, 0).main);
    node = go_coverage_node(coverage, 2);
    cr_expect_eq(node.parent, 0);
    cr_expect_eq(node.line, 13);
    /* StatusChange meets 25 to 27: 7 requirements, of which it covers 4 */
    cr_expect_eq(go_coverage_of_node(coverage, 2).total, 7);
    cr_expect_eq(go_coverage_of_node(coverage, 2).covered, 4);
    go_coverage_free(coverage);
}

Test(go_coverage, what_is_open_guides_the_exploration)
{
    struct go_coverage *coverage = listing_1();

    observe(coverage, "successful", successful);
    cr_expect_eq(go_coverage_open(coverage, "/src/listing1.go", 12, GO_OP_GO), 0);
    cr_expect_eq(go_coverage_open(coverage, "/src/listing1.go", 21, GO_OP_MUTEX_LOCK), 1);
    cr_expect_eq(go_coverage_open(coverage, "/src/listing1.go", 26, GO_OP_CHAN_SEND), 2);
    cr_expect_eq(go_coverage_open(coverage, "/src/listing1.go", 1, GO_OP_GO), 0);
    cr_expect_eq(go_coverage_open(coverage, "/src/other.go", 12, GO_OP_GO), 0);
    go_coverage_free(coverage);
}

/* ------------------------------------------------------------------------------------------ operations */

Test(go_coverage, sends_and_receives_are_blocked_unblocking_or_neither)
{
    struct go_usage_row rows[] = {ROW(20, CHAN_SEND), ROW(21, CHAN_RECV), ROW(22, CHAN_RANGE)};
    struct go_coverage *coverage = coverage_of(rows, ARRAY_SIZE(rows));

    observe(coverage, "r",
            "g1 run t1; g1 go g2 s12; g1 send c1 s20; g1 recv c1 s21; g1 block recv\n"
            "g2 run t2; g2 send c1 s20; g2 wake g1; g2 recv c1 s22; g2 end; g1 run t1; g1 end");
    cr_expect_str_eq(cell(coverage, 20, 0, GO_REQUIRE_NOP), "0.0");
    cr_expect_str_eq(cell(coverage, 20, 0, GO_REQUIRE_UNBLOCKING), "0.1");
    cr_expect_str_eq(cell(coverage, 20, 0, GO_REQUIRE_BLOCKED), "");
    cr_expect_str_eq(cell(coverage, 20, 0, GO_REQUIRE_BLOCKING), "-");
    cr_expect_str_eq(cell(coverage, 21, 0, GO_REQUIRE_BLOCKED), "0.0");
    cr_expect_str_eq(cell(coverage, 21, 0, GO_REQUIRE_NOP), "");
    cr_expect_str_eq(cell(coverage, 22, 0, GO_REQUIRE_NOP), "0.1", "a receive that the model calls range");
    go_coverage_free(coverage);
}

Test(go_coverage, a_select_covers_the_case_that_it_chose)
{
    int lines[] = {41, 42, 43};
    bool sends[] = {true, false, false};
    struct go_usage_row rows[] = {ROW(40, SELECT)};
    struct go_coverage *coverage;

    rows[0].case_lines = lines;
    rows[0].case_sends = sends;
    rows[0].case_count = 3;
    coverage = coverage_of(rows, 1);
    cr_expect_eq(go_coverage_total(coverage).total, 9);
    observe(coverage, "r",
            "g1 run t1; g1 select s40 n3; g1 case 0 send c1; g1 case 1 recv c2; g1 case 2 recv c0\n"
            "g1 result 1; g1 end");
    cr_expect_str_eq(cell(coverage, 40, 1, GO_REQUIRE_NOP), "0.0");
    cr_expect_eq(go_coverage_total(coverage).covered, 1);
    go_coverage_free(coverage);
}

Test(go_coverage, a_select_without_end_is_blocked_in_every_case_that_has_a_channel)
{
    struct go_usage_row rows[] = {ROW(12, GO)};
    struct go_coverage *coverage = coverage_of(rows, 1);
    struct go_script script = go_script_read("g1 case 1 recv");

    cr_assert_eq(script.events[0].object, 0, "a nil channel");
    observe(coverage, "r",
            "g1 run t1; g1 select s40 n3; g1 case 0 send c1; g1 case 1 recv; g1 case 2 recv c2\n"
            "g1 block select");
    cr_expect_str_eq(cell(coverage, 40, 0, GO_REQUIRE_BLOCKED), "0.0");
    cr_expect_str_eq(cell(coverage, 40, 1, GO_REQUIRE_BLOCKED), "");
    cr_expect_str_eq(cell(coverage, 40, 2, GO_REQUIRE_BLOCKED), "0.0");
    cr_expect_eq(go_coverage_total(coverage).covered, 2, "the select was met, though not in the model");
    free(script.events);
    go_coverage_free(coverage);
}

Test(go_coverage, whoever_lets_nobody_go_on_is_a_nop)
{
    struct go_usage_row rows[] = {ROW(30, CHAN_CLOSE), ROW(31, COND_SIGNAL), ROW(32, WAITGROUP_DONE),
                                  ROW(33, WAITGROUP_ADD), ROW(34, WAITGROUP_WAIT)};
    struct go_coverage *coverage = coverage_of(rows, ARRAY_SIZE(rows));

    observe(coverage, "r",
            "g1 run t1; g1 go g2 s12; g1 add w1 n1 s33; g1 wait w1 s34; g1 block group\n"
            "g2 run t2; g2 signal k1 s31; g2 close c1 s30; g2 done w1 s32; g2 wake g1; g2 end");
    cr_expect_eq(go_coverage_total(coverage).total, 7, "the go, and none of add and wait");
    cr_expect_str_eq(cell(coverage, 30, 0, GO_REQUIRE_NOP), "0.1");
    cr_expect_str_eq(cell(coverage, 31, 0, GO_REQUIRE_NOP), "0.1");
    cr_expect_str_eq(cell(coverage, 32, 0, GO_REQUIRE_UNBLOCKING), "0.1");
    go_coverage_free(coverage);
}

Test(go_coverage, readers_block_a_writer)
{
    struct go_usage_row rows[] = {ROW(50, RWMUTEX_RLOCK), ROW(51, RWMUTEX_LOCK), ROW(52, RWMUTEX_RLOCK)};
    struct go_coverage *coverage = coverage_of(rows, ARRAY_SIZE(rows));

    observe(coverage, "r",
            "g1 run t1; g1 go g2 s12; g1 go g3 s13; g1 rlock r1 s50 done; g3 rlock r1 s52 done\n"
            "g2 run t2; g2 wlock r1 s51; g2 block wlock");
    cr_expect_str_eq(cell(coverage, 50, 0, GO_REQUIRE_BLOCKING), "0.0");
    cr_expect_str_eq(cell(coverage, 52, 0, GO_REQUIRE_BLOCKING), "0.2");
    cr_expect_str_eq(cell(coverage, 51, 0, GO_REQUIRE_BLOCKED), "0.1");
    cr_expect_str_eq(cell(coverage, 51, 0, GO_REQUIRE_BLOCKING), "");
    go_coverage_free(coverage);
}

Test(go_coverage, a_goroutine_that_makes_its_successor_is_one_node)
{
    struct go_usage_row rows[] = {ROW(12, GO), ROW(13, GO)};
    struct go_coverage *coverage = coverage_of(rows, ARRAY_SIZE(rows));

    observe(coverage, "r",
            "g1 run t1; g1 go g2 s12; g2 run t2; g2 go g3 s13; g2 end; g3 run t3; g3 go g4 s13; g3 end\n"
            "g4 run t4; g4 go g5 s13; g1 go g6 s12; g6 run t6; g6 go g7 s12");
    cr_expect_eq(go_coverage_node_count(coverage), 3);
    cr_expect_str_eq(cell(coverage, 13, 0, GO_REQUIRE_NOP), "0.1 0.2");
    go_coverage_free(coverage);
}

Test(go_coverage, the_runtime_and_the_standard_library_are_left_out)
{
    struct go_usage_row rows[] = {ROW(20, CHAN_SEND), ROW(21, CHAN_SEND)};
    struct go_coverage *coverage;

    rows[1].standard = true;
    coverage = coverage_of(rows, 2);
    observe(coverage, "r", "g1 run t1; g1 go g2 f5 s12; g2 run t2; g2 send c1 s20; g2 end");
    cr_expect_eq(go_coverage_total(coverage).total, 3);
    cr_expect_eq(go_coverage_total(coverage).covered, 0, "g2 is the runtime's");
    go_coverage_free(coverage);
}

/* ------------------------------------------------------------------------------------------ a store */

/* Sites get the function ids that the store gives out: `ids` by line. */
static void write_events(struct process_writer *go, const char *text, const uint32_t *ids)
{
    struct go_script script = go_script_read(text);

    for (size_t i = 0; i < script.count; i++) {
        struct process_event *event = &script.events[i];

        event->site = event->site ? ids[event->site] : 0;
        if (event->kind == GO_EVENT_CREATE)
            event->value = ids[0];
        cr_assert_eq(process_writer_append(go, event), 0);
    }
    free(script.events);
}

static void write_run(struct tracestore *store, const char *text)
{
    static const struct go_usage_description usages[] = {
        {.function = "main.f", .file = "/src/listing1.go", .line = 25, .operation = GO_OP_MUTEX_LOCK},
        {.function = "main.f", .file = "/src/listing1.go", .line = 26, .operation = GO_OP_CHAN_SEND}};
    struct trace_run_description run = {.name = "r", .command = "listing1", .started_ns = 1};
    struct trace_process_description process = {
        .pid = 7, .rank = -1, .exe = "x", .argv = "x", .started_ns = 1};
    struct trace_image_description image = {"/bin/listing1", "", "main"};
    struct go_program_description program = {.version = "go1.22.12", .operations = true, .from_start = true};
    uint32_t ids[100] = {0};
    struct trace_writer *writer;
    struct process_writer *go;

    program.wait_reasons = (const char *const *)go_script_reasons;
    program.wait_reason_count = go_script_reason_count;
    cr_assert_eq(trace_writer_begin(store, &run, NULL, &writer, NULL), 0);
    cr_assert_eq(trace_writer_process(writer, &process, &program.process_id, NULL), 0);
    cr_assert_eq(trace_writer_image(writer, &image, &program.image_id, NULL), 0);
    for (int line = 0; line < 30; line++) {
        char name[32];
        struct trace_function_description function = {.name = name, .file = "/src/listing1.go", .line = line};

        snprintf(name, sizeof(name), line ? "main.f:op%d" : "main.body", line);
        cr_assert_eq(trace_writer_function(writer, program.image_id, &function, &ids[line], NULL), 0);
    }
    cr_assert_eq(trace_writer_go_usages(writer, program.image_id, usages, ARRAY_SIZE(usages), NULL), 0);
    cr_assert_eq(trace_writer_go_program(writer, &program, &go, NULL), 0);
    write_events(go, text, ids);
    cr_assert_eq(trace_writer_end(writer, 100000, 0, NULL), 0);
    trace_writer_free(writer);
}

Test(go_coverage, a_run_is_read_from_its_store)
{
    char path[] = "/tmp/go_coverage_XXXXXX.db";
    struct tracestore *store;
    struct tracestore_run run;
    struct go_coverage *coverage = coverage_of(NULL, 0);
    int fd = mkstemps(path, 3);

    cr_assert(fd >= 0);
    close(fd);
    cr_assert_eq(tracestore_open(path, TRACESTORE_CREATE, &store, NULL), 0);
    write_run(store, successful);
    write_run(store, leak);
    for (int i = 1; i <= 2; i++) {
        cr_assert_eq(tracestore_find_run(store, i == 1 ? "1" : "2", &run, NULL), 0);
        cr_assert_eq(go_coverage_read_run(coverage, store, &run, NULL), 0);
        tracestore_run_release(&run);
    }
    cr_expect_str_eq(cell(coverage, 25, 0, GO_REQUIRE_BLOCKED), "0.2");
    cr_expect_str_eq(cell(coverage, 25, 0, GO_REQUIRE_BLOCKING), "1.2");
    cr_expect_str_eq(cell(coverage, 26, 0, GO_REQUIRE_BLOCKED), "0.2 1.2");
    tracestore_free(store);
    unlink(path);
    go_coverage_free(coverage);
}
