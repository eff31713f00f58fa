/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a program asks the kernel to let it write to its own code, or for memory that it could run a copy in:
 * its stubs of mprotect(), mmap() and the like, or, in static programs and the C library, these functions
 * themselves. A probe there sees the request before it is made (bpf/rewrites.h).
 *
 * Not seen are requests by system calls of the program's own instructions, by calls without a stub
 * (-fno-plt), and by libraries that are not probed.
 */
#ifndef TRACECTL_COLLECTOR_PLAN_REWRITE_GATES_H
#define TRACECTL_COLLECTOR_PLAN_REWRITE_GATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/functions/functions.h"

#define REWRITE_GATES_MAX 16

struct rewrite_gates {
    unsigned long offsets[REWRITE_GATES_MAX]; /* in the file */
    uint64_t cookies[REWRITE_GATES_MAX];      /* enum rewrite_gate_kind of bpf/wire.h */
    size_t count;
};

/* Whether the function is one. */
bool rewrite_gate_is(const struct image_function *function);

/* The gates among the functions of an image; those that are left over get none. */
void rewrite_gates_find(const struct image_function *functions, size_t count,
                        struct rewrite_gates *ret_gates);

#endif
