/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Goroutine events of a run: what the goroutines of a process did, one sequence for each process in the order
 * in which it happened (GoAT's "execution concurrency trace", chapter 4 of Taheri's dissertation, 2022).
 *
 * A goroutine's operation begins with GO_EVENT_OPERATE. Its end has no event of its own: it is over when the
 * goroutine does the next thing that is not a part of it (analyzer/go/replay.h knows the rules). What happens
 * in between tells how it went: GO_EVENT_BLOCK when it had to wait, GO_EVENT_WAKE when it let another one go
 * on.
 *
 * Numbers are stored: they are append-only.
 */
#ifndef TRACECTL_STORE_STREAMS_GO_EVENTS_H
#define TRACECTL_STORE_STREAMS_GO_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/api/tracestore.h"
#include "store/streams/process_events.h"

struct error;

enum go_event_kind {
    GO_EVENT_CREATE =
        1,            /* `goroutine` makes `other`, at `site`, to run the function `value` (a function_id) */
    GO_EVENT_RUN,     /* `goroutine` begins to run, or continues */
    GO_EVENT_END,     /* `goroutine` has returned from its function, or called Goexit */
    GO_EVENT_OPERATE, /* `goroutine` begins `operation` on `object` at `site`; `value`: see enum go_op */
    GO_EVENT_CASE,    /* after OPERATE of a select: its case number `value` is of channel `object`;
                         GO_FLAG_SEND when it sends. A nil channel is 0. The default has no such event */
    GO_EVENT_RESULT,  /* the operation's answer, where it was seen: a select's case (-1: default), 1 or 0 for
                         what TryLock or an operation with GO_FLAG_TRY says */
    GO_EVENT_BLOCK,   /* `goroutine` stops to wait; `value`: its wait reason (struct go_wait_reason) */
    GO_EVENT_WAKE,    /* `goroutine` lets `other` continue; 0: the runtime does, for a timer or the network */
    GO_EVENT_YIELD,   /* `goroutine` goes to the end of the queue: runtime.Gosched, or it was preempted */
    GO_EVENT_TIMER, /* timer `object` is set: due at `value` (ns of CLOCK_REALTIME), then every `other` ns */
    GO_EVENT_TIMER_STOP, /* timer `object` is stopped */
    GO_EVENT_TEST,       /* `goroutine` begins to run the test function `value` (a function_id) */
    GO_EVENT_PANIC,      /* `goroutine` panics; it may recover */
    GO_EVENT_FATAL,      /* the runtime gives up; `value`: enum go_fatal */
    GO_EVENT_EXIT,       /* `goroutine` (0: the runtime) ends the process with status `value` */
    GO_EVENT_DELAY,  /* tracectl has held `goroutine` up at `site`, to let others go first (`go explore`): at
                        probe `other`, hit for the `value`th time, counted from 0; `object`: its struct g */
    GO_EVENT_LOST,   /* `value` events are missing here: what goroutines do is not known any more */
    GO_EVENT_DETAIL, /* from here on `value` (enum go_detail) is recorded of the process, for a budget */
    GO_EVENT_TIMER_RUN, /* timer `object` does what it is for; its effect is the thread's next event */
    GO_EVENT_SIGNALS,   /* `goroutine` asks package os/signal to send signals to channel `object` */
    GO_EVENT_KINDS,
};

/* What is recorded of a program. */
enum go_detail {
    GO_DETAIL_NONE,
    GO_DETAIL_LIVES,    /* creation and end: how many there are, made where */
    GO_DETAIL_SCHEDULE, /* also waiting and going on */
    GO_DETAIL_WAITING,  /* also what is done with channels, wait groups, conditions and timers, and with locks
                           that somebody waits for: enough for leaks of a service */
    GO_DETAIL_OPERATIONS, /* also locks that are free, the results of operations, and a stream of calls for
                             each goroutine */
    GO_DETAILS,
};

enum go_op {
    GO_OP_NONE,
    GO_OP_CHAN_MAKE,  /* value: capacity; `object` 0: not known */
    GO_OP_CHAN_SEND,  /* with GO_FLAG_TRY: of a select with one case and a default */
    GO_OP_CHAN_RECV,  /* the same */
    GO_OP_CHAN_RANGE, /* a receive of `for range c` */
    GO_OP_CHAN_CLOSE,
    GO_OP_SELECT, /* value: number of cases; GO_FLAG_TRY: has a default; `object` 0 */
    GO_OP_GO,     /* GO_EVENT_CREATE follows */
    GO_OP_MUTEX_LOCK,
    GO_OP_MUTEX_TRYLOCK,
    GO_OP_MUTEX_UNLOCK,
    GO_OP_RWMUTEX_LOCK,
    GO_OP_RWMUTEX_TRYLOCK,
    GO_OP_RWMUTEX_UNLOCK,
    GO_OP_RWMUTEX_RLOCK,
    GO_OP_RWMUTEX_TRYRLOCK,
    GO_OP_RWMUTEX_RUNLOCK,
    GO_OP_WAITGROUP_ADD, /* value: what is added */
    GO_OP_WAITGROUP_DONE,
    GO_OP_WAITGROUP_WAIT,
    GO_OP_COND_WAIT,
    GO_OP_COND_SIGNAL,
    GO_OP_COND_BROADCAST,
    GO_OP_ONCE_DO,
    GO_OP_SLEEP, /* value: ns */
    GO_OP_BLOCK, /* select {} */
    GO_OPS,
};

enum go_event_flags {
    GO_FLAG_TRY = 1,    /* the operation does not wait: there is a default */
    GO_FLAG_SEND = 2,   /* of GO_EVENT_CASE */
    GO_FLAG_TIMER = 16, /* of GO_EVENT_CASE behind GO_EVENT_TIMER: it sends on channel `object`, and does
                           nothing else. GO_EVENT_TIMER itself: it runs a function */
    GO_FLAG_DONE = 4,   /* the operation succeeded at once: a lock's fast path */
    GO_FLAG_INNER =
        8, /* a part of the operation around it: the locking inside sync.Cond.Wait, RWMutex.Lock */
};

enum go_fatal {
    GO_FATAL_OTHER,    /* a fatal error such as concurrent map writes */
    GO_FATAL_DEADLOCK, /* all goroutines are asleep */
    GO_FATAL_PANIC,    /* a panic that was not recovered */
};

/* "create", "operate"... and "chan send", "mutex lock"...; "?" for what is not known. */
const char *go_event_kind_name(unsigned kind);
const char *go_op_name(unsigned operation);
/* Whether a goroutine can be waiting in the operation. */
bool go_op_can_wait(unsigned operation);

/* ------------------------------------------------------------------------------------------ writing */

/* A process of the run is a Go program whose goroutines are recorded. Strings are copied. */
struct go_program_description {
    int64_t process_id, image_id;
    const char *version;             /* "go1.22.12" */
    bool operations;                 /* false: only creation, waiting and ends are recorded */
    const char *const *wait_reasons; /* by number; an entry may be NULL */
    size_t wait_reason_count;
    uint64_t from_ns; /* goroutines of before are known only by what they do after */
    bool from_start;  /* there are none of before */
};

/* Gives the writer of the process's PROCESS_STREAM_GO. A process that already is a Go program (it continues
 * with another one by exec) keeps its sequence; the new description replaces the old one. */
int trace_writer_go_program(struct trace_writer *writer, const struct go_program_description *program,
                            struct process_writer **ret_go, struct error *err);

/* An entry of the program's concurrency-usage model, for coverage; kept once for an image. */
struct go_usage_description {
    const char *function, *file;
    int line;
    enum go_op operation;
    bool standard;         /* of the standard library */
    bool blocks;           /* of a select: it has no default */
    const int *case_lines; /* of a select, by number; line 0: not known */
    const bool *case_sends;
    size_t case_count;
};
int trace_writer_go_usages(struct trace_writer *writer, int64_t image_id,
                           const struct go_usage_description *usages, size_t count, struct error *err);

/* ------------------------------------------------------------------------------------------ reading */

struct go_program {
    int64_t process_id, image_id, run_id;
    char *label; /* the process's number, P of P.gN */
    char *version;
    char *image; /* path */
    bool operations, from_start;
    uint64_t from_ns;
    uint64_t events;
    char **wait_reasons; /* NULL where there is none of that number */
    size_t wait_reason_count;
};

/* The Go programs of a run, by label. Free with go_programs_free. */
int go_programs(struct tracestore *store, int64_t run_id, struct go_program **ret_programs, size_t *ret_count,
                struct error *err);
void go_programs_free(struct go_program *programs, size_t count);

struct go_usage_row {
    int64_t usage_id;
    char *function, *file;
    int line;
    enum go_op operation;
    bool standard, blocks;
    int *case_lines;
    bool *case_sends;
    size_t case_count;
};
/* The usages of an image, by file, line and operation. Free with go_usage_rows_free. */
int go_usage_rows(struct tracestore *store, int64_t image_id, struct go_usage_row **ret_rows,
                  size_t *ret_count, struct error *err);
void go_usage_rows_free(struct go_usage_row *rows, size_t count);

#endif
