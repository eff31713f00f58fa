/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sample: where each thread of some processes is at one moment, as a stack of places in code.
 *
 * Whoever takes it (a sampler of live processes, a reader of recorded runs) fills the set; the analysis of
 * order (prefix_tree.h, relative_progress.h) reads it, and asks back for the value of a register or of a word
 * on the stack only where the order depends on one (struct frame_source).
 *
 * Threads of one program stand at the same places again and again: texts, images and places are kept once,
 * and a stack is a row of numbers of places. The set owns all its memory; what its functions hand out is
 * borrowed until something is added or the set is freed.
 */
#ifndef TRACECTL_ANALYZER_ORDER_SAMPLE_H
#define TRACECTL_ANALYZER_ORDER_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* No image, no address, no rank. Texts that are not known are number 0, the empty text. */
#define SAMPLE_NO_IMAGE UINT32_MAX
#define SAMPLE_NO_ADDRESS UINT64_MAX
#define SAMPLE_NO_RANK (-1)

struct sample_image {
    uint32_t path;     /* text: what people call it */
    uint32_t file;     /* text: where it can be opened now (/proc/PID/map_files/..., /proc/PID/root/...) */
    uint32_t build_id; /* text: lower-case hexadecimal; 0 when it has none */
};

enum sample_place_flags {
    /* The compiler put the function's code into the place before this one, its caller: the address is the
       same. */
    SAMPLE_INLINED = 1 << 0,
    /* Between the caller and this place calls may be missing: the unwinder met something that it did not
     * understand, or only a part of the calls was recorded. */
    SAMPLE_AFTER_GAP = 1 << 1,
    /* What interrupted the caller was a signal, not a call: the address of the place before this one is that
     * of the instruction which had not been executed yet. */
    SAMPLE_SIGNAL = 1 << 2,
};

/* A point in the code of a function. Of a physical frame with inlined functions in it there are several
 * places, one behind the other, with the same image, address and entry: the function that has a frame first.
 */
struct sample_place {
    uint32_t image;    /* index of the image; SAMPLE_NO_IMAGE: code made at run time, or nothing known */
    uint32_t function; /* text: its name, demangled; 0 when unknown */
    uint32_t file;     /* text: the source file of `line`; 0 when unknown */
    uint32_t line;     /* 0 when unknown */
    /* Link-time address inside the image. Of a caller, that of a byte of its call instruction (the return
     * address minus 1); of the innermost place, of the next instruction. SAMPLE_NO_ADDRESS: only the function
     * is known. */
    uint64_t address;
    uint64_t
        entry; /* link-time address at which the physical function begins; SAMPLE_NO_ADDRESS when unknown */
    unsigned flags; /* enum sample_place_flags */
};

enum sample_thread_flags {
    SAMPLE_INCOMPLETE =
        1 << 0, /* the unwinder gave up before the thread's first function: outer places are missing */
    SAMPLE_MOVED = 1 << 1, /* it was elsewhere in another of several samples: it is not stuck */
};

struct sample_thread {
    pid_t process;  /* 0 for a recorded run */
    pid_t tid;      /* 0 for goroutines that no thread runs, and for recorded runs */
    int rank;       /* MPI rank, SAMPLE_NO_RANK when there is none */
    uint32_t label; /* text: "P.T" or "P.gN" */
    uint32_t name;  /* text: comm, or the function that a goroutine was begun with */
    uint32_t state; /* text: "sleeping", "running", "chan receive"...; 0 when unknown */
    unsigned flags; /* enum sample_thread_flags */
    size_t first;   /* of its places in sample_set.stacks, the outermost first */
    size_t count;
};

struct sample_set {
    struct sample_image *images;
    size_t image_count, image_capacity;
    struct sample_place *places;
    size_t place_count, place_capacity;
    struct sample_thread *threads;
    size_t thread_count, thread_capacity;
    uint32_t *stacks; /* numbers of places */
    size_t stack_count, stack_capacity;
    struct sample_index *index; /* private: which text, image or place has which number */
};

/* An empty set. -ENOMEM. */
int sample_set_new(struct sample_set **ret_set);
void sample_set_free(struct sample_set *set);

DEFINE_CLEANUP(cleanup_sample_set, struct sample_set *, sample_set_free)
#define AUTO_SAMPLE_SET CLEANUP(cleanup_sample_set)

/* The number of `text`, of which a copy is kept; 0 for NULL and "". -ENOMEM. */
int sample_set_text(struct sample_set *set, const char *text, uint32_t *ret_number);

/* The text with that number: "" for 0. */
const char *sample_text(const struct sample_set *set, uint32_t number);

/* Whether it is a goroutine, and not a thread of the system: their labels are "P.gN". */
bool sample_is_goroutine(const struct sample_set *set, const struct sample_thread *thread);

/* The number of an image. Images with the same build id are one, or without build ids those with the same
 * path; then the `file` that was given first is kept. `build_id` may be NULL. -ENOMEM. */
int sample_set_image(struct sample_set *set, const char *path, const char *file, const char *build_id,
                     uint32_t *ret_number);

/* The number of a place that is like `place`; texts and image in it are numbers of this set. -ENOMEM. */
int sample_set_place(struct sample_set *set, const struct sample_place *place, uint32_t *ret_number);

/* Adds a thread whose stack is `count` numbers of places, the outermost first; `first` and `count` of
 * `thread` are filled in here. -ENOMEM, and the set is as before. */
int sample_set_thread(struct sample_set *set, const struct sample_thread *thread, const uint32_t *places,
                      size_t count);

/* The place of frame `frame` of thread `thread`, both counted from 0, frames from the outermost. */
static inline const struct sample_place *sample_place_of(const struct sample_set *set, size_t thread,
                                                         size_t frame)
{
    return &set->places[set->stacks[set->threads[thread].first + frame]];
}

/* ---------------------------------------------------------------------------------------------- asking back
 */

enum frame_value_kind {
    FRAME_REGISTER, /* `number` is a DWARF register number */
    FRAME_CFA, /* memory at the frame's canonical frame address (the stack pointer before the call) + `offset` */
    FRAME_ADDRESS, /* memory of the frame's image, `offset` is a link-time address */
};

/* Where a value is found in a frame. */
struct frame_value {
    enum frame_value_kind kind;
    unsigned number; /* of FRAME_REGISTER */
    int64_t offset;  /* of the others */
    uint8_t size;    /* bytes: 1, 2, 4 or 8; of a register the lowest ones */
    bool is_signed;  /* how it is widened to 64 bits */
};

/* How the analysis asks for a value. The answer must be of the same moment as the stack: where the thread has
 * run since, the source says -ESTALE (or reads what it kept). A register that the unwinder cannot restore for
 * that frame is -ENODATA, as is all else that is not known; errors that concern the process, such as -ESRCH,
 * are handed on. */
struct frame_source {
    void *context;
    /* `thread` and `frame` as in sample_place_of(); of a frame with inlined functions any of its places may
     * be named. */
    int (*read)(void *context, size_t thread, size_t frame, const struct frame_value *value,
                int64_t *ret_value);
};

#endif
