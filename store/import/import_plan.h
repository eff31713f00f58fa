/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the import of `.u16` directories (import_u16.h) share. */
#ifndef TRACESTORE_IMPORT_PLAN_H
#define TRACESTORE_IMPORT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/import/import_u16.h"

#define U16_WORDS 65536

/* One .u16 file. */
struct u16_file {
    char *name;         /* in the directory */
    char *group;        /* NAME.PID, or the name itself; orders the processes without a number */
    uint64_t pid, tid;  /* of NAME.PID.TID, else 0 */
    bool numbered;      /* its name is P.T */
    uint64_t process;   /* P */
    uint64_t thread;    /* T */
    size_t names_index; /* into plan->infos, SIZE_MAX: none */
};

struct u16_info {
    char *name;
    struct u16_names *names; /* parsed when first needed */
};

struct u16_plan {
    char *dir;
    struct u16_file *files;
    size_t file_count, file_capacity;
    struct u16_info *infos;
    size_t info_count, info_capacity;
};

/* Reads an .info file. Free with u16_names_free. */
int u16_names_read(const char *path, struct u16_names **ret_names, struct error *err);

/* The names of a file's functions, parsed when first needed; NULL: it has none. They belong to the plan. */
int u16_plan_names(struct u16_plan *plan, const struct u16_file *file, struct u16_names **ret_names,
                   struct error *err);

/* One file on its way through a pass; `thread` is NULL in the checking pass, and what follows it is not used.
 */
struct u16_pass {
    const char *path;
    const struct u16_names *names;
    struct u16_check check;
    struct trace_writer *writer;
    struct thread_writer *thread;
    const uint32_t *ids;                       /* function_ids of words; 0: not known yet: */
    int (*know)(void *context, uint32_t word); /* sets it */
    void *context;
    uint64_t depth; /* calls of the file that are open */
    uint64_t unflushed;
    struct error *err;
};

/* Reads a file, in pieces, and checks every word; with a `thread`, appends the words to it and flushes the
 * writer now and then. */
int u16_pass_file(const struct u16_plan *plan, const struct u16_file *file, struct u16_pass *pass);

#endif
