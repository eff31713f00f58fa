/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Predicted cascades of runs written as scripts: what is one, and what is none. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/cascade/cascade.h"
#include "analyzer/cascade/report.h"
#include "base/error.h"
#include "tests/unit/analyzer/cascade_script.h"

static struct tracestore *store;
static char folder[64], path[80];

static void set_up(void)
{
    snprintf(folder, sizeof(folder), "/tmp/test_cascade.XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/store.db", folder);
    cr_assert_eq(tracestore_open(path, TRACESTORE_CREATE, &store, NULL), 0);
}

static void tear_down(void)
{
    tracestore_free(store);
    unlink(path);
    rmdir(folder);
}

TestSuite(cascade, .init = set_up, .fini = tear_down);

static const struct cascade_options all_checks = {{SEARCH_MUST_HOPS, true}, true, true, true};

/* The script with every "%" replaced by the size, for two sizes. */
static struct cascade_result find_in(const char *script, const struct cascade_options *options)
{
    static const uint64_t sizes[] = {4, 16};
    struct cascade_source sources[2];
    struct cascade_result result;
    struct error err = {0};

    for (size_t i = 0; i < 2; i++) {
        char text[8192], *out = text;

        for (const char *c = script; *c; c++)
            if (*c == '%')
                out += sprintf(out, "%u", (unsigned)sizes[i]);
            else
                *out++ = *c;
        *out = '\0';
        sources[i] = (struct cascade_source){
            .store = store, .parts = {{cascade_script_write(store, text)}, 1}, .size = sizes[i]};
    }
    cr_assert_eq(cascades_find(sources, 2, "heartbeat", options, &result, &err), 0, "%s", err.message);
    return result;
}

/* "copy>read -lock- heartbeat": source, step, links, sink of each report, a line each. */
static void expect(const char *script, const struct cascade_options *options, const char *wanted)
{
    static const char *const kinds[] = {"lock", "pool", "cause"};
    struct cascade_result result = find_in(script, options);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; i < result.count; i++) {
        const struct cascade_report *report = &result.reports[i];

        fprintf(out, "%s%s>%s", i ? "\n" : "", report->source.function, report->step);
        for (size_t j = 0; j < report->count; j++)
            fprintf(out, " %s:%s", kinds[report->links[j].kind], report->links[j].waits.function);
        fprintf(out, " %s", report->sink.function);
    }
    fclose(out);
    cr_expect_str_eq(text, wanted, "reported:\n%s\ninstead of:\n%s", text, wanted);
    free(text);
    cascade_result_release(&result);
}

#define THREADS "0.0 create 1 create 2 create 3\n0.1 begin 0\n0.2 begin 0\n0.3 begin 0\n"
#define COPY \
    "call copy lock a %*[ call read@ read 10 ret call write@ write 10 ret ] call read@ read 0 ret unlock a " \
    "ret\n"
#define HEARTBEAT(lock) "call heartbeat lock " lock " unlock " lock " ret\n"

Test(cascade, one_lock)
{
    expect(THREADS "0.1 " COPY "0.2 " HEARTBEAT("a"), &all_checks, "copy>read lock:heartbeat heartbeat");
}

Test(cascade, three_locks)
{
    expect(THREADS "0.1 " COPY
                   "0.3 call middle lock b lock a unlock a unlock b ret\n"
                   "0.0 call outer lock c lock b unlock b unlock c ret\n"
                   "0.2 " HEARTBEAT("c"),
           &all_checks, "copy>read lock:middle lock:outer lock:heartbeat heartbeat");
}

Test(cascade, other_lock)
{
    expect(THREADS "0.1 " COPY "0.2 " HEARTBEAT("b"), &all_checks, "");
}

Test(cascade, bounded_loop)
{
    const char *script = THREADS
        "0.1 call copy lock a 5*[ call read@ read 10 ret ] unlock a ret\n"
        "0.2 " HEARTBEAT("a");
    struct cascade_options options = all_checks;

    expect(script, &all_checks, "");
    options.loops = false;
    expect(script, &options, "copy>read lock:heartbeat heartbeat");
}

Test(cascade, own_job)
{
    const char *script = "0.0 channel k l\n" THREADS
                         "1.0 send l 10\n"
                         "0.1 accept k recv k 10 create 4\n0.4 begin 1 " COPY "0.1 " HEARTBEAT("a");
    struct cascade_options options = all_checks;

    expect(script, &all_checks, "");
    options.origins = false;
    expect(script, &options, "copy>read lock:heartbeat heartbeat");
}

Test(cascade, sections_that_never_meet)
{
    /* The middle thread had both locks before the copying thread was made. */
    const char *script =
        "0.0 create 2 create 3\n0.2 begin 0\n0.3 begin 0\n"
        "0.3 call middle lock b lock a unlock a unlock b ret call start@ create 1 ret\n"
        "0.1 begin 3 " COPY "0.2 " HEARTBEAT("b");
    struct cascade_options options = all_checks;

    expect(script, &all_checks, "");
    options.search.concurrency = false;
    expect(script, &options, "copy>read lock:middle lock:heartbeat heartbeat");
}

Test(cascade, gate)
{
    /* Both have b only while they hold a, so that nobody waits for b. */
    expect(THREADS
           "0.1 call copy lock g lock a %*[ call read@ read 10 ret ] unlock a unlock g ret\n"
           "0.2 call heartbeat lock g lock a unlock a unlock g ret\n",
           &all_checks, "copy>read lock:heartbeat heartbeat");
}

Test(cascade, readers)
{
    expect(THREADS
           "0.1 call scan rdlock a %*[ call read@ read 10 ret ] rwunlock a ret\n"
           "0.2 call heartbeat rdlock a rwunlock a ret\n",
           &all_checks, "");
    expect(THREADS
           "0.1 call scan rdlock a %*[ call read@ read 10 ret ] rwunlock a ret\n"
           "0.2 call heartbeat wrlock a rwunlock a ret\n",
           &all_checks, "scan>read lock:heartbeat heartbeat");
}

Test(cascade, tries_do_not_wait)
{
    expect(THREADS "0.1 " COPY "0.2 call heartbeat trylock a unlock a ret\n", &all_checks, "");
    expect(THREADS
           "0.1 call copy trylock a %*[ call read@ read 10 ret ] unlock a ret\n"
           "0.2 " HEARTBEAT("a"),
           &all_checks, "copy>read lock:heartbeat heartbeat");
}

/* The clean-up loop on the event thread of one node delays a stream on another one (figure 3 of the paper).
 */
static const char clean_up[] =
    "0.0 channel k l create 1 create 2\n0.1 begin 0\n0.2 begin 0\n"
    "1.0 call heartbeat send l 5\n"
    "0.2 call serve accept k recv k 5 lock m enqueue e2 wait c m\n"
    "0.0 enqueue e1\n"
    "0.1 call handle handler e2 1 signal c handled ret\n"
    "0.2 woken c m unlock m send k 7\n"
    "0.1 call handle handler e1 1 call clean %*[ call unlink@ write 0 ret ] ret handled ret\n"
    "1.0 recv l 7 ret\n";

Test(cascade, event_thread)
{
    expect(clean_up, &all_checks, "clean>unlink pool:handle cause:serve cause:heartbeat heartbeat");
}

Test(cascade, too_many_causes)
{
    struct cascade_options options = all_checks;

    options.search.must_hops = 1;
    expect(clean_up, &options, "");
}

Test(cascade, no_sync_events)
{
    const struct trace_run_description run = {.name = "plain", .started_ns = 1000};
    struct cascade_source source = {.store = store};
    struct cascade_result result;
    struct trace_writer *writer;
    struct error err = {0};

    cr_assert_eq(trace_writer_begin(store, &run, NULL, &writer, NULL), 0);
    source.parts = (struct trace_parts){{trace_writer_run_id(writer)}, 1};
    cr_assert_eq(trace_writer_end(writer, 2000, 0, NULL), 0);
    trace_writer_free(writer);
    cr_assert_eq(cascades_find(&source, 1, "heartbeat", &all_checks, &result, &err), -ENODATA);
    cascade_result_release(&result);
}

/* A thread that polls and then calls whatever is to be done: what one of its handlers does delays the others.
 */
#define REQUEST(channel, what) "call dispatch call epoll@ poll 1 ret call " what " recv " channel " 10 "
#define EVENT_LOOP(rounds) \
    "0.0 channel k l\n0.0 channel m n\n1.0 send l 100\n2.0 send n 100\n" \
    "0.1 call serve " rounds "*[ " REQUEST("k", "list") "%*[ call read@ read 10 ret ] call read@ read 0 ret " \
    "ret ret " REQUEST("m", "heartbeat") "ret ret ]\n"

Test(cascade, recognised_handlers)
{
    struct cascade_options options = all_checks;

    expect(EVENT_LOOP("3"), &all_checks, "list>read pool:heartbeat heartbeat");
    options.recognise = false;
    expect(EVENT_LOOP("3"), &options, "");
}

Test(cascade, too_few_rounds_for_an_event_loop)
{
    expect(EVENT_LOOP("1"), &all_checks, "");
}

/* What is called between two waits, as by a client that asks and waits for the answer, and nothing else is
 * done by that thread: no event is handled for another one. */
Test(cascade, waiting_for_an_answer)
{
    expect(
        "0.0 channel k l\n0.1 call ask 3*[ call put send k 10 ret call epoll@ poll 1 ret ]\n"
        "0.2 call heartbeat send k 1 ret",
        &all_checks, "");
}

/* A queue under a lock: who signals is the cause of what the worker does then, so that it is the same job. */
Test(cascade, recognised_worker)
{
    const char *script =
        "0.0 create 1 create 2 begin - \n0.1 begin 0\n0.2 begin 0\n0.1 call work lock q wait c q\n"
        "0.2 call ask lock q signal c unlock q ret\n"
        "0.1 woken c q unlock q call list %*[ call read@ read 10 ret ] call read@ read 0 ret ret lock q wait "
        "c q\n"
        "0.2 call ask lock q signal c unlock q ret\n"
        "0.1 woken c q unlock q call heartbeat write 1 ret lock q wait c q\n"
        "0.2 call ask lock q signal c unlock q ret\n"
        "0.1 woken c q unlock q call heartbeat write 1 ret lock q wait c q\n";
    struct cascade_options options = all_checks;

    expect(script, &all_checks, "");
    options.origins = false;
    expect(script, &options, "list>read pool:heartbeat heartbeat");
}

/* Who sends is held up by the copying; the heartbeat waits for it, but not when it only looks whether there
 * is something to be received. */
#define HELD_UP_SENDER \
    "0.0 channel k l\n" THREADS "0.1 " COPY "0.3 call ask lock a send l 10 unlock a ret\n0.2 "

Test(cascade, receives_that_block)
{
    expect(HELD_UP_SENDER "call heartbeat recv k 10 ret", &all_checks,
           "copy>read lock:ask cause:heartbeat heartbeat");
}

Test(cascade, receives_that_do_not_block)
{
    expect(HELD_UP_SENDER "call look empty k ret call heartbeat recv k 10 ret", &all_checks, "");
    expect(HELD_UP_SENDER "call look empty k ret call heartbeat poll 1 recv k 10 ret", &all_checks,
           "copy>read lock:ask cause:heartbeat heartbeat");
}
