/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What other goroutines of a process come to while one of them is held up, for `go explore`: a second hold
 * there makes a schedule that the first one alone does not, which a pair chosen blindly mostly fails to.
 */
#ifndef TRACECTL_CLI_GO_GO_MEANWHILE_H
#define TRACECTL_CLI_GO_GO_MEANWHILE_H

#include "collector/go/program.h"
#include "collector/go/strategy.h"
#include "store/streams/go_events.h"

/* Of one process. */
struct go_meanwhile;

struct go_meanwhile_options {
    struct go_program_file *file; /* which must outlive it */
    /* Whether the process has come to the place of a probe: an operation in the source may be at several
     * places of the code. */
    bool (*was_hit)(void *context, uint32_t probe);
    void *context;
};

/* -ENOMEM. */
int go_meanwhile_new(const struct go_meanwhile_options *options, struct go_meanwhile **ret_meanwhile);
/* Accepts NULL. */
void go_meanwhile_free(struct go_meanwhile *meanwhile);

/* The next event of the process. Pairs go to `strategy`. -ENOMEM. */
int go_meanwhile_event(struct go_meanwhile *meanwhile, const struct process_event *event,
                       struct go_strategy *strategy);

#endif
