/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exports of made-up runs: what losses, blind functions, damage and odd names look like, and places in time.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "store/export/export_formats.h"
#include "store/export/export_text.h"
#include "tests/unit/store/fixture.h"

/* What a format writes of the only run, in memory from malloc. */
static char *exported(struct fixture *fixture, const char *format, const struct export_options *options,
                      struct export_totals *ret_totals)
{
    struct tracestore_run run;
    struct error err = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    cr_assert_eq(tracestore_find_run(fixture->store, "test", &run, &err), 0, "%s", err.message);
    cr_assert_eq(
        export_write(export_format_find(format), fixture->store, &run, options, out, ret_totals, &err), 0,
        "%s", err.message);
    fclose(out);
    tracestore_run_release(&run);
    return text;
}

static void expect_text(struct fixture *fixture, const char *format, const struct export_options *options,
                        const char *wanted)
{
    struct export_totals totals = {0};
    char *text = exported(fixture, format, options, &totals);

    cr_assert_str_eq(text, wanted, "%s:\n%s", format, text);
    cr_assert_eq(totals.damaged, 0);
    free(text);
}

static void end_run(struct fixture *fixture)
{
    struct error err = {0};

    cr_assert_eq(trace_writer_end(fixture->writer, 9000, 0, &err), 0, "%s", err.message);
}

/* main calls "a;b", loses 7 events, and is open at the end. */
static void write_lossy_run(struct fixture *fixture)
{
    struct thread_writer *thread;
    uint32_t outer, inner;
    struct error err = {0};

    fixture_open(fixture, NULL);
    thread = fixture_thread(fixture, "0.0", TRACE_RETURNS_PROBED);
    outer = fixture_function(fixture, "main");
    inner = fixture_function(fixture, "a;b\"\xff");
    thread_writer_anchor(thread, 2000);
    thread_writer_call(thread, outer);
    thread_writer_call(thread, inner);
    thread_writer_return(thread);
    thread_writer_call(thread, inner);
    thread_writer_anchor(thread, 6000);
    thread_writer_return(thread);
    cr_assert_eq(thread_writer_lost(thread, 6000, 7, "ring full", &err), 0);
    trace_writer_loss(fixture->writer, 7000, 0, "nobody knows", &err);
    trace_writer_blind(fixture->writer, inner, 3000, 4000, "muted", 5.0, &err);
    thread_writer_end(thread, 8000, &err);
    end_run(fixture);
}

Test(export, folded_counts)
{
    const struct export_options options = {0};
    struct fixture fixture;

    write_lossy_run(&fixture);
    expect_text(&fixture, "folded", &options,
                "0.0;main 1\n0.0;main;a:b\"\\xff 2\n0.0;main;[lost] 7\n[lost];nobody knows 1\n"
                "[not observed];a:b\"\\xff 1\n");
    fixture_close(&fixture);
}

/* Three events lie between the anchors at 2000 and 6000, a thousand nanoseconds apart. */
Test(export, folded_time)
{
    const struct export_options options = {.weight = EXPORT_TIME};
    struct fixture fixture;

    write_lossy_run(&fixture);
    struct export_totals totals = {0};
    char *text = exported(&fixture, "folded", &options, &totals);

    cr_assert_not_null(strstr(text, "0.0;main;a:b\"\\xff 2000\n"), "%s", text);
    cr_assert_eq(totals.lost, 7);
    cr_assert_eq(totals.events, 6);
    free(text);
    fixture_close(&fixture);
}

Test(export, csv_tells_everything)
{
    const struct export_options options = {.last_seq = 4};
    struct fixture fixture;

    write_lossy_run(&fixture);
    struct export_totals totals = {0};
    char *text = exported(&fixture, "csv", &options, &totals);

    cr_assert_not_null(strstr(text, "\n0.0,0,call,0,main,2000,0,unknown,,,,,,0\n"), "%s", text);
    cr_assert_not_null(strstr(text, "\n0.0,1,call,1,\"a;b\"\"\\xff\",2000,4000,returned,,,,,,0\n"), "%s",
                       text);
    cr_assert_not_null(strstr(text, "\n,,lost,,,7000,0,,,nobody knows,,,,\n"), "%s", text);
    cr_assert_not_null(strstr(text, "\n,,blind,,\"a;b\"\"\\xff\",3000,1000,,,muted,,,,\n"), "%s", text);
    cr_assert_null(strstr(text, "ring full"), "behind the range");
    free(text);
    fixture_close(&fixture);
}

Test(export, chrome_places_events_at_equal_distances)
{
    static const char *const wanted[] = {
        "\"ts\":1.000,\"name\":\"main\",\"args\":{\"state\":\"unknown\"}",
        "\"ts\":2.000,\"name\":\"a;b\\\"\xef\xbf\xbd\"}",
        "\"ph\":\"E\",\"pid\":77,\"tid\":78,\"ts\":3.000}",
        "\"ts\":4.000,\"name\":\"a;b\\\"\xef\xbf\xbd\"}",
        "\"ph\":\"E\",\"pid\":77,\"tid\":78,\"ts\":5.000}",
        "\"name\":\"[lost]\",\"args\":{\"events\":7,\"cause\":\"ring full\"}",
        "\"name\":\"[lost]\",\"args\":{\"events\":null,\"cause\":\"nobody knows\"}",
        "\"name\":\"[not observed]\"",
    };
    const struct export_options options = {0};
    struct export_totals totals = {0};
    struct fixture fixture;

    write_lossy_run(&fixture);
    char *text = exported(&fixture, "chrome", &options, &totals), *at = text;

    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        at = strstr(at, wanted[i]);
        cr_assert_not_null(at, "%s is not in its place in\n%s", wanted[i], text);
    }
    free(text);
    fixture_close(&fixture);
}

/* The second of three segments is damaged: it is a loss, and calls and returns stay pairs. */
Test(export, damage_is_a_loss)
{
    const struct trace_writer_options writer_options = {.segment_events = 4};
    const struct export_options options = {0};
    struct export_totals totals = {0};
    struct fixture fixture;
    struct thread_writer *thread;
    uint32_t a, b, c;
    size_t begins = 0, ends = 0;

    fixture_open(&fixture, &writer_options);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    a = fixture_function(&fixture, "a");
    b = fixture_function(&fixture, "b");
    c = fixture_function(&fixture, "c");
    for (uint32_t i = 0; i < 4; i++) /* the first segment: a b b b */
        thread_writer_call(thread, i ? b : a);
    for (int i = 0; i < 3; i++) /* the second: back to a, and c */
        thread_writer_return(thread);
    thread_writer_call(thread, c);
    thread_writer_return(thread); /* the third */
    thread_writer_return(thread);
    end_run(&fixture);
    run_sql(tracestore_db(fixture.store), "UPDATE segments SET data = zeroblob(9) WHERE first_seq = 4");

    char *text = exported(&fixture, "chrome", &options, &totals);

    cr_assert_eq(totals.damaged, 1);
    cr_assert_not_null(strstr(text, "\"cause\":\"damaged segment\""), "%s", text);
    for (const char *at = text; (at = strstr(at, "\"ph\":\"B\"")); at++)
        begins++;
    for (const char *at = text; (at = strstr(at, "\"ph\":\"E\"")); at++)
        ends++;
    cr_assert_eq(begins, 5, "%s", text); /* c is begun behind the damage */
    cr_assert_eq(ends, 5, "%s", text);
    free(text);
    fixture_close(&fixture);
}

/* Any part of a random stream has an end for each begin but those that the stream has not ended. */
Test(export, parts_are_paired)
{
    const struct trace_writer_options writer_options = {.segment_events = 300};
    struct stream stream = {0};
    struct fixture fixture;
    struct thread_writer *thread;
    struct generator generator = {77};

    fixture_open(&fixture, &writer_options);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    for (int i = 0; i < 300; i++) {
        char name[16];

        snprintf(name, sizeof(name), "f%d", i);
        fixture_function(&fixture, name);
    }
    stream_generate(&stream, STREAM_RANDOM, 5, 5000);
    write_events(thread, &stream, 0, stream.count);
    end_run(&fixture);
    for (int i = 0; i < 30; i++) {
        const uint64_t first = generator_below(&generator, 4500);
        const struct export_options options = {.first_seq = first,
                                               .last_seq = first + 1 + generator_below(&generator, 400)};
        struct export_totals totals = {0};
        char *text = exported(&fixture, "chrome", &options, &totals);
        long open = 0, unreturned = 0;

        for (const char *at = text; (at = strstr(at, "\"ph\":\"")); at++) {
            open += at[6] == 'B';
            open -= at[6] == 'E';
            cr_assert_geq(open, 0);
        }
        for (const char *at = text; (at = strstr(at, "\"state\":\"open\"")); at++)
            unreturned++;
        cr_assert_eq(totals.events, options.last_seq - options.first_seq + 1);
        cr_assert_eq(open, unreturned, "events %llu to %llu", (unsigned long long)options.first_seq,
                     (unsigned long long)options.last_seq);
        free(text);
    }
    stream_release(&stream);
    fixture_close(&fixture);
}

static void expect_made(char *(*make)(const char *text), const char *text, const char *wanted)
{
    char *made = make(text);

    cr_assert_str_eq(made, wanted);
    free(made);
}

Test(export_text, escapes)
{
    expect_made(text_json, "a\"b\\c\n\x01 é", "\"a\\\"b\\\\c\\u000a\\u0001 é\"");
    expect_made(text_json, "\xff\xc0\x80\xed\xa0\x80",
                "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                "\xef\xbf\xbd\"");
    expect_made(text_valid, "\xf4\x90\x80\x80|\xe2\x82\xac",
                "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|€");
    expect_made(text_csv, "plain", "plain");
    expect_made(text_csv, "a,\"b\"\n", "\"a,\"\"b\"\"\n\"");
}
