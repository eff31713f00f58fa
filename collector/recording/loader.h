/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Brings probes to the code of traced processes: to their programs at exec or when they are attached to, to
 * libraries when the dynamic linker has mapped them, to the children that inherit mapped libraries.
 *
 * A program's probes are in every process that runs it, since a traced process's children are traced too, and
 * no other process's hits are recorded. A library that other processes map as well is probed in each traced
 * process on its own, so that the others do not pay.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_LOADER_H
#define TRACECTL_COLLECTOR_RECORDING_LOADER_H

#include <stdbool.h>
#include <sys/types.h>

#include "collector/backend/backend.h"
#include "collector/backend/life_cycle_source.h"
#include "collector/budget/budget.h"
#include "collector/images/image_table.h"
#include "collector/recording/trigger.h"
#include "collector/stream/streams.h"
#include "collector/sync/probes.h"
#include "collector/uprobe/uprobe.h"

struct error;

struct loader;

/* What a loader works with; all of it is borrowed. */
struct loader_options {
    struct image_table *images;
    struct life_cycle_source *source;
    struct backend *in_files;       /* puts probes into files */
    struct backend *in_processes;   /* and into processes, where images have such probes; NULL: none has */
    struct uprobe_backend *uprobes; /* for goroutines */
    struct streams *streams;
    struct sync_probes *sync; /* functions that synchronise are probed, too; NULL: none is */
    struct trigger *trigger;  /* calls are recorded in windows; NULL: all are */
    struct budget *budget;    /* what calls may cost; NULL: what they do */
    bool libraries;           /* image_table_options.want_image may choose some */
    bool skip_environment;    /* neither arguments nor the environment of processes are read */
    bool keep_arguments;      /* the command lines of processes are stored, not the paths of their programs */
};

int loader_new(const struct loader_options *options, struct loader **ret_loader, struct error *err);
void loader_free(struct loader *loader);

/* Looks at the program that `pid` runs and at all that it has mapped, and probes what is wanted. `starting`:
 * it has just been loaded, its libraries are still to come. `*ret_main` is the image of the program, traced
 * or refused. -ESRCH, -ENOENT: the process is gone. */
int loader_program(struct loader *loader, pid_t pid, bool starting, const struct traced_image **ret_main,
                   struct error *err);

/* Images that are new to trace in a process. */
struct loader_updates {
    unsigned images;
    unsigned stopped_for; /* of these: by inline probes, for which the process stood still */
};

/* The same for libraries only. `starting`: they are those that the program starts with; `*ret_updates`: what is new. */
int loader_libraries(struct loader *loader, pid_t pid, bool starting, struct loader_updates *ret_updates,
                     struct error *err);

/* Gives inline probes to a process that has none, though it runs a program that has: one that was born before
 * its parent was patched, or that was parted from it. `*ret_updates`: it has got them. */
int loader_give_inline(struct loader *loader, pid_t pid, bool *ret_updates, struct error *err);

/* A process has a child that runs the same code. `*ret_updates`: probes had to be brought to the child, which
 * may have run before they came. */
int loader_fork(struct loader *loader, pid_t parent, pid_t child, bool *ret_updates, struct error *err);

/* A process may be about to change the code at an address, or to copy it: takes the probes of the image that
 * lies there away, from all processes, permanently, unless its file tells which bytes change, and waits until
 * this one has none. The process stands still. `*ret_left`: there were any. -ENOMEM. */
int loader_rewrite(struct loader *loader, const struct wire_rewrite *record, bool *ret_left,
                   struct error *err);

/* Stores a tag "untraced:PATH" for each file that a process maps and that could not be opened, once. */
int loader_store_unopened(struct loader *loader, struct trace_writer *writer, struct error *err);

/* Whether a process was left without probes of its libraries since this was asked last, because too many have
 * them at once: every program that starts on the machine pays for each process that a library is probed in.
 */
bool loader_consume_skipped(struct loader *loader);

/* Whether a process was left without probes of a library since this was asked last, because its code in
 * memory is not that of the file. */
bool loader_consume_differing(struct loader *loader);

/* Whether a process was left without inline probes, and so without most of its probes, although others that
 * run the same program have them, since this was asked last. */
bool loader_consume_unpatched(struct loader *loader);

/* A process has ended. */
void loader_end(struct loader *loader, pid_t pid);

/* Another thread of a process has executed a program and become its main thread. The kernel ties the probes
 * that a process has separately to the main thread of before: they are in none of the new program's code, but
 * are told of others' hits there. Returns when there are none any more. */
void loader_replace_thread(struct loader *loader, pid_t pid);

#endif
