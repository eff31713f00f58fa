/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the loader: loader.c has what is asked of it, loader_survey.c finds out what a process has
 * mapped, loader_attach.c brings probes, loader_rewrite.c takes those of an image away. */
#ifndef TRACECTL_COLLECTOR_RECORDING_LOADER_STATE_H
#define TRACECTL_COLLECTOR_RECORDING_LOADER_STATE_H

#include <uthash.h>

#include "collector/images/linkers.h"
#include "collector/process/maps.h"
#include "collector/recording/loader.h"

/* The probes of an image, or the one on a dynamic linker, in one process. */
struct attachment {
    uint64_t key;               /* key_of() */
    struct traced_image *image; /* NULL: a linker */
    pid_t pid;
    UT_hash_handle hh;
};

/* A mapped file that could not be opened. */
struct unopened {
    char *path;
    int code;
    bool told;
    UT_hash_handle hh;
};

struct loader {
    struct loader_options options;
    bool skipped, unpatched, differing; /* since it was asked last: loader_consume_skipped() and so on */
    struct attachment *attachments;
    struct linkers linkers;
    struct unopened *unopened;
    bool unopened_updates;
};

/* More removals than that under way: processes come and go faster than the kernel takes probes away. */
#define LOADER_CLOSING_MAX 16
/* So long between two looks whether the kernel has taken probes away. */
#define LOADER_POLL_US 500

/* How many removals of probes are under way. */
static inline unsigned loader_closing(const struct loader *loader)
{
    return loader->options.in_files->of->closing(loader->options.in_files);
}

/* Whether code beside programs' own is probed. */
static inline bool loader_probes_libraries(const struct loader *loader)
{
    return loader->options.libraries || loader->options.sync;
}

/* Why a process is looked at. */
enum survey_reason {
    SURVEY_EXEC,    /* it begins to run the program */
    SURVEY_PRESENT, /* it has the libraries that it starts with, or runs since before the recording */
    SURVEY_LOADED,  /* it has loaded libraries since, or unloaded them */
};

/* Goes through all that a process has mapped, whose program is the file `program`, and probes what is wanted;
 * `*ret_updates`: see loader_libraries(). */
int loader_survey(struct loader *loader, pid_t pid, const struct stat *program, enum survey_reason reason,
                  struct loader_updates *ret_updates, struct error *err);

/* Watches the dynamic linker that a process has now, once. 1: it is watched; 0: that is not possible. */
int loader_watch_linker(struct loader *loader, pid_t pid, const struct code_mapping *mappings, size_t count,
                        struct error *err);

/* Notes that a mapped file could not be opened. -ENOMEM. */
int loader_note_unopened(struct loader *loader, const char *path, int code, struct error *err);

/* Whether what has this number (an image's, or a linker's) is attached to this process separately. */
bool loader_has_attachment(const struct loader *loader, uint32_t number, pid_t pid);
/* Notes that it is; `image` is NULL for a linker. -ENOMEM. */
int loader_add_attachment(struct loader *loader, uint32_t number, struct traced_image *image, pid_t pid,
                          struct error *err);
/* Whether the image's uprobes are in the process. */
bool loader_is_attached(const struct loader *loader, const struct traced_image *image, pid_t pid);
/* Whether the process has inline probes. */
bool loader_has_inline(const struct loader *loader, pid_t pid);

/* Attaches an image that `pid` maps and that is not probed there yet. `running`: the process runs it as its
 * program, and has done so for a while. */
int loader_attach(struct loader *loader, struct traced_image *image, pid_t pid, bool running,
                  struct error *err);
/* Gives an image its inline probes in a process, or gives them up: for all processes that have it, if none of
 * them has been patched (a uprobe would be written over a jump, in children of a patched one too). `mapping`:
 * of a library's code; NULL: it is the program. `*ret_placed`: it had none until now. */
int loader_attach_inline(struct loader *loader, struct traced_image *image, pid_t pid,
                         const struct code_mapping *mapping, bool *ret_placed, struct error *err);

/* Takes all probes of an image away, from all processes, permanently, and waits until `pid`, which stands
 * still, has none; or makes sure that it gets none. -ENOMEM. */
int loader_leave(struct loader *loader, struct traced_image *image, pid_t pid, const char *why,
                 struct error *err);

/* A process begins to run other programs from copies of their code, and stands still: makes sure that nothing
 * that it may map has a breakpoint. -ENOMEM. */
int loader_translator(struct loader *loader, pid_t pid, struct error *err);

/* Probes the functions of a C library by which a process changes its rights, once, in all processes. -ENOMEM
 * and errors of the kernel. */
int loader_watch_rights(struct loader *loader, struct traced_image *image, struct error *err);

#endif
