/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/go/go_exploration.h"
#include "cli/go/go_timeline.h"
#include "cli/go/go_verdict.h"

#define SLOWED_MUCH 5 /* times, for which a pass reports it */

/* The one process that has the bug, judged; or the last one. */
static int judge(struct tracestore *store, const struct exploration *exploration, int64_t run_id,
                 struct go_judged_run *all, struct go_judged *judged, struct error *err)
{
    int r = go_programs_of(store, run_id, all, err);

    for (size_t i = 0; !r && i < all->count; i++)
        if (all->programs[i].process_id == exploration->process_id ||
            (!exploration->process_id && i + 1 == all->count))
            return go_judge(store, &all->programs[i], all->places, NULL, judged, err);
    return r;
}

/* Line by line, so that nothing of it does anything to a terminal. */
static void print_output(char *output)
{
    if (!output || !*output)
        return;
    fputs("\nIts output:\n", stdout);
    for (char *line = strtok(output, "\n"); line; line = strtok(NULL, "\n"))
        text_print(stdout, "    %s\n", line);
}

static int print_bug(const struct exploration *exploration, struct tracestore *store,
                     const struct go_judged_run *one, struct error *err)
{
    struct go_coverage_count covered = go_coverage_total(exploration->coverage);
    int r;

    text_print(stdout, "execution %u of at most %lu found a bug; %zu of %zu requirements covered (%.0f %%)\n",
               exploration->ended, exploration->arguments->runs, covered.covered, covered.total,
               go_coverage_percent(covered));
    if (*exploration->schedule)
        text_print(stdout, "to repeat this schedule: --seed %s\n", exploration->schedule);
    putchar('\n');
    go_verdict_text(stdout, one);
    putchar('\n');
    r = go_timeline_text(stdout, store, one->judged, NULL, go_timeline_width(), err);
    print_output(exploration->output);
    return r;
}

static int print_text(const struct exploration *exploration, struct tracestore *store,
                      const struct go_judged_run *one, struct error *err)
{
    struct go_coverage_count covered = go_coverage_total(exploration->coverage);
    double percent = go_coverage_percent(covered);

    if (exploration->process_id)
        return print_bug(exploration, store, one, err);
    text_print(stdout,
               "pass: no bug found in %u executions; %zu of %zu requirements covered (%.0f %%); "
               "seed %llu\n",
               exploration->ended, covered.covered, covered.total, percent,
               (unsigned long long)exploration->seed);
    if (exploration->slowed >= SLOWED_MUCH)
        text_print(stdout, "probes slowed the executions by a factor of %.0f, which may have hidden a bug\n",
                   exploration->slowed);
    if (exploration->unfinished)
        text_print(stdout, "%llu executions ended while goroutines could still have continued\n",
                   (unsigned long long)exploration->unfinished);
    return 0;
}

static void print_json(const struct exploration *exploration, const struct tracestore_run *run,
                       const struct go_judged_run *one)
{
    AUTO_JSON json_t *document = go_verdict_json(one);
    char seed[24];

    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)exploration->seed);
    if (!exploration->process_id)
        json_object_set_new(document, "verdict", json_string("pass"));
    json_object_set_new(document, "run", json_integer(run->run_id));
    json_object_set_new(document, "name", cli_json_text(run->name));
    json_object_set_new(document, "runs", json_integer(exploration->ended));
    json_object_set_new(document, "first_bug_run",
                        exploration->process_id ? json_integer(exploration->ended) : json_null());
    json_object_set_new(document, "yields", json_integer((json_int_t)exploration->delays));
    json_object_set_new(document, "seed", json_string(*exploration->schedule ? exploration->schedule : seed));
    json_object_set_new(document, "base_seed", json_string(seed));
    json_object_set_new(document, "output",
                        exploration->output ? cli_json_text(exploration->output) : json_null());
    json_object_set_new(document, "unfinished_runs", json_integer((json_int_t)exploration->unfinished));
    json_object_set_new(document, "slowed_by_probes",
                        exploration->slowed > 0 ? json_real(exploration->slowed) : json_null());
    json_object_set_new(document, "coverage_percent",
                        json_real(go_coverage_percent(go_coverage_total(exploration->coverage))));
    cli_json_print(document);
}

int go_exploration_report(struct tracestore *store, const struct exploration *exploration, int64_t run_id,
                          struct error *err)
{
    CLEANUP(go_judged_run_release) struct go_judged_run all = {0};
    CLEANUP(go_judged_release) struct go_judged judged = {0};
    AUTO_RUN struct tracestore_run run = {0};
    struct go_judged_run one;
    char number[24];
    int r;

    snprintf(number, sizeof(number), "%lld", (long long)run_id);
    r = tracestore_find_run(store, number, &run, err);
    if (!r)
        r = judge(store, exploration, run_id, &all, &judged, err);
    if (r)
        return r;
    one = (struct go_judged_run){.programs = all.programs,
                                 .places = all.places,
                                 .judged = &judged,
                                 .count = 1,
                                 .kind = judged.verdict.kind};
    if (!cli.json)
        return print_text(exploration, store, &one, err);
    print_json(exploration, &run, &one);
    return 0;
}
