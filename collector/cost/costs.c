/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each form of function stands in several copies: unprobed, under an empty program, under the recorder's.
 * They are all probed at once and called by turns, round after round, so that what else the machine does
 * meets all of them alike; the medians of the rounds are compared.
 */
#include "collector/cost/costs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "bpf/wire.h"
#include "collector/cost/isolate.h"
#include "collector/cost/sites.h"
#include "collector/cost/trial.h"
#include "collector/uprobe/kernel_features.h"
#include "collector/uprobe/uprobe.h"

#define HITS_MIN 25
#define HITS_MAX 500
#define ROUND_NS 400000.0 /* a round of dear hits is not longer: a recording that begins waits for them */
#define ROUNDS 7
#define CALLS_ONLY (COOKIE_ENTRY_ONLY | COOKIE_CALLS_ONLY)
#define RING_BYTES (8u << 20) /* holds the records of a round */

/* What is called by turns. `cookie`: what the recorder is told to do there. */
static const struct entry {
    enum probe_cost cost;
    enum self_test_form form;
    enum self_test_copy empty, recorded;
    uint64_t cookie;
} entries[] = {
    {COST_CALL_EMULATED, FORM_PUSH, COPY_EMPTY, COPY_RECORDED, CALLS_ONLY},
    {COST_CALL_NOP, FORM_NOP, COPY_EMPTY, COPY_RECORDED, CALLS_ONLY},
    {COST_CALL_JUMP, FORM_JUMP, COPY_EMPTY, COPY_RECORDED, CALLS_ONLY},
    {COST_CALL_BRANCH, FORM_BRANCH, COPY_EMPTY, COPY_RECORDED, CALLS_ONLY},
    {COST_CALL_CALL, FORM_CALL, COPY_EMPTY, COPY_RECORDED, CALLS_ONLY},
    {COST_CALL_NOP5, FORM_NOP5, COPY_EMPTY, COPY_RECORDED, CALLS_ONLY},
    {COST_CALL_SINGLE_STEPPED, FORM_MOV, COPY_EMPTY, COPY_RECORDED, CALLS_ONLY},
    {COST_CALL_SUB, FORM_SUB, COPY_EMPTY, COPY_RECORDED, CALLS_ONLY},
    {COST_CALL_RET, FORM_RET, COPY_EMPTY, COPY_RECORDED, CALLS_ONLY},
    {COST_CALL_INFERRED, FORM_PUSH, COPY_EMPTY, COPY_RECORDED_INFERRED, COOKIE_ENTRY_ONLY},
    {COST_CALL_AND_RETURN, FORM_PUSH, COPY_EMPTY_RETURN, COPY_RECORDED_RETURN, 0},
};

/* Whether kernels without sessions can do it. */
static bool is_possible(const struct entry *entry, const struct probe_costs *costs)
{
    return costs->sessions || entry->cookie & COOKIE_ENTRY_ONLY;
}

const char *probe_cost_name(enum probe_cost cost)
{
    static const char *const names[] = {
        [COST_CALL_EMULATED] = "call_emulated",
        [COST_CALL_NOP] = "call_nop",
        [COST_CALL_JUMP] = "call_jump",
        [COST_CALL_BRANCH] = "call_branch",
        [COST_CALL_CALL] = "call_call",
        [COST_CALL_NOP5] = "call_nop5",
        [COST_CALL_SINGLE_STEPPED] = "call_single_stepped",
        [COST_CALL_SUB] = "call_sub",
        [COST_CALL_RET] = "call_ret",
        [COST_CALL_INFERRED] = "call_inferred",
        [COST_CALL_AND_RETURN] = "call_and_return",
        [COST_RETURN] = "return",
    };

    return names[cost];
}

/* Everything that is attached while the calls are timed. */
struct arms {
    struct uprobe_backend *backend;
    struct life_cycle_source *source; /* of it */
    struct trial empty, empty_session;
    uint64_t records; /* that have arrived */
};

static int count_record(void *context, const void *record, size_t size)
{
    const struct wire_header *header = record;
    uint64_t *records = context;

    if (header->kind == WIRE_CALL || header->kind == WIRE_CALL_FROM || header->kind == WIRE_RETURN)
        ++*records;
    return 0;
}

static void take_records(struct arms *arms)
{
    arms->source->of->want_all(arms->source);
    while (arms->source->of->consume(arms->source, 1u << 16, count_record, &arms->records) > 0)
        ;
}

static int attach_recorder(struct arms *arms, struct probe_costs *costs)
{
    struct backend *calls = uprobe_calls(arms->backend);
    unsigned long offsets[ARRAY_SIZE(entries)];
    uint64_t cookies[ARRAY_SIZE(entries)];
    bool refused[ARRAY_SIZE(entries)] = {false};
    AUTO_CLOSE int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct probe_sites sites = {
        .file = own, .name = "tracectl", .offsets = offsets, .cookies = cookies, .refused = refused};
    size_t count = 0;
    int r = own < 0 ? error_set(&costs->why, -errno, NULL, "cannot open tracectl itself")
                    : arms->source->of->add_process(arms->source, getpid(), 0, &costs->why);

    for (size_t i = 0; !r && i < ARRAY_SIZE(entries); i++) {
        if (!is_possible(&entries[i], costs))
            continue;
        cookies[count] = entries[i].cookie | i;
        r = self_test_site_offset(self_test_site(entries[i].form, entries[i].recorded), &offsets[count++]);
    }
    sites.count = count;
    return r ? r : calls->of->attach_sites(calls, &sites, 0, &costs->why);
}

static int attach_empty(struct arms *arms, struct probe_costs *costs)
{
    self_test_function functions[SELF_TEST_FORMS];
    self_test_function with_return = self_test_site(FORM_PUSH, COPY_EMPTY_RETURN);
    int r = trial_load(&arms->empty, "empty", TRIAL_CALLS);

    for (int form = 0; form < SELF_TEST_FORMS; form++)
        functions[form] = self_test_site((enum self_test_form)form, COPY_EMPTY);
    if (!r)
        r = trial_probe(&arms->empty, functions, NULL, SELF_TEST_FORMS, 0);
    if (!r && costs->sessions)
        r = trial_load(&arms->empty_session, "empty_session", TRIAL_SESSION);
    if (!r && costs->sessions)
        r = trial_probe(&arms->empty_session, &with_return, NULL, 1, 0);
    return r ? error_set(&costs->why, r, NULL, "cannot attach empty programs") : 0;
}

static int attach(struct arms *arms, struct probe_costs *costs)
{
    const struct uprobe_options options = {
        .ring_bytes = RING_BYTES,
        .with_time = true,
        .packed = true,
        .returns = kernel_has_sessions(),
    };
    int r = uprobe_backend_open(&options, &arms->backend, &costs->why);

    if (r)
        return r;
    arms->source = uprobe_life_cycle(arms->backend);
    costs->loads = true;
    costs->sessions = options.returns;
    r = attach_recorder(arms, costs);
    return r ? r : attach_empty(arms, costs);
}

static void detach(struct arms *arms)
{
    uprobe_backend_free(arms->backend);
    trial_end(&arms->empty);
    trial_end(&arms->empty_session);
}

/* CPU nanoseconds of one call. */
static double time_call(self_test_function function, unsigned hits)
{
    uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);

    for (unsigned i = 0; i < hits; i++)
        function();
    return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun) / hits;
}

static unsigned hits_of_a_round(const struct entry *entry)
{
    double hits = ROUND_NS / time_call(self_test_site(entry->form, entry->empty), HITS_MIN);

    return hits < HITS_MIN ? HITS_MIN : hits < HITS_MAX ? (unsigned)hits : HITS_MAX;
}

static int by_value(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof(*values), by_value);
    return values[ROUNDS / 2];
}

/* Medians of what a probed call takes longer than an unprobed one. Returns how often the recorder was hit. */
static uint64_t time_entry(struct arms *arms, const struct entry *entry, struct probe_costs *costs)
{
    double empty_ns[ROUNDS], recorded_ns[ROUNDS];
    unsigned hits = hits_of_a_round(entry);

    for (int round = 0; round < ROUNDS; round++) {
        double plain = time_call(self_test_site(entry->form, COPY_PLAIN), hits);

        empty_ns[round] = time_call(self_test_site(entry->form, entry->empty), hits) - plain;
        recorded_ns[round] = time_call(self_test_site(entry->form, entry->recorded), hits) - plain;
        take_records(arms);
    }
    costs->empty_ns[entry->cost] = median(empty_ns);
    costs->recorded_ns[entry->cost] = median(recorded_ns);
    return (uint64_t)hits * ROUNDS;
}

static void measure(void *answer)
{
    struct probe_costs *costs = answer;
    struct arms arms = {.empty = {.probe = -1}, .empty_session = {.probe = -1}};
    uint64_t expected = 0;

    if (attach(&arms, costs)) {
        detach(&arms);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        if (!is_possible(&entries[i], costs))
            continue;
        expected += (entries[i].cookie & COOKIE_ENTRY_ONLY ? 1u : 2u) * time_entry(&arms, &entries[i], costs);
    }
    detach(&arms);
    costs->delivers = arms.records == expected;
    if (!costs->delivers)
        error_say(&costs->why, -EIO, "probes on tracectl itself delivered %llu of %llu records",
                  (unsigned long long)arms.records, (unsigned long long)expected);
}

static double added_by_return(const double *ns)
{
    return ns[COST_CALL_AND_RETURN] ? ns[COST_CALL_AND_RETURN] - ns[COST_CALL_EMULATED] : 0;
}

void probe_costs_measure(struct probe_costs *ret_costs)
{
    int r;

    memset(ret_costs, 0, sizeof(*ret_costs));
    r = isolate(measure, ret_costs, sizeof(*ret_costs));
    if (r < 0)
        error_set(&ret_costs->why, r, NULL, "cannot start a child process");
    else if (r > 0)
        error_say(&ret_costs->why, -EIO, "a process with probes on itself was ended by signal %d", r);
    ret_costs->recorded_ns[COST_RETURN] = added_by_return(ret_costs->recorded_ns);
    ret_costs->empty_ns[COST_RETURN] = added_by_return(ret_costs->empty_ns);
}
