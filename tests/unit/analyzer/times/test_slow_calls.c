/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slowest calls of functions and what they called, against SQL over the calls of random runs, computed naively. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/times/slow_calls.h"
#include "base/error.h"
#include "tests/unit/store/model.h"

enum { ALL = 100000, DEEP = 1000 };

/* A number of the naive tables. */
static int64_t number(struct model *model, const char *what, const char *where, int64_t thread, uint64_t a,
                      uint64_t b)
{
    char sql[500];

    snprintf(sql, sizeof(sql),
             "SELECT %s FROM x_calls WHERE run_id = 1 AND thread_id = %lld AND %s %llu AND %llu", what,
             (long long)thread, where, (unsigned long long)a, (unsigned long long)b);
    return model_number(model, sql);
}

static uint64_t calls_below(const struct slow_call *call, uint32_t node)
{
    uint64_t calls = call->nodes[node].calls;

    for (uint32_t child = call->nodes[node].child; child != SLOW_NO_NODE; child = call->nodes[child].sibling)
        calls += calls_below(call, child);
    return calls;
}

/* Children come once for each function, the longest first, with the calls of that function and their times. */
static void check_children(struct model *model, const struct slow_call *call)
{
    const struct slow_node *before = NULL;
    uint64_t calls = 0;

    for (uint32_t at = call->nodes[0].child; at != SLOW_NO_NODE; at = call->nodes[at].sibling) {
        const struct slow_node *node = &call->nodes[at];
        char what[300];

        cr_assert(!before || before->total.min_ns >= node->total.min_ns);
        before = node;
        calls += node->calls;
        snprintf(what, sizeof(what), "coalesce(sum(duration_min_ns) FILTER (WHERE function_id = %u), 0)",
                 node->function);
        cr_assert_eq((int64_t)node->total.min_ns,
                     number(model, what, "parent_seq BETWEEN", call->thread_id, call->seq, call->seq));
        snprintf(what, sizeof(what), "count(*) FILTER (WHERE function_id = %u)", node->function);
        cr_assert_eq((int64_t)node->calls,
                     number(model, what, "parent_seq BETWEEN", call->thread_id, call->seq, call->seq));
    }
    cr_assert_eq((int64_t)calls,
                 number(model, "count(*)", "parent_seq BETWEEN", call->thread_id, call->seq, call->seq));
}

static void check_call(struct model *model, const struct slow_call *call)
{
    uint64_t around = call->seq;

    cr_assert_eq(call->nodes[0].total.min_ns, call->duration.min_ns);
    cr_assert_eq(call->nodes[0].total.max_ns, call->duration.max_ns);
    cr_assert_eq((int64_t)calls_below(call, 0),
                 number(model, "count(*)", "seq BETWEEN", call->thread_id, call->seq, call->end_seq));
    check_children(model, call);
    for (size_t i = 0; i < call->caller_count; i++) {
        around = (uint64_t)number(model, "coalesce(max(parent_seq), -1)", "seq BETWEEN", call->thread_id,
                                  around, around);
        cr_assert_eq((int64_t)call->callers[i],
                     number(model, "max(function_id)", "seq BETWEEN", call->thread_id, around, around));
    }
    cr_assert_eq(
        number(model, "coalesce(max(parent_seq), -1)", "seq BETWEEN", call->thread_id, around, around), -1);
}

/* All calls of a function, and the first ones of them. Returns how many there are. */
static size_t compare(struct model *model, const char *name)
{
    struct slow_calls all, some;
    struct error err = {0};
    size_t count;
    char sql[300];

    cr_assert_eq(slow_calls_read(model->store, 1, name, ALL, DEEP, &all, &err), 0, "%s", err.message);
    cr_assert_eq(slow_calls_read(model->store, 1, name, 3, 1, &some, &err), 0, "%s", err.message);
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM x_calls WHERE run_id = 1 AND state = 'returned' AND name = '%s'", name);
    cr_assert_eq((int64_t)all.count, model_number(model, sql));
    cr_assert_eq(all.returned, all.count);
    for (size_t i = 0; i < all.count; i++) {
        check_call(model, &all.calls[i]);
        cr_assert(!i || all.calls[i - 1].duration.min_ns >= all.calls[i].duration.min_ns);
    }
    cr_assert_eq(some.count, all.count < 3 ? all.count : 3);
    for (size_t i = 0; i < some.count; i++) {
        cr_assert_eq(some.calls[i].seq, all.calls[i].seq);
        cr_assert_eq(some.calls[i].thread_id, all.calls[i].thread_id);
        cr_assert_eq(some.calls[i].nodes[0].self.min_ns, all.calls[i].nodes[0].self.min_ns,
                     "what is not kept counts");
        for (size_t node = 1; node < some.calls[i].node_count; node++)
            cr_assert_eq(some.calls[i].nodes[node].child, SLOW_NO_NODE, "one level only");
    }
    count = all.count;
    slow_calls_release(&some);
    slow_calls_release(&all);
    return count;
}

static void compare_model(struct model_options *options)
{
    struct model model;
    char *names, *rest;
    size_t found = 0;

    model_init(&model, options);
    names = model_rows(&model, "SELECT DISTINCT name FROM x_calls WHERE run_id = 1");
    for (char *name = strtok_r(names, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest))
        found += compare(&model, name);
    cr_assert_gt(found, 0);
    free(names);
    model_release(&model);
}

Test(slow_calls, are_those_of_sql)
{
    struct model_options options = {
        .runs = 2, .threads = 3, .events = 300, .segment_events = 70, .times = true};

    for (options.seed = 1; options.seed < 6; options.seed++) {
        options.lost_percent = options.seed % 3;
        options.unfinished = options.seed % 2;
        compare_model(&options);
    }
}

Test(slow_calls, without_times_are_unknown)
{
    struct model_options options = {.seed = 3, .runs = 1, .threads = 2, .events = 300};

    compare_model(&options);
}

Test(slow_calls, of_a_function_that_is_not_called)
{
    struct model_options options = {.seed = 3, .runs = 1, .threads = 2, .events = 300, .times = true};
    struct slow_calls calls;
    struct model model;

    model_init(&model, &options);
    cr_assert_eq(slow_calls_read(model.store, 1, "no such function", 5, 5, &calls, NULL), 0);
    cr_assert_eq(calls.count + calls.returned + calls.unreturned, 0);
    slow_calls_release(&calls);
    model_release(&model);
}
