/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/go_*.c: what operation a call is, and the parts of one that are in the code around it. */
#ifndef TRACECTL_IMAGE_GO_GO_OPERATIONS_H
#define TRACECTL_IMAGE_GO_GO_OPERATIONS_H

#include "image/functions/gopclntab.h"
#include "image/go/go_code.h"
#include "image/go/go_layout.h"
#include "image/go/go_usage.h"

enum {
    GO_FRAMES_MAX = 64,
    GO_READER_COUNT = 16, /* where a sync.RWMutex counts readers: behind {Mutex, two semaphores} */
};

struct go_call_kind {
    enum go_entry entry;
    enum go_object_kind object;
    enum go_operation operation;
    const char *inlined; /* the function whose inlined body the call is in; NULL: the call is the operation */
};

/* The kind of a call of `entry` with these frames, the innermost first, and how many of them belong to the
 * operation itself; NULL: it is none. */
const struct go_call_kind *go_call_kind_of(enum go_entry entry, const struct go_frame *frames, size_t count,
                                           size_t *ret_own_frames);

/* Whether a call of `entry` is the slow path of an operation that may be inlined. */
bool go_is_slow_path(enum go_entry entry);

/* ---------------------------------------------------------------------------------------------- fast paths
 */

/* The fast path whose slow path is the call at `call` (an index). False: there is none. */
bool go_fast_path_of(const struct go_code *code, size_t call, enum go_operation operation,
                     struct go_fast_path *ret_fast);

/* The fast path of a TryLock around the atomic instruction at `atomic`. False: no branch follows it. */
bool go_fast_path_of_try(const struct go_code *code, size_t atomic, struct go_fast_path *ret_fast);

/* ---------------------------------------------------------------------------------------------- details */

/* The cases of the runtime.selectgo call at `call`: up to `capacity`; their number, -1 where the code is not
 * understood. `setter`: the address of runtime.selectsetpc, 0 when there is none. */
int go_select_cases(struct elf_image *image, const struct go_code *code, size_t call, uint64_t setter,
                    struct go_case *cases, size_t capacity, bool *ret_blocks);

/* Whether the runtime.chanrecv2 call at `call` receives for a loop that ends when the channel is closed. */
bool go_is_range(struct elf_image *image, const struct go_code *code, size_t call);

/* The entry of the function that the runtime.newproc call at `call` starts; 0: not known. */
uint64_t go_started(struct elf_image *image, const struct go_code *code, size_t call);

#endif
