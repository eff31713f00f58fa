/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One program of bpf/self_test.bpf.c, loaded alone, on functions of our own. */
#ifndef TRACECTL_COLLECTOR_COST_TRIAL_H
#define TRACECTL_COLLECTOR_COST_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "collector/cost/sites.h"

struct bpf_link;
struct self_test_bpf;

struct trial {
    struct self_test_bpf *bpf; /* NULL: not loaded */
    struct bpf_program *program;
    struct bpf_link *link; /* of a tracepoint or an iterator */
    int probe;             /* what holds its probes, or -1 */
};

enum trial_kind { TRIAL_CALLS, TRIAL_SESSION };

/* Loads the program `name`. Returns 0 or a negative errno; trial_end() is due in either case. */
int trial_load(struct trial *trial, const char *name, enum trial_kind kind);

/* Whether its program is one of TRIAL_SESSION. Not before trial_load() has found the program. */
bool trial_is_session(const struct trial *trial);

/* Probes `count` functions at once, in every process (pid 0) or in one. -EOPNOTSUPP: the kernel has no way
 * for that. */
int trial_probe(struct trial *trial, const self_test_function *functions, const uint64_t *cookies,
                size_t count, pid_t pid);

/* The usual case: loads a program and puts it on the copy COPY_TRIAL of a form, in every process. */
int trial_begin(struct trial *trial, const char *name, enum trial_kind kind, enum self_test_form form);

/* Attaches a tracepoint or iterator program. */
int trial_attach(struct trial *trial);

/* Detaches and unloads everything. */
void trial_end(struct trial *trial);

static inline void cleanup_trial(struct trial *trial)
{
    trial_end(trial);
}
#define AUTO_TRIAL CLEANUP(cleanup_trial)

/* Why one of these returned `r`, in the kernel's words where it has any: "cannot load count_session: ...". */
void trial_failure(const struct trial *trial, int r, char *ret_text, size_t size);

#endif
