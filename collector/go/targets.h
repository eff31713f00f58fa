/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where probes go that see what goroutines do, in one Go program's file, and what a hit means.
 *
 * A function is probed where the kernel emulates the instruction and the arguments are still in their
 * registers: mostly the branch of the check for stack, which every hit but those that begin again passes. An
 * inlined lock is probed at the branch behind its atomic instruction.
 */
#ifndef TRACECTL_COLLECTOR_GO_TARGETS_H
#define TRACECTL_COLLECTOR_GO_TARGETS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "image/go/go_code.h"
#include "image/go/go_layout.h"
#include "image/go/go_usage.h"
#include "store/streams/go_events.h"

struct error;

struct go_target {
    uint64_t address; /* of the probed instruction, link-time */
    struct go_probe probe;
    enum go_op operation;         /* of GO_AT_OPERATION, SEND, RECV, SELECT, LOCK and RESULT */
    const struct go_usage *usage; /* the operation in the source that the place belongs to; NULL: a
                                     function's, or an atomic instruction's */
    bool slow_path;               /* of an operation whose beginning may have been seen elsewhere */
    bool single_stepped;
    enum go_detail detail; /* the least with which it is probed */
    uint64_t
        source; /* the operation's place in the code, where it is not the probe's own; 0: the record says */
};

struct go_targets {
    struct go_target *items; /* by address */
    size_t count, capacity;
};

/* Appends a target; NULL: no memory. */
struct go_target *go_targets_add(struct go_targets *targets, uint64_t address, enum go_place_kind kind,
                                 enum go_op operation);

/* Whether the instruction at index `at` is the branch of a function's check for stack, right behind the
 * comparison. */
bool go_is_stack_check(const struct go_code *code, size_t at);

/* Adds the places where goroutines can be held up, behind the others: before each operation and atomic
 * instruction of the program's own code, behind its go statements, and where goroutines begin. -ENOMEM. */
int go_targets_add_delays(struct elf_image *image, const struct go_layout *layout,
                          const struct go_model *model, struct go_targets *targets, struct error *err);

/* Finds the places of `image`; usages are pointers into `model`. -ENOTSUP: a place that nothing can be told
 * without is not there; the error line names it. -ENOMEM. go_targets_release() in any case. */
int go_targets_find(struct elf_image *image, const struct go_layout *layout, const struct go_model *model,
                    enum go_detail detail, struct go_targets *ret_targets, struct error *err);
void go_targets_release(struct go_targets *targets);

#endif
