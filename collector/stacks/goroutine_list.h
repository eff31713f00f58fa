/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The goroutines of a live Go process, as its runtime keeps them in its memory: read, never written, and
 * no thread is stopped for it. The process continues meanwhile: what was read is of one moment only where it is
 * the same before and after.
 */
#ifndef TRACECTL_COLLECTOR_STACKS_GOROUTINE_LIST_H
#define TRACECTL_COLLECTOR_STACKS_GOROUTINE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/stacks/code_images.h"
#include "image/go/go_layout.h"

struct error;

/* Values of g.atomicstatus (runtime2.go), without the bit for "its stack is being scanned". */
enum goroutine_status {
    GOROUTINE_IDLE = 0,
    GOROUTINE_RUNNABLE = 1,
    GOROUTINE_RUNNING = 2,
    GOROUTINE_IN_SYSTEM_CALL = 3,
    GOROUTINE_WAITING = 4,
    GOROUTINE_DEAD = 6,
    GOROUTINE_COPYING_STACK = 8,
    GOROUTINE_PREEMPTED = 9,
};

struct goroutine {
    uint64_t address; /* of its struct g, which stays for ever, and may become another goroutine's */
    uint64_t goid;
    uint32_t status; /* enum goroutine_status */
    uint8_t wait_reason;
    uint64_t thread;                /* its struct m, or 0 */
    uint64_t stack_low, stack_high; /* bounds of its stack */
    uint64_t saved_sp, saved_pc;    /* where it continues; not while it runs */
    uint64_t called_sp, called_pc;  /* where it made its system call; only while it is in it */
};

/* All zero is empty. */
struct goroutines {
    struct goroutine *items; /* by ascending address */
    size_t count, capacity;
};

/* What the program of a process says about its goroutines. */
struct go_runtime {
    pid_t pid;
    struct code_image *image;
    uint64_t bias; /* what the image's addresses are moved by */
    uint64_t list; /* where runtime.allgs is, in the process */
    struct go_layout layout;
};

/* Looks whether the program that maps its code at `start`, from `offset` of the file, is Go's. -ENOENT: it is
 * not. -ENOTSUP: it is, but something is not known of this version; the line says what. -ENOMEM.
 * go_runtime_release() in any case. */
int go_runtime_find(struct code_image *image, pid_t pid, uint64_t start, uint64_t offset,
                    struct go_runtime *ret_runtime, struct error *err);
void go_runtime_release(struct go_runtime *runtime);

/* Reads all goroutines that are alive. What cannot be read is not in the list. -ENOMEM. */
int goroutines_list(const struct go_runtime *runtime, struct goroutines *ret_list);

/* The goroutine whose struct g is at `address`, or NULL. */
const struct goroutine *goroutines_find(const struct goroutines *list, uint64_t address);

/* Reads these again; one that is dead by now has goid 0. -ENOMEM. */
int goroutines_again(const struct go_runtime *runtime, const struct goroutine *before, size_t count,
                     struct goroutine *ret_now);

void goroutines_release(struct goroutines *list);

/* Whether it has not gone on in between, as far as its struct tells. */
bool goroutine_rests(const struct goroutine *before, const struct goroutine *now);

/* The thread that a struct m is of, and the bounds of the stack that the runtime itself uses on it. False:
 * not known. `tids` are the process's threads, ascending. */
struct go_thread {
    pid_t tid;
    uint64_t stack_low, stack_high;
};
bool go_thread_find(const struct go_runtime *runtime, uint64_t thread, const pid_t *tids, size_t count,
                    struct go_thread *ret_thread);

#endif
