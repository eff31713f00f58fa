/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The last minutes of a recording, and runs made of them: a flight recorder.
 *
 * The window is a store of its own, "STORE-flight-PID-TIME", in which one run is written and its oldest
 * segments are deleted all the time (writer_window.h). A commit copies what is in it at that moment into
 * STORE, as an ordinary run, segment by segment, without decoding events: numbers of events, ids of functions
 * and sites are other ones there. It reads from a snapshot, so whoever records need not wait for it.
 *
 * The run begins with what is known of the time before the window: each thread's calls that were open at its
 * begin, with a loss of cause TRACE_LOSS_WINDOW before each and before the first event that was kept, of as
 * many events as have come and gone there. One more such loss, of no thread and unknown size, stands for
 * threads that had ended.
 */
#ifndef TRACESTORE_WINDOW_H
#define TRACESTORE_WINDOW_H

#include "store/api/tracestore.h"

/* What is not there because it was too old. Losses of this cause say nothing against the calls that are open:
 * those were known when the window began. */
#define TRACE_LOSS_WINDOW "before the window (flight)"

/* Tags of the run in the window: from when on it has everything, and whether that was shortened. */
#define WINDOW_FROM_TAG "window: from"
#define WINDOW_CUT_TAG "window: cut"

/* Makes the store for a window of a recording into the store at `path`, beside it, and gives its path, which
 * the caller frees. It is not synchronised to the disk: it survives the recorder, not the machine. What
 * recordings with a budget know of binaries (struct trace_budget_plan) is copied. */
int window_create(const char *path, char **ret_path, struct tracestore **ret_window, struct error *err);

/* Deletes the files. */
void window_delete(const char *window_path);

struct window_commit {
    const char *name;    /* of the run; NULL: that of the run in the window; "": one is made */
    const char *trigger; /* why it is made */
    uint64_t window_ns;  /* how long the window should be; 0: not known */
    /* Its recorder has died: the run is 'unfinished' from the last flush on. */
    bool is_cut;
};

struct window_committed {
    int64_t run_id; /* 0: there was nothing in the window */
    uint64_t from_ns, to_ns;
    uint64_t segments;
};

/* Makes a run in `store` of what is in the window now. An ended run gives an ended one with its status;
 * another one ends at its last flush. Nothing is left of one that fails. */
int window_commit(struct tracestore *window, struct tracestore *store, const struct window_commit *commit,
                  struct window_committed *ret_committed, struct error *err);

/* The windows beside the store at `path` whose recorders have died become runs, and are deleted. `ret_runs`:
 * how many. One that cannot be read is left alone: the last such failure is returned, when all have been
 * tried. */
int window_recover(const char *path, struct tracestore *store, uint64_t *ret_runs, struct error *err);

#endif
