/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The concurrency-usage model M of a Go program (GoAT: Taheri and Gopalakrishnan, "GoAT: automated
 * concurrency analysis and debugging tool for Go", IISWC 2021; chapter 4 of Taheri's dissertation, 2022):
 * where it makes, sends on, receives from and closes channels, selects, starts goroutines, and uses the locks
 * and the like of package sync. GoAT reads it from the source; here it is read from the program's file,
 * stripped or not: an operation is a call of a runtime or sync function, or the slow path of one that was
 * inlined. Hence what the compiler or the linker removed is not in the model, and neither is what is called
 * through an interface or a function value.
 */
#ifndef TRACECTL_IMAGE_GO_GO_USAGE_H
#define TRACECTL_IMAGE_GO_GO_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/elf/elf_image.h"

enum go_object_kind {
    GO_CHANNEL,
    GO_GOROUTINE,
    GO_MUTEX,
    GO_RWMUTEX,
    GO_WAITGROUP,
    GO_COND,
    GO_ONCE,
    GO_TIME,
};

enum go_operation {
    GO_MAKE,
    GO_SEND,
    GO_RECV,
    GO_RANGE, /* receives until the channel is closed: `for range`, or a loop that cannot be told from one */
    GO_CLOSE,
    GO_SELECT, /* of one case without default, the compiler makes a plain GO_SEND or GO_RECV */
    GO_GO,
    GO_LOCK,
    GO_TRYLOCK,
    GO_UNLOCK,
    GO_RLOCK,
    GO_TRYRLOCK,
    GO_RUNLOCK,
    GO_ADD,
    GO_DONE,
    GO_WAIT,
    GO_SIGNAL,
    GO_BROADCAST,
    GO_DO,
    GO_SLEEP,
};

/* A case of a select, by the number that runtime.selectgo returns. */
struct go_case {
    unsigned number;
    bool send;
    unsigned line; /* 0: not known (a channel that is always nil) */
};

/*
 * The fast path of an inlined lock operation: an atomic instruction on [base + index * scale + displacement],
 * which no probe can stand on, and the conditional branch behind it, which a probe can. That is where the
 * operation has happened, or has not: `slow_taken` tells which way leads to the slow path, or to the failure
 * of a TryLock; `condition` is instruction_condition_code() of the branch.
 */
struct go_fast_path {
    uint64_t atomic; /* address of the instruction with the LOCK prefix; 0: there is no fast path here */
    uint64_t branch;
    uint8_t condition;
    bool slow_taken;
    bool address_kept;   /* the registers still have the address at the branch */
    uint8_t base, index; /* enum machine_register */
    uint8_t scale;
    int32_t displacement;
    int32_t field; /* of the operand in the mutex: 0, or 16 for the count of readers of a RWMutex */
};

struct go_site {
    uint64_t address;  /* of the call; of the atomic instruction where nothing is called */
    uint64_t before;   /* of the instruction before, which a probe may stand on and which comes first on every
                          way; 0: there is no such instruction */
    uint64_t function; /* entry of the function that it is in, which others may have been inlined into */
    const char *callee; /* NULL: nothing is called */
    uint64_t starts;    /* of GO_GO: the entry of the function that the goroutine begins with; 0: not known */
    struct go_fast_path fast;
};

/* An instruction that changes memory atomically and is of no operation above: LOCK, or XCHG with memory. */
struct go_atomic {
    uint64_t address, function; /* as in struct go_site */
};

/* An operation in the source: one place there may be several in the code, where functions were inlined. */
struct go_usage {
    const char *file;
    unsigned line;
    const char *function; /* as in the source; where several share the line, the one with the shortest name */
    enum go_object_kind object;
    enum go_operation operation;
    bool standard;         /* of the runtime and the standard library */
    bool blocks;           /* of a select: it has no default */
    const char *starts;    /* of GO_GO: the function that the goroutine begins with; NULL: not known */
    struct go_case *cases; /* of a select, by number; in the model's memory */
    size_t case_count;
    struct go_site *sites; /* in the model's memory, by address */
    size_t site_count;
};

struct go_model {
    struct go_usage *usages; /* by file, line, object and operation */
    size_t count;
    struct go_site *sites;
    struct go_case *cases;
    struct go_atomic *atomics; /* in functions of the program's own, by address within each function */
    size_t site_count, case_count, atomic_count;
};

/* Reads the model of `image`. Strings live as long as the image. -ENOENT: not a Go program; -ENOTSUP: its
 * lines cannot be read. go_model_release() in any case. */
int go_model_read(struct elf_image *image, struct go_model *ret_model, struct error *err);
void go_model_release(struct go_model *model);

/* "channel", "send"... */
const char *go_object_name(enum go_object_kind object);
const char *go_operation_name(enum go_operation operation);

#endif
