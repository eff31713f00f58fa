/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The images that a recording meets: each file once, with the plan of its probes if it is one to trace, and
 * the meaning of the indexes that probes carry in their cookies.
 *
 * Functions have numbers here, counted through all images of the recording; several probes may stand for one
 * function.
 */
#ifndef TRACECTL_COLLECTOR_IMAGES_IMAGE_TABLE_H
#define TRACECTL_COLLECTOR_IMAGES_IMAGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "collector/go/detail_policy.h"
#include "collector/go/targets.h"
#include "collector/images/caller_frames.h"
#include "collector/inline/inline_image.h"
#include "collector/plan/plan.h"
#include "collector/uprobe/uprobe.h"
#include "image/functions/stack_readers.h"
#include "store/api/tracestore.h"

struct error;

struct image_table;

#define NO_FUNCTION UINT32_MAX

enum image_kind { IMAGE_MAIN, IMAGE_LIBRARY };

struct go_program_file;
struct target_file;
struct known_site;

struct traced_image {
    uint32_t number;       /* of the image in this recording */
    struct stat file;      /* a file that has changed is another image */
    enum image_kind kind;  /* as it was first met */
    char *path;            /* as the first process that ran it saw it */
    bool shared;           /* other processes map it too: probed in one process at a time, entries only */
    bool chosen;           /* it is one to trace (image_table_options.want_image) */
    char *refusal;         /* why it is not probed although it was chosen; NULL: it is */
    struct elf_image *elf; /* NULL when it cannot be read */
    struct stack_reader stack_reader; /* image_stack_reader(), if return probes are wanted */
    bool translates;            /* its processes run other programs from copies: nothing in them is probed */
    struct go_program_file *go; /* of a Go program whose goroutines are recorded, or NULL */
    char *go_refusal;           /* why they are not although they are wanted; NULL: nothing to say */
    enum go_detail go_attached; /* how much of it is seen at present */
    bool *go_refused_by_kernel; /* of each of its targets; NULL: none has been attached */
    struct go_detail_policy go_detail_policy;

    /* From here on: unset unless it is probed. */
    struct image_function *functions;
    size_t function_count;
    struct plan *plan;
    uint32_t first_function; /* function i of the image has number first_function + i */
    uint32_t first_index;    /* probe i of the plan has index first_index + i */
    enum trace_returns returns;
    uint32_t entry_function; /* the probed entry point (_start), NO_FUNCTION if there is none */
    uint32_t main_function;  /* the probed main() */
    size_t site_count;       /* places in the file: two probes may share one */
    unsigned long *offsets;  /* of the places, and their cookies */
    uint64_t *cookies;
    bool *refused_by_kernel;      /* of each place */
    bool compared;                /* processes have been looked at for code that is not the file's */
    bool *differs;                /* of each function: some has, so it has no probe; NULL: none differs */
    bool *overwritten;            /* of each function: a process has overwritten a probe; NULL: none is */
    uint64_t left_ns;             /* since when (CLOCK_REALTIME) it has no probe any more; 0: it has */
    const char *left_reason;      /* why, for as long as the program runs */
    bool everywhere;              /* its probes are in all processes that map it, not in one at a time */
    int64_t image_id;             /* in the catalog, 0: not yet */
    struct inline_image *inlined; /* what has inline probes instead; NULL: nothing has */
    bool tells_rights;            /* the C library: its functions that change rights have been looked for */
    bool patched;                 /* a process has got them */
    char *not_inlined;            /* why not although it was wanted; NULL: nothing to say */
    /* Of a program, if libraries may be wanted: why processes that run it have no inline probes anywhere, for
     * as long as the program runs; NULL: nothing is against it. And as in struct inline_image. */
    const char *against_inline;
    bool may_lock;
    bool only_inline;             /* functions without one have no probe at all */
    struct caller_frames callers; /* of functions that are not probed */
    struct known_site *sites;     /* places that calls return to; image_table.c's own */
    bool in_use;                  /* only within recorder_release_images(): some process has it mapped */
    struct traced_image *next;
};

struct image_table_options {
    /* Which images are traced; NULL: programs, no libraries. `path` as the process sees it. */
    bool (*want_image)(void *context, const char *path, enum image_kind kind);
    bool (*want)(void *context, struct elf_image *image,
                 const struct image_function *function); /* NULL: every function */
    /* The name by which a wanted function was asked for: its own or one of its aliases; NULL: its own. */
    const char *(*asked_name)(void *context, struct elf_image *image, const struct image_function *function);
    void *context;
    bool (*timed)(void *context, const struct image_function *function); /* as in plan_options */
    void *timed_context;
    enum plan_returns returns;
    bool inlined; /* functions have inline probes where they can */
    const char
        *not_inlined; /* why they have none although `inlined` is wanted; NULL: nothing is against it */
    bool reports_slot_sharing; /* with `inlined`: as in inline_image_refusal() */
    bool only_inline;          /* with `inlined`: the kernel's probes cannot be used for the others */
    bool call_sites;           /* every call says where it came from */
    bool go_delays;            /* their goroutines may be held up */
    bool go_functions;         /* with `goroutines`: functions of Go programs, too */
    struct go_budget go_budget;
    enum go_detail goroutines; /* of Go programs, whether their functions are traced or not */
};

int image_table_new(const struct image_table_options *options, struct image_table **ret_table,
                    struct error *err);
void image_table_free(struct image_table *table);

/* What is known of a file before it is looked into. */
struct image_source_file {
    const struct target_file *file;
    const char *name; /* as people know it */
    const char *root; /* the root directory of the process that maps it, for its debug files; NULL: ours */
    enum image_kind kind;
    bool shared;
};

/* The image in a file; it is planned when it is new and chosen. An image that cannot be traced is an answer,
 * not an error: `refusal` is set. Errors are failures of ours: no memory, no permission. */
int image_table_get(struct image_table *table, const struct image_source_file *source,
                    struct traced_image **ret_image, struct error *err);

/* The image in the file if it is known already, or NULL. */
struct traced_image *image_table_known(const struct image_table *table, const struct stat *file);

/* Whether it has a plan to attach. */
static inline bool image_is_traced(const struct traced_image *image)
{
    return image->plan && !image->refusal;
}

/* Whether the image has functions, but none that is wanted. */
static inline bool image_selects_nothing(const struct traced_image *image)
{
    return image->plan && !image->plan->wanted;
}

/* Puts the image's probes in place, in one process or everywhere (`pid` 0; once). */
int image_table_attach(struct backend *backend, struct traced_image *image, pid_t pid, struct error *err);

/* The image has uprobes only: some process could not be patched, and none is. Before image_table_attach(). */
int image_table_leave_inline(struct image_table *table, struct traced_image *image, const char *why,
                             struct error *err);

/* The image is probed in one process at a time, entries only. Before image_table_attach(). */
int image_table_share(struct image_table *table, struct traced_image *image, struct error *err);

/* No function gets a probe that `image->differs` names; nor does any get an inline one. Before
 * image_table_attach(). */
int image_table_leave_differing(struct image_table *table, struct traced_image *image, struct error *err);

/* The image's id in the catalog, which it enters when it is first asked for. */
int image_table_image_id(struct trace_writer *writer, struct traced_image *image, int64_t *ret_image_id,
                         struct error *err);

/* Puts the probes on a Go program's goroutines in place that `detail` wants, in every process that runs it,
 * and takes the others away. */
int image_table_attach_go(struct uprobe_backend *backend, struct traced_image *image, enum go_detail detail,
                          struct error *err);

/* How many images have been met. */
uint32_t image_table_count(const struct image_table *table);

/* First of the list of all images, the newest first. */
struct traced_image *image_table_images(const struct image_table *table);

/* The function that probe `index` is for. NO_FUNCTION: no such probe. */
uint32_t image_table_probed_function(const struct image_table *table, uint32_t index);

/* Where a function lies, at link time. False: no such function. */
struct function_place {
    const struct traced_image *image;
    uint64_t address, size;
};
bool image_table_place(const struct image_table *table, uint32_t function, struct function_place *ret_place);

/* The store's function_id of a function; it enters the catalog when it is first asked for. -ENOENT: no such
 * function. */
int image_table_function_id(struct image_table *table, struct trace_writer *writer, uint32_t function,
                            uint32_t *ret_function_id, struct error *err);

/* The store's site_id of a call that returns to `address` (link-time) in any image that could be read. */
int image_table_site_id(struct image_table *table, struct trace_writer *writer, struct traced_image *image,
                        uint64_t address, uint32_t *ret_site_id, struct error *err);

/* Stores which wanted functions carry no probe, and as tags "untraced:PATH" which images carry none, with the
 * reasons. */
int image_table_store_blind(struct image_table *table, struct trace_writer *writer, struct error *err);

/* The function of `image` that `address` (link-time) lies in, if it is probed, or NO_FUNCTION. */
uint32_t image_table_find(const struct image_table *table, const struct traced_image *image,
                          uint64_t address);

#endif
