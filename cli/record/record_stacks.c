/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/record_stacks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/order/kept_order.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/live/stat_live.h"

struct record_stacks {
    struct stack_sampler *sampler;
    struct sample_set *set;
    struct order_tree *order;
};

/* One sample of the existing threads; movement does not matter. */
static int look(const struct record_arguments *arguments, struct record_stacks *stacks, struct error *err)
{
    struct stat_live_options options;
    struct frame_source frames;
    int r = 0;

    stat_live_defaults(&options);
    options.samples = 1;
    options.children = arguments->recorder.targets.follow_children;
    for (size_t i = 0; r == 0 && i < arguments->pids.count; i++)
        if (kill(arguments->pids.items[i], 0) == 0 && !pid_list_add(&options.pids, arguments->pids.items[i]))
            r = error_no_memory(err);
    if (r == 0 && options.pids.count)
        r = stat_live_sample(&options, &stacks->sampler, &stacks->set, err);
    if (r == 0 && stacks->sampler) {
        frames = stack_sampler_source(stacks->sampler);
        r = order_tree_new(stacks->set, &(struct order_source){.frames = &frames}, true, &stacks->order, err);
    }
    stat_live_options_release(&options);
    return r;
}

struct record_stacks *record_stacks_take(const struct record_arguments *arguments)
{
    struct record_stacks *stacks = arguments->pids.count ? calloc(1, sizeof(*stacks)) : NULL;
    struct error err = {0};
    int r = stacks ? look(arguments, stacks, &err) : 0;

    if (r == 0 && stacks && stacks->order)
        return stacks;
    if (r < 0 && r != -ESRCH && cli.verbosity >= 0)
        text_print(stderr,
                   "tracectl: the positions of the threads were not stored, so stat cannot show "
                   "them: %s\n",
                   err.message);
    record_stacks_free(stacks);
    return NULL;
}

int record_stacks_keep(const struct record_stacks *stacks, struct tracestore *store, int64_t run_id,
                       struct error *err)
{
    return stacks ? kept_order_write(store, run_id, stacks->order, err) : 0;
}

void record_stacks_free(struct record_stacks *stacks)
{
    if (!stacks)
        return;
    order_tree_free(stacks->order);
    sample_set_free(stacks->set);
    stack_sampler_free(stacks->sampler);
    free(stacks);
}
