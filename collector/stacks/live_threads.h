/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The threads of processes as the kernel sees them at this moment (bpf/threads.bpf.c): which run, how often
 * each has been switched, and the user registers of those that are off the processor. Nobody is stopped for
 * it.
 */
#ifndef TRACECTL_COLLECTOR_STACKS_LIVE_THREADS_H
#define TRACECTL_COLLECTOR_STACKS_LIVE_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/arch/registers.h"

struct error;

/* The registers that unwinding needs, in DWARF's order. */
enum {
    LIVE_SP = DWARF_STACK_REGISTER,
    LIVE_PC = DWARF_RETURN_COLUMN,
    LIVE_REGISTERS = DWARF_RETURN_COLUMN + 1
};

/* The kernel nests no more return probes than this on one stack. */
enum { LIVE_REPLACED = 64 };

/* Numbers of system calls, 64 in a word. */
enum { LIVE_CALL_WORDS = 8 };

/* A return address that a return probe has replaced. */
struct live_replaced {
    uint64_t slot;    /* where it stands on the stack */
    uint64_t address; /* the true one */
};

struct live_thread {
    pid_t tid, pid;
    bool on_cpu;    /* it runs, and the registers are worth nothing */
    bool runnable;  /* it runs or wants to */
    uint32_t state; /* task_struct.__state: 0 runs or wants to, else a TASK_... of the kernel's sched.h */
    int64_t system_call; /* the number of the call that it is in; -1: it came into the kernel another way */
    bool is_64_bit;      /* it was in 64-bit code when it entered the kernel */
    bool has_filter;     /* of seccomp */
    uint64_t allowed
        [LIVE_CALL_WORDS]; /* then a bit for each system call that it allows whatever the arguments are; all 0
                                          before Linux 5.11 */
    uint64_t switches; /* how often it has been taken off a processor: unchanged, it has not run in between */
    uint64_t registers[LIVE_REGISTERS];
    uint64_t thread_block;                    /* fs: at the upper end of its stack, but for the main thread */
    uint64_t main_stack;                      /* an address at the upper end of the main thread's stack */
    uint64_t signal_stack, signal_stack_size; /* of sigaltstack(2); 0, 0: none */
    size_t replaced_count;
    struct live_replaced replaced[LIVE_REPLACED]; /* the innermost first */
};

/* All zero is an empty list. */
struct live_threads {
    struct live_thread *items; /* by ascending tid, once live_threads_sort has been called */
    size_t count, capacity;
};

void live_threads_release(struct live_threads *threads);

struct live_reader;

/* Loads the iterator. It costs some milliseconds and needs what recording needs. */
int live_reader_open(struct live_reader **ret_reader, struct error *err);

/* Accepts NULL. */
void live_reader_close(struct live_reader *reader);

/* Appends the threads of process `pid`; a process that is gone has none. On failure the list is as it was. */
int live_reader_list(struct live_reader *reader, pid_t pid, struct live_threads *threads, struct error *err);

/* The same for thread `tid` alone. */
int live_reader_list_thread(struct live_reader *reader, pid_t tid, struct live_threads *threads,
                            struct error *err);

void live_threads_sort(struct live_threads *threads);

/* NULL: there is none. The list must be sorted. */
struct live_thread *live_threads_find(const struct live_threads *threads, pid_t tid);

#endif
