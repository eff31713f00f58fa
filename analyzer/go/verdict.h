/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What became of a Go program's goroutines: GoAT's Procedure 2 (chapter 4 of Taheri's dissertation, 2022), on
 * the history of the run and not only on each goroutine's last event.
 *
 * A goroutine that has not ended is *stuck* when it waits for others (a channel, a lock, a wait group, a
 * condition) and nothing that may continue can release it. What may continue:
 *
 *     goroutines    that run, are ready to, are in a system call, sleep, wait for the network or for
 *                   the runtime, or whose state is not known; and all that one of them can release
 *     timers        that are pending, however late: the runtime may be late, and tracectl makes it so.
 *                   A timer is pending until the runtime has run it (GO_EVENT_TIMER_RUN)
 *     signals       that the program asked for (os/signal)
 *
 * What one of them can release:
 *
 *     lock          its holder can; for a reader also a writer that waits before it; where no holder is
 *                   known, anything; and a goroutine that has only ever unlocked it
 *     channel, condition, wait group
 *                   any goroutine can, whether it has used the object before or not; one that began in
 *                   package context only a channel of that package
 *     channel       a timer that sends can, if it is its own; one of package context, if the program is
 *                   not known to have made or used it; one that runs another function, any. A signal
 *                   can, if it is to be sent there
 *
 * So a goroutine is called stuck only where that is certain, as far as the record goes. While others are
 * alive, leaks at channels stay undecided ("not finished").
 *
 * When the main goroutine ends the process it releases nobody; another one that does breaks off what it might
 * have done. Where the runtime says that all goroutines are asleep, all are stuck. Of package testing, only
 * the goroutines that run the functions of tests count; those wait for their subtests inside package testing.
 */
#ifndef TRACECTL_ANALYZER_GO_VERDICT_H
#define TRACECTL_ANALYZER_GO_VERDICT_H

#include "analyzer/go/replay.h"

/* A timer that is due later than this after the last event lets nobody continue: nobody would wait for it. */
#define GO_TIMER_HORIZON_NS 30000000000u

/* The goid of the one that runs main.main, or package testing. */
enum { GO_MAIN_GOROUTINE = 1 };

enum go_verdict_kind {
    GO_VERDICT_PASS,
    GO_VERDICT_LEAK,            /* stuck goroutines are left over */
    GO_VERDICT_GLOBAL_DEADLOCK, /* nobody could continue, the main goroutine (or a test's) included */
    GO_VERDICT_CRASH,           /* a panic that nobody recovered, a fatal error, a signal */
    GO_VERDICT_TIMEOUT,         /* the time limit ended the run */
};

/* "pass", "leak", "global-deadlock", "crash", "timeout" */
const char *go_verdict_name(enum go_verdict_kind kind);

/* What a function, or a site, is a part of. */
enum go_role {
    GO_ROLE_PROGRAM,
    GO_ROLE_TIMERS,  /* packages time and context: their channels may be a timer's */
    GO_ROLE_TESTING, /* package testing, but for the functions that run tests in goroutines of their own */
    GO_ROLE_ALARM,   /* package testing's time limit */
};

/* By the name of a function ("testing.tRunner"), or of a site ("testing.(*T).Run:chan recv"). */
enum go_role go_role_of(const char *name);
/* Whether goroutines that begin with this function are the runtime's own. */
bool go_is_runtime(const char *function);

struct go_verdict_options {
    enum go_role (*role)(void *context, uint32_t function); /* NULL: all are the program's */
    void *context;
    bool has_exit_status; /* of the process: 0 to 255, or 128 + the signal that ended it */
    int exit_status;
    bool timed_out;  /* it was ended because it took too long */
    bool operations; /* operations were recorded (go_program) */
};

enum go_outcome_kind {
    GO_OUTCOME_STUCK,
    GO_OUTCOME_UNFINISHED, /* it may continue */
    GO_OUTCOME_UNKNOWN,    /* events are missing, or it has been waiting since before the recording */
};

/* Why a goroutine may continue. */
enum go_unblock {
    GO_UNBLOCK_NONE,
    GO_UNBLOCK_RUNS, /* or could */
    GO_UNBLOCK_SLEEPS,
    GO_UNBLOCK_NETWORK,
    GO_UNBLOCK_RUNTIME, /* it waits for something in the runtime or the standard library */
    GO_UNBLOCK_TIMER,
    GO_UNBLOCK_SIGNAL,
    GO_UNBLOCK_RELEASE, /* `by` can release it */
};

struct go_outcome {
    uint64_t goroutine;
    enum go_outcome_kind kind;
    enum go_unblock unblock;
    uint64_t by;
};

/* Why one goroutine waits for another. */
enum go_wait_for_reason {
    GO_WAIT_FOR_HOLDS,   /* the other holds the lock */
    GO_WAIT_FOR_WRITER,  /* the other waits to write, and readers must wait behind it */
    GO_WAIT_FOR_PEER,    /* only the other one has used the channel the other way, of those that live */
    GO_WAIT_FOR_ADDED,   /* the other has added to the wait group and not taken it back */
    GO_WAIT_FOR_SIGNALS, /* only the other one has signalled the condition */
};

struct go_wait_for {
    uint64_t goroutine, on; /* goids */
    uint64_t object;
    enum go_wait_for_reason reason;
    uint32_t site; /* where `on` took or used the object; 0: not known */
    uint64_t ns;   /* when */
};

struct go_test_verdict {
    uint64_t goroutine;
    uint32_t test; /* function_id */
    enum go_verdict_kind kind;
};

struct go_verdict {
    enum go_verdict_kind kind;
    struct go_outcome *outcomes; /* of goroutines of the program's own that have not ended, by goid */
    size_t outcome_count;
    size_t stuck, unfinished, unknown; /* of these */
    struct go_wait_for *cycle; /* stuck goroutines that wait for each other, the shortest such cycle */
    size_t cycle_count;
    struct go_test_verdict *tests;
    size_t test_count;
    uint64_t crashed; /* the goroutine that crashed; 0: not known, or no crash */
    int signal;       /* that ended the process; 0: none */
};

/* Judges at the last event; before go_replay_end or after it. Fails with -ENOMEM. */
int go_verdict_of(struct go_replay *replay, const struct go_verdict_options *options,
                  struct go_verdict *ret_verdict);
void go_verdict_release(struct go_verdict *verdict);

/* The operation that a stopped goroutine waits in: the innermost that had to wait; NULL: not known. */
const struct go_action *go_waiting_in(const struct go_goroutine *goroutine);

#endif
