/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flight recorder: of a recording only the last minutes are kept (store/writer/window.h), and become a
 * run when a trigger fires.
 *
 * A process of its own, the committer, makes the runs: recording continues meanwhile. It is forked before
 * anything else is opened, so that it holds no probe in place, and ends with its parent.
 *
 * What the program does (a crash, a slow call) may fire again and again: the runs that come of it do not
 * overlap. One whose window is not over yet since the last waits until it is, and has all that came
 * meanwhile. Who asks for a run has one at once.
 */
#ifndef TRACECTL_COLLECTOR_FLIGHT_FLIGHT_H
#define TRACECTL_COLLECTOR_FLIGHT_FLIGHT_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/functions/functions.h"
#include "store/api/tracestore.h"

struct error;

#define FLIGHT_BYTES ((size_t)64 << 20) /* of a window, by default */

enum flight_event {
    FLIGHT_CRASH, /* a recorded process dies by a signal that is not sent to end it in order */
    FLIGHT_EXIT,  /* the command, or a process that was named, ends with a status */
    FLIGHT_CALL,  /* a function is called */
    FLIGHT_SLOW,  /* a call takes longer */
    FLIGHT_END,   /* the recording ends */
};

#define FLIGHT_ANY (-1)     /* any status */
#define FLIGHT_NONZERO (-2) /* any but 0 */

struct flight_trigger {
    enum flight_event event;
    int status;       /* of FLIGHT_EXIT */
    uint64_t slow_ns; /* of FLIGHT_SLOW */
    regex_t function; /* of FLIGHT_CALL and FLIGHT_SLOW */
    char *text;
};

/* "crash", "end", "exit", "exit:any|nonzero|STATUS", "call:REGEX" or "slow:REGEX:TIME", where TIME is a
 * number and us, ms or s. -EINVAL. Free with flight_trigger_release. */
int flight_trigger_parse(const char *text, struct flight_trigger *ret_trigger, struct error *err);
void flight_trigger_release(struct flight_trigger *trigger);

/* Whether the trigger is about calls of functions; and whether of this one. */
static inline bool flight_trigger_is_of_function(const struct flight_trigger *trigger)
{
    return trigger->event == FLIGHT_CALL || trigger->event == FLIGHT_SLOW;
}
bool flight_trigger_wants(const struct flight_trigger *trigger, const struct image_function *function);

/* What a run was made of, or why none was. */
struct flight_report {
    int64_t run_id; /* 0: there is none */
    char name[128], trigger[256], error[512];
    uint64_t from_ns, to_ns; /* CLOCK_REALTIME */
};

struct flight_options {
    const char *store_path;
    const char *name; /* of the runs, the second of which is NAME.2; NULL: they are named by the command */
    uint64_t window_ns;
    size_t window_bytes;                   /* 0: FLIGHT_BYTES */
    const struct flight_trigger *triggers; /* borrowed */
    size_t trigger_count;
    struct trace_retention keep; /* what the store keeps, looked at after each commit */
    void (*told)(void *context, const struct flight_report *report); /* may be NULL */
    void *context;
};

struct flight;

/* Forks the committer, has windows that dead recorders have left become runs, and makes a window. To be
 * called before stores and BPF are opened. */
int flight_new(const struct flight_options *options, struct flight **ret_flight, struct error *err);

/* The store that the recording goes to. */
struct tracestore *flight_store(const struct flight *flight);
const struct flight_options *flight_options_of(const struct flight *flight);

/* Which functions are to be watched: a slow call of them is one that takes longer than `ret_slow_ns`, 0: any
 * time will do; `ret_calls`: each call counts. */
bool flight_watches(const struct flight *flight, const struct image_function *function, uint64_t *ret_slow_ns,
                    bool *ret_calls);
/* Whether any function is. `slow`: for the time it takes. */
bool flight_has_functions(const struct flight *flight, bool slow);

/* Whether it is watched for the time that its calls take; the signature is that of plan_options.timed. */
bool flight_times(void *flight, const struct image_function *function);

/* A trigger has fired, or would if it is one of the options'. */
void flight_fire(struct flight *flight, const char *why);
void flight_process_ended(struct flight *flight, int pid, int wait_status, bool is_named);
/* Somebody asks for a run, now. */
void flight_ask(struct flight *flight, const char *why);

/* Whether a commit is due: what has been recorded is to be flushed, and flight_commit to be called. */
bool flight_is_due(struct flight *flight, uint64_t now_ns);
/* Has the committer begin. `now_ns`, as above, is CLOCK_MONOTONIC. */
int flight_commit(struct flight *flight, uint64_t now_ns, struct error *err);
/* Hears whether it has finished. */
int flight_listen(struct flight *flight, struct error *err);

/* The recording has ended and its run, too: commits what is pending, and what is to be committed at the end
 * (`failed`: in any case), and waits for it. When that cannot be done the window stays, for 'tracectl
 * recover'.
 */
int flight_finish(struct flight *flight, bool failed, struct error *err);

/* How many runs were made; the last one, 0: none. Triggers that fired while another was pending. */
struct flight_counts {
    unsigned commits, failures;
    uint64_t fired;
    int64_t last_run;
};
struct flight_counts flight_counts(const struct flight *flight);

/* Deletes the window, unless flight_finish had to leave it. Accepts NULL. */
void flight_free(struct flight *flight);

#endif
