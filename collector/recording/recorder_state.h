/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of a recording share: recorder.c begins it and keeps it going, recorder_attach.c takes in
 * processes that run, recorder_end.c ends it, recorder_parts.c says what its options mean to its parts.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_STATE_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_STATE_H

#include <errno.h>
#include <signal.h>

#include "base/error.h"
#include "collector/backend/backend.h"
#include "collector/backend/life_cycle_source.h"
#include "collector/budget/budget.h"
#include "collector/recording/loader.h"
#include "collector/recording/recorder.h"
#include "collector/recording/recorder_commands.h"
#include "collector/recording/trigger.h"
#include "collector/tracer/tracer.h"
#include "collector/uprobe/uprobe.h"

/* What is known of the probes that processes have (recorder_probes.h). */
struct probe_watch {
    uint64_t due_ns;    /* the next look, CLOCK_MONOTONIC; 0: there was none */
    uint64_t round_ns;  /* when this round over all processes began, CLOCK_REALTIME */
    uint64_t intact_ns; /* the same of the last one that was finished, or of the recording */
    pid_t *pids;        /* of this round */
    size_t next, count;
    unsigned reported; /* a bit for each enum probe_purpose */
};

/* A round of reading. */
struct recorder_round {
    uint64_t calls;      /* that backends have read themselves */
    uint64_t sampled_ns; /* when they looked how far threads had come */
    bool overtaken;      /* all records from before that have been read */
};

struct recorder {
    struct recorder_options options;
    struct trace_writer *writer;
    struct store_quota quota;
    struct uprobe_backend
        *uprobes;          /* goroutines and synchronisation; NULL: all is by ptrace. And, by their tables: */
    struct tracer *tracer; /* NULL: all is by BPF */
    struct error why_ptrace; /* why not by BPF; code 0: that was asked for */
    struct life_cycle_source *source;
    struct backend *in_files, *in_processes; /* the two kinds of backends; NULL: there is none */
    struct backend *backends[2];             /* both */
    size_t backend_count;
    struct image_table *images;
    struct streams *streams;
    struct loader *loader;
    struct trigger *trigger;  /* NULL: all calls are recorded */
    struct budget *budget;    /* NULL: calls may cost what they do */
    struct sync_probes *sync; /* NULL: none */
    struct go_watch *watch;   /* NULL: not watched */
    struct recorder_commands commands;
    struct recorder_excluded *left_out;
    size_t excluded_count, excluded_capacity;
    int epoll, stop;
    bool memory_reported; /* of segments closed early: at the end, once, however often ending is tried */
    bool closing;         /* programs that appear now are let go without probes */
    struct recorder_round round;
    uint64_t waited_ns;            /* how long threads have waited for the recorder, all together */
    struct wire_rewrite *rewrites; /* of programs that wait for it */
    size_t rewrite_count, rewrite_capacity;
    struct probe_watch probes;
    uint64_t rights_due_ns; /* recorder_check_rights(), CLOCK_MONOTONIC */
    struct error failure;   /* of what a record asked for; code 0: none */
    uint64_t life_cycle_losses, go_detail_ns;
    uint64_t images_checked_ns; /* recorder_release_images() */
    uint32_t images_checked;    /* how many there were */
    uint64_t flushed_ns;        /* 0: the recording has not begun */
    /* With a flight recorder: */
    struct call_watch *call_watch; /* NULL: no function is watched */
    pid_t *named;                  /* the command, and the processes that were attached by name */
    size_t named_count, named_capacity;
    volatile sig_atomic_t commit_asked;
    uint64_t watched_ns; /* the last look at calls that are open */
};

/* Records between two looks at the clock, so that commits come in time however busy the target is. */
#define RECORDER_ROUND (1u << 16)

/* Reads what is in the rings, up to about RECORDER_ROUND. Returns the number of records, or a failure. */
int recorder_consume(struct recorder *recorder, struct error *err);

/* What the options mean to the kernel side, and to the images; the latter may measure what hits take, a
 * third of a second long. */
struct uprobe_options recorder_uprobe_options(const struct recorder_options *options);
struct image_table_options recorder_image_options(const struct recorder_options *options);

/* Says in the store what processes were left without some of their probes since the last time. */
int recorder_note_skipped(struct recorder *recorder, struct error *err);

/* Whether a failure means that the process, or its file, is not there any more. */
static inline bool recorder_is_gone(int code)
{
    return code == -ENOENT || code == -ESRCH;
}

/* What a failure with one process of several means to the recording: 0 if it is that process's own (it has
 * ended, is traced by another program, cannot be read, there is no descriptor left for it ...); it is named
 * in the store then, as a tag "not recorded:PID". Otherwise `code`: no memory, or the store. `why` may be
 * NULL. */
int recorder_pass_over(struct recorder *recorder, pid_t pid, int code, const struct error *why,
                       struct error *err);
void recorder_failures_release(struct recorder *recorder);

/* Lets go processes whose exec record was lost, and once `closing` all that are held. They run on without
 * probes; the loss is in the store's totals. */
void recorder_release_forgotten(struct recorder *recorder);

/* Now and then: of images that no process has mapped any more, what can be read again is not kept in memory.
 */
void recorder_release_images(struct recorder *recorder, uint64_t now);

#endif
