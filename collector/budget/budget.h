/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The budget of a recording: keeps the cost of its probes below a share of the CPU time that the target needs
 * itself.
 *
 * It attaches the probes of programs in groups, counts their cost (accounts.h), decides which functions are
 * excluded (policy.h), moves the probes accordingly (attachment.h) and stores what was not recorded as rows
 * of `blind`.
 *
 * The kernel side (bpf/budget.h) keeps a limit from the first hit on. What is done here works some hundredths
 * of a second later, and makes an excluded function cost nothing: its group gets a new link without it, then
 * the old one is closed.
 *
 * Inline probes are counted by the reader of their records. They cost so little that they only go when the
 * uprobes are excluded and the cost is still too high; then the code of these functions is restored.
 *
 * Libraries, which are probed process by process, have the kernel side's limit only.
 */
#ifndef TRACECTL_COLLECTOR_BUDGET_BUDGET_H
#define TRACECTL_COLLECTOR_BUDGET_BUDGET_H

#include "collector/arch/record.h"
#include "collector/backend/backend.h"
#include "collector/budget/budget_status.h"
#include "collector/images/image_table.h"
#include "collector/stream/streams.h"
#include "store/api/tracestore.h"

struct budget;

struct budget_options {
    double share; /* 0.05: five percent of the target's own CPU time */
    struct image_table *images;
    struct backend *backend; /* of uprobes */
    struct backend *inlined; /* of inline probes; NULL: there are none */
    bool timed;              /* and they keep the time of each call */
    struct streams *streams;
    struct trace_writer *writer;
    struct tracestore *store;
    int stop; /* a descriptor that can be read when the recording is to end: then nothing waits any more */
    /* Reads the ring, so that the streams know all that was recorded up to now. */
    int (*consume)(void *context, struct error *err);
    void *context;
};

/* What a CPU may spend in a tick of the kernel's (uprobe_options.budget_ns). */
uint32_t budget_tick_ns(double share);

/* Measures the cost of probes on this machine, unless that is known: a third of a second. */
int budget_new(const struct budget_options *options, struct budget **ret_budget, struct error *err);
void budget_free(struct budget *budget);

/* budget_options.share; 0: `budget` is NULL. */
double budget_share(const struct budget *budget);

/* Probes an image in every process that maps it, as image_table_attach does; functions that were too hot when
 * the binary was recorded last begin excluded. `running`: processes that run it as their program are busy;
 * their stacks are sampled (a second at most), and functions that seem hot begin excluded, too, and come in
 * one by one. */
int budget_attach(struct budget *budget, struct traced_image *image, bool running, struct error *err);

/* Which functions of an image are to have no inline probe at present, of all its functions. */
void budget_inline_excluded(const struct budget *budget, const struct traced_image *image, bool *ret_out);

/* The image is probed in one process after the other, not by this. */
int budget_enrol(struct budget *budget, struct traced_image *image, struct error *err);

/* Removes all uprobes of an image permanently: `left_ns` says so. */
void budget_leave(struct budget *budget, const struct traced_image *image);

/* Before the recording begins, another process that runs has been given inline probes: observes their
 * cost, and excludes, in all processes, those that would be too much. So one process pays for what was
 * unknown, and not all of them. It is `part` of all processes: what the work on it took of busy processors is
 * spread.
 */
int budget_ramp_up_process(struct budget *budget, pid_t pid, double part, struct error *err);

/* Calls of a function have not been recorded since `ns`, CLOCK_MONOTONIC: it is over its budget. */
int budget_note_over_budget(struct budget *budget, uint32_t function, uint64_t ns, struct error *err);

/* Calls that inline probes have recorded, or had no buffer for. */
void budget_inline_calls(struct budget *budget, const struct agent_record *records, size_t count);
void budget_inline_lost(struct budget *budget, uint64_t calls);

/* Looks at the counts and acts upon them, if it is time. `now_ns`: CLOCK_MONOTONIC. */
int budget_sample(struct budget *budget, uint64_t now_ns, struct error *err);

/* After the last record: ends what is open, stores what was paid and the plan for the next recording. */
int budget_finish(struct budget *budget, struct error *err);

void budget_totals(const struct budget *budget, struct budget_totals *ret_totals);
int budget_functions(const struct budget *budget, struct budget_function_status **ret_functions,
                     size_t *ret_count, struct error *err);

#endif
