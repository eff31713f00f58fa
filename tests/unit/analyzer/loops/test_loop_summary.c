/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a store to summaries: names across builds, losses, blind spots, unfinished runs, last calls. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/diff/compare.h"
#include "base/error.h"

enum { MOST_RUNS = 2 };

struct fixture {
    char path[64];
    struct tracestore *store;
    struct tracestore_run runs[MOST_RUNS];
    size_t count;
    struct loop_summary summary;
};

static void begin(struct fixture *fixture)
{
    struct error err = {0};

    memset(fixture, 0, sizeof(*fixture));
    strcpy(fixture->path, "/tmp/test_loop_summary.XXXXXX");
    close(mkstemp(fixture->path));
    unlink(fixture->path);
    cr_assert_eq(tracestore_open(fixture->path, TRACESTORE_CREATE, &fixture->store, &err), 0, "%s",
                 err.message);
}

static void end(struct fixture *fixture)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};

    loop_summary_release(&fixture->summary);
    for (size_t i = 0; i < fixture->count; i++)
        tracestore_run_release(&fixture->runs[i]);
    tracestore_free(fixture->store);
    for (size_t i = 0; i < 3; i++) {
        char path[80];

        snprintf(path, sizeof(path), "%s%s", fixture->path, suffixes[i]);
        unlink(path);
    }
}

struct script {
    const char *build;  /* build id: function ids differ from build to build */
    const char *events; /* a letter calls the function of that name, ')' returns, '?' loses 5 events */
    const char *suffix; /* of all function names */
    enum trace_returns returns;
    bool unfinished, ends; /* the run; the thread */
    const char *blind;     /* a function that was not observed */
    const char *unplaced;  /* cause of a loss of no known place */
};

static void write_events(struct trace_writer *writer, int64_t image, const struct script *script,
                         struct thread_writer *thread)
{
    struct error err = {0};

    for (const char *c = script->events; *c; c++) {
        char name[16];
        struct trace_function_description function = {.name = name, .address = (uint64_t)*c * 16, .size = 16};
        uint32_t id;

        if (*c == ')') {
            cr_assert_eq(thread_writer_return(thread), 0);
        } else if (*c == '?') {
            cr_assert_eq(thread_writer_lost(thread, 5000, 5, "ring full", &err), 0);
        } else {
            snprintf(name, sizeof(name), "%c%s", *c, script->suffix ? script->suffix : "");
            cr_assert_eq(trace_writer_function(writer, image, &function, &id, &err), 0);
            cr_assert_eq(thread_writer_call(thread, id), 0);
            if (script->blind && *script->blind == *c)
                cr_assert_eq(trace_writer_blind(writer, id, 1, 0, "muted", 1e6, &err), 0);
        }
    }
}

static void add_run(struct fixture *fixture, const struct script *script)
{
    struct trace_run_description run = {.command = "x", .options = "", .started_ns = 1000};
    struct trace_image_description image = {.path = "/x", .build_id = script->build, .kind = "main"};
    struct trace_process_description process = {
        .pid = 1, .rank = -1, .exe = "/x", .argv = "x", .started_ns = 1000};
    struct trace_thread_description thread = {.tid = 1, .label = "0.0", .returns = script->returns};
    struct trace_writer *writer = NULL;
    struct thread_writer *stream = NULL;
    struct error err = {0};
    int64_t image_id;

    cr_assert_eq(trace_writer_begin(fixture->store, &run, NULL, &writer, &err), 0, "%s", err.message);
    cr_assert_eq(trace_writer_image(writer, &image, &image_id, &err), 0);
    cr_assert_eq(trace_writer_process(writer, &process, &thread.process_id, &err), 0);
    cr_assert_eq(trace_writer_thread(writer, &thread, &stream, &err), 0);
    write_events(writer, image_id, script, stream);
    if (script->unplaced)
        cr_assert_eq(trace_writer_loss(writer, 9000, 0, script->unplaced, &err), 0);
    if (script->ends)
        cr_assert_eq(thread_writer_end(stream, 9000, &err), 0);
    cr_assert_eq(trace_writer_flush(writer, 9000, &err), 0);
    if (!script->unfinished)
        cr_assert_eq(trace_writer_end(writer, 10000, 0, &err), 0, "%s", err.message);
    trace_writer_free(writer);
    cr_assert_eq(tracestore_find_run(fixture->store, "latest", &fixture->runs[fixture->count], &err), 0);
    fixture->count++;
}

static void summarise_custom(struct fixture *fixture, const char *filter_spec, const char *custom)
{
    struct loop_source sources[MOST_RUNS];
    struct filter *filter = NULL;
    struct loop_options options = {.max_body = 10};
    struct error err = {0};

    for (size_t i = 0; i < fixture->count; i++)
        sources[i] = (struct loop_source){fixture->store, &fixture->runs[i]};
    cr_assert_eq(filter_new(filter_spec, custom, &filter, &err), 0);
    options.filter = filter;
    cr_assert_eq(loop_summary_read(sources, fixture->count, &options, &fixture->summary, &err), 0, "%s",
                 err.message);
    filter_free(filter);
}

static void summarise(struct fixture *fixture, const char *filter_spec)
{
    summarise_custom(fixture, filter_spec, NULL);
}

static void expect_entries(const struct fixture *fixture, size_t run, const char *expected)
{
    const struct nlr_sequence *loops = &fixture->summary.runs[run].threads[0].loops;
    char text[400] = "";

    for (size_t i = 0; i < loops->count; i++) {
        const struct nlr_element *element = &loops->elements[i];
        size_t used = strlen(text);

        if (element->kind == NLR_LOOP)
            snprintf(text + used, sizeof(text) - used, " L%u^%lu",
                     fixture->summary.table.numbers[element->id], (unsigned long)element->count);
        else
            snprintf(text + used, sizeof(text) - used, " %s",
                     element->kind == NLR_LOST ? "?" : symbols_name(&fixture->summary.symbols, element->id));
    }
    cr_assert_str_eq(*text ? text + 1 : text, expected);
}

/* Two builds have other function ids, and the order in which functions occur is another one too. */
Test(loop_summary, functions_are_the_same_by_name)
{
    struct fixture fixture;
    struct run_comparison comparison;

    begin(&fixture);
    add_run(&fixture,
            &(struct script){"aa", "mC)B)B)B))", "@plt", TRACE_RETURNS_PROBED, false, true, NULL, NULL});
    add_run(&fixture,
            &(struct script){"bb", "mB)C)B)B)B))", "@plt", TRACE_RETURNS_PROBED, false, true, NULL, NULL});
    summarise(&fixture, NULL);
    expect_entries(&fixture, 0, "m C L0^3");
    expect_entries(&fixture, 1, "m B C L0^3");
    cr_assert_eq(fixture.summary.runs[0].threads[0].last_call, LAST_CALL_RETURNED);
    cr_assert_eq(compare_runs(&fixture.summary, &comparison), 0);
    cr_assert_eq(comparison.threads[0].diff.changed, 1);
    run_comparison_release(&comparison);
    end(&fixture);
}

Test(loop_summary, returns_on_request)
{
    struct fixture fixture;

    begin(&fixture);
    add_run(&fixture,
            &(struct script){"aa", "mA)A)A))", NULL, TRACE_RETURNS_PROBED, false, true, NULL, NULL});
    summarise(&fixture, "00.1K10");
    expect_entries(&fixture, 0, "m L0^3 return");
    end(&fixture);
}

Test(loop_summary, lost_events_have_a_place_and_a_cause)
{
    struct fixture fixture;
    const struct thread_loops *thread;

    begin(&fixture);
    add_run(&fixture,
            &(struct script){"aa", "mA)A)A)?A)??B))", NULL, TRACE_RETURNS_PROBED, false, true, NULL, NULL});
    summarise(&fixture, NULL);
    expect_entries(&fixture, 0, "m L0^3 ? A ? B");
    thread = &fixture.summary.runs[0].threads[0];
    cr_assert_eq(thread->gap_count, 2);
    cr_assert_eq(thread->gaps[0].events, 5);
    cr_assert_eq(thread->gaps[1].events, 10);
    cr_assert_str_eq(thread->gaps[0].cause, "ring full");
    end(&fixture);
}

static enum last_call last_call_of(const struct script *script)
{
    struct fixture fixture;
    enum last_call last_call;

    begin(&fixture);
    add_run(&fixture, script);
    summarise(&fixture, NULL);
    last_call = fixture.summary.runs[0].threads[0].last_call;
    end(&fixture);
    return last_call;
}

Test(loop_summary, last_calls)
{
    struct script script = {.build = "aa", .events = "mA)B", .ends = true};

    cr_assert_eq(last_call_of(&script), LAST_CALL_OPEN);
    script.ends = false; /* still in B when recording ended */
    cr_assert_eq(last_call_of(&script), LAST_CALL_OPEN);
    script.events = "mA)B?";
    cr_assert_eq(last_call_of(&script), LAST_CALL_UNKNOWN);
    script.events = "m?A)B";
    cr_assert_eq(last_call_of(&script), LAST_CALL_OPEN);
    script.events = "mA)B)";
    cr_assert_eq(last_call_of(&script), LAST_CALL_RETURNED);
    script.events = "mA)B";
    script.returns = TRACE_RETURNS_INFERRED;
    cr_assert_eq(last_call_of(&script), LAST_CALL_UNKNOWN);
    script.returns = TRACE_RETURNS_PROBED;
    script.unfinished = true;
    cr_assert_eq(last_call_of(&script), LAST_CALL_UNKNOWN);
}

/* Calls that the filter drops come and go inside the last one that it keeps. */
Test(loop_summary, last_calls_are_of_kept_functions)
{
    struct fixture fixture;

    begin(&fixture);
    add_run(&fixture, &(struct script){.build = "aa", .events = "mA)AB)B", .ends = true});
    summarise_custom(&fixture, NULL, "^A$");
    expect_entries(&fixture, 0, "A A");
    cr_assert_eq(fixture.summary.runs[0].threads[0].last_call, LAST_CALL_OPEN);
    end(&fixture);
}

/* What a recorder that died has not written is no difference. */
Test(loop_summary, unfinished_runs_end_in_the_unknown)
{
    struct fixture fixture;
    struct run_comparison comparison;

    begin(&fixture);
    add_run(&fixture,
            &(struct script){"aa", "mA)B)C))", NULL, TRACE_RETURNS_PROBED, false, true, NULL, NULL});
    add_run(&fixture, &(struct script){"aa", "mA)", NULL, TRACE_RETURNS_PROBED, true, false, NULL, NULL});
    summarise(&fixture, NULL);
    expect_entries(&fixture, 1, "m A ?");
    cr_assert_eq(compare_runs(&fixture.summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, 0);
    cr_assert(comparison.threads[0].unknown);
    run_comparison_release(&comparison);
    end(&fixture);
}

/* B was muted in the faulty run: it is left out of both, and said. */
Test(loop_summary, blind_functions_are_not_compared)
{
    struct fixture fixture;
    struct run_comparison comparison;

    begin(&fixture);
    add_run(&fixture,
            &(struct script){"aa", "mA)B)B)B)C))", NULL, TRACE_RETURNS_PROBED, false, true, NULL, NULL});
    add_run(&fixture, &(struct script){"bb", "mA)B)C))", NULL, TRACE_RETURNS_PROBED, false, true, "B", NULL});
    summarise(&fixture, NULL);
    expect_entries(&fixture, 0, "m A C");
    cr_assert_eq(compare_runs(&fixture.summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, 0);
    cr_assert_eq(fixture.summary.runs[1].blind_count, 1);
    cr_assert_str_eq(fixture.summary.runs[1].blind[0].name, "B");
    run_comparison_release(&comparison);
    end(&fixture);
}

Test(loop_summary, losses_without_a_place)
{
    struct fixture fixture;
    struct run_comparison comparison;

    begin(&fixture);
    add_run(&fixture,
            &(struct script){"aa", "mA)B)C))", NULL, TRACE_RETURNS_PROBED, false, true, NULL, NULL});
    add_run(&fixture,
            &(struct script){"aa", "mA)C))", NULL, TRACE_RETURNS_PROBED, false, true, NULL, "storm"});
    summarise(&fixture, NULL);
    cr_assert(fixture.summary.runs[1].incomplete);
    cr_assert_eq(compare_runs(&fixture.summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, 0);
    run_comparison_release(&comparison);
    end(&fixture);
}
