/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Timelines: whose columns there are, what the rows say, what is folded and left out. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/timeline.h"
#include "analyzer/picture/go_timeline.h"
#include "tests/unit/analyzer/go_script.h"
#include "tests/unit/analyzer/markup_check.h"

/* Site N is line N of a.go, in "main.fN"; from 900 on it is the runtime's. */
static int find_place(void *context, uint32_t id, struct go_place *ret_place)
{
    static char names[1000][24];

    (void)context;
    *ret_place = (struct go_place){"", "", 0};
    if (!id || id >= 1000)
        return 0;
    snprintf(names[id], sizeof(names[id]), "%s.f%u", id < 900 ? "main" : "runtime", id);
    *ret_place = (struct go_place){names[id], id < 900 ? "/src/a.go" : "/go/proc.go", (int)id};
    return 0;
}

static const struct go_place_source places = {find_place, NULL};

struct made {
    struct go_replay *replay;
    struct go_verdict verdict;
    struct go_program program;
    struct go_timeline timeline;
};

static void make(struct made *made, const char *text, const struct go_timeline_options *options)
{
    struct go_script script = go_script_read(text);

    made->program = (struct go_program){.operations = true,
                                        .wait_reasons = (char **)go_script_reasons,
                                        .wait_reason_count = go_script_reason_count};
    made->replay = go_script_replay(text, NULL);
    cr_assert_eq(
        go_verdict_of(made->replay, &(struct go_verdict_options){.operations = true}, &made->verdict), 0);
    cr_assert_eq(
        go_timeline_begin(&made->timeline, &made->program, places, made->replay, &made->verdict, options), 0);
    for (size_t i = 0; i < script.count; i++)
        cr_assert_eq(go_timeline_meet(&made->timeline, made->replay, &script.events[i]), 0);
    for (size_t i = 0; i < script.count; i++)
        cr_assert_eq(go_timeline_add(&made->timeline, &script.events[i]), 0);
    go_timeline_end(&made->timeline);
    free(script.events);
}

static void release(struct made *made)
{
    go_timeline_release(&made->timeline);
    go_verdict_release(&made->verdict);
    go_replay_free(made->replay);
}

/* "g1: begins; g1: go g2 :12; ..." */
static char *rows_of(const char *script, const struct go_timeline_options *options)
{
    struct made made;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const char *file;

    make(&made, script, options);
    cr_assert_eq(go_timeline_file(&made.timeline, places, &file), 0);
    for (size_t i = 0; i < made.timeline.row_count; i++) {
        const struct go_timeline_row *row = &made.timeline.rows[i];
        char *words;

        cr_assert_eq(go_timeline_words(&made.timeline, row, places, file, &words), 0);
        fprintf(out, "%sg%d: %s", i ? "; " : "", (int)row->goroutine, words);
        if (row->stretch)
            fprintf(out, " [%u rows %d times]", row->stretch, (int)row->repeats);
        free(words);
    }
    fclose(out);
    release(&made);
    return text;
}

static void expect_rows(const char *script, const struct go_timeline_options *options, const char *wanted)
{
    char *rows = rows_of(script, options);

    cr_expect_str_eq(rows, wanted);
    free(rows);
}

static const struct go_timeline_options usual = {0}, all = {.all = true};

/* The leak of listing 1. */
#define LEAK \
    "g0 go g1 s11; g1 run t1; g1 go g2 s12; g1 go g3 s13; g1 sleep s14; g1 block sleep\n" \
    "g2 run t2; g2 recv c1 s17 try; g2 result 0; g3 run t3; g3 lock m1 s25 done; g3 send c1 s26\n" \
    "g3 block send; g2 lock m1 s21; g2 block lock; g0 wake g1; g1 run t1; g1 exit 0\n"

Test(go_timeline, the_leak_of_listing_1)
{
    expect_rows(LEAK, &usual,
                "g1: begins; g1: go g2 :12; g1: go g3 :13; g1: sleep :14, sleeps; g2: begins; g2: select "
                ":17, default; g3: begins; g3: mutex lock :25; g3: chan send :26, blocks; g2: mutex lock "
                ":21, blocks; g1: continues; g1: ends the process, status 0");
}

Test(go_timeline, what_became_of_them)
{
    struct made made;
    char *text;

    make(&made, LEAK, &usual);
    cr_assert_eq(made.timeline.column_count, 3);
    cr_expect(made.timeline.columns[1].stuck && made.timeline.columns[1].in_cycle);
    cr_expect(!made.timeline.columns[0].stuck);
    cr_assert_eq(go_timeline_end_words(&made.timeline, &made.timeline.columns[2], places, "/src/a.go", &text),
                 0);
    cr_expect_str_eq(text, "stuck: chan send :26");
    free(text);
    release(&made);
}

Test(go_timeline, a_picture_is_well_formed_and_has_all_rows)
{
    struct made made;
    char *svg;

    make(&made, LEAK, &usual);
    cr_assert_eq(go_timeline_svg(&made.timeline, places, "a <title>", SVG_DOCUMENT, &svg), 0);
    check_markup(svg);
    cr_expect(strstr(svg, "mutex lock :21, blocks") && strstr(svg, "stuck: chan send :26"));
    free(svg);
    release(&made);
}

Test(go_timeline, who_wakes_whom)
{
    expect_rows(
        "g0 go g1 s11; g1 run t1; g1 go g2 s12; g1 recv c1 s13; g1 block recv; g2 run t2\n"
        "g2 send c1 s20; g2 wake g1; g2 end; g1 run t1; g1 select s15 n2; g1 case 0 send c1\n"
        "g1 case 1 recv c2; g1 result 0; g1 end",
        &usual,
        "g1: begins; g1: go g2 :12; g1: chan recv :13, blocks; g2: begins; g2: chan send :20, wakes g1; "
        "g2: ends; g1: continues (woken by g2); g1: select :15, case 0 (send); g1: ends");
}

Test(go_timeline, only_those_that_matter)
{
    /* g4 has nothing to do with g2, which waits for ever; g3 has used its channel */
    static const char script[] =
        "g0 go g1 s11; g1 run t1; g1 go g2 s12; g1 go g3 s13; g1 go g4 s14\n"
        "g3 run t3; g3 send c1 s30; g2 run t2; g2 recv c1 s20; g3 end; g2 recv c1 s20\n"
        "g2 block recv; g4 run t4; g4 lock m1 s40 done; g4 end; g1 exit 0";
    struct made made;

    make(&made, script, &usual);
    cr_assert_eq(made.timeline.column_count, 3);
    cr_expect_eq(go_timeline_column_of(&made.timeline, 3), 2);
    cr_expect_eq(go_timeline_column_of(&made.timeline, 4), -1);
    release(&made);
    make(&made, script, &all);
    cr_expect_eq(made.timeline.column_count, 4);
    release(&made);
    make(&made, script, &(struct go_timeline_options){.goroutines = (uint64_t[]){4}, .goroutine_count = 1});
    cr_expect_eq(made.timeline.column_count, 1);
    release(&made);
}

Test(go_timeline, of_many_alike_two_are_shown)
{
    struct made made;
    char script[4096] = "g0 go g1 s11; g1 run t1\n";
    size_t used = strlen(script);

    for (int i = 2; i < 40; i++)
        used += (size_t)snprintf(script + used, sizeof(script) - used,
                                 "g1 go g%d s12; g%d run t2; g%d recv c1 s20; g%d block recv\n", i, i, i, i);
    snprintf(script + used, sizeof(script) - used, "g1 exit 0");
    make(&made, script, &usual);
    /* the users of the channel that are remembered come too, as far as there is room */
    cr_expect_leq(made.timeline.column_count, GO_TIMELINE_COLUMNS);
    cr_expect_eq(made.timeline.left_out, 36);
    release(&made);
}

Test(go_timeline, repetition_is_folded)
{
    expect_rows(
        "g0 go g1 s11; g1 run t1\n"
        "g1 lock m1 s20 done; g1 unlock m1 s21; g1 lock m1 s20 done; g1 unlock m1 s21\n"
        "g1 lock m1 s20 done; g1 unlock m1 s21; g1 lock m1 s20 done; g1 unlock m1 s22; g1 end",
        &usual,
        "g1: begins; g1: mutex lock :20 [2 rows 3 times]; g1: mutex unlock :21; g1: mutex lock :20; "
        "g1: mutex unlock :22; g1: ends");
    expect_rows("g0 go g1 s11; g1 run t1; g1 add w1 s20; g1 add w1 s20; g1 add w1 s20", &usual,
                "g1: begins; g1: waitgroup add :20 [1 rows 3 times]");
}

Test(go_timeline, the_last_rows_stay)
{
    struct made made;
    char script[4096] = "g0 go g1 s11; g1 run t1\n";
    size_t used = strlen(script);

    for (int i = 0; i < 100; i++)
        used += (size_t)snprintf(script + used, sizeof(script) - used, "g1 close c%d s%d\n", i, 20 + i);
    make(&made, script, &(struct go_timeline_options){.rows = 10});
    cr_assert_eq(made.timeline.row_count, 10);
    cr_expect_eq(made.timeline.earlier, 91);
    cr_expect_eq(made.timeline.rows[9].site, 119);
    release(&made);
    make(&made, script, &all);
    cr_expect_eq(made.timeline.row_count, 101);
    release(&made);
}

Test(go_timeline, what_the_runtime_does_is_not_told)
{
    /* a stop that is no part of the operation: the world is stopped */
    expect_rows(
        "g0 go g1 s11; g1 run t1; g1 recv c9 s901; g1 block recv; g0 wake g1; g1 run t1\n"
        "g1 recv c1 s20 try; g1 result 1; g1 block sema; g0 wake g1; g1 run t1; g1 end",
        &usual, "g1: begins; g1: select :20, recv; g1: ends");
}

Test(go_timeline, delays_and_missing_events_are_told)
{
    expect_rows("g0 go g1 s11; g1 run t1; g1 delay s20; g1 lock m1 s20 done; g0 lost 5; g1 panic", &usual,
                "g1: begins; g1: delayed by tracectl :20; g1: mutex lock :20; g0: 5 events are missing here; "
                "g1: panics");
}
