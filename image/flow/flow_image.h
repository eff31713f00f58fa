/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The map of an image's code, with what its data says about it: relocations, pointers, jump tables, exports.
 *
 * Jump tables: a table of 32-bit distances is reached by a `lea` of its own address, to which the distances
 * are added (gcc and clang, position-independent); so every address that code takes of data is tried as a
 * table, and entries are believed as long as each leads to the start of an instruction. Tables of addresses
 * are relocated, or in programs at a fixed address words of data that are addresses of code. What remains is
 * hand-written code that computes where it jumps to.
 *
 * Taken addresses: relocations, words of data (programs at a fixed address, packed relative relocations),
 * `lea`, immediates of programs at a fixed address, exported symbols, the entry point, DT_INIT and DT_FINI.
 * Not seen are 32-bit distances in data that are called through: relative vtables, which no compiler makes
 * unless told to, and Go's method tables.
 */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_IMAGE_H
#define TRACECTL_IMAGE_FLOW_FLOW_IMAGE_H

#include <stdbool.h>

#include "image/flow/flow_map.h"

struct error;

/* The map of `image`, which it borrows together with `functions` (image_functions() of it). In
 * `*ret_all_taken` whether FLOW_TAKEN can be relied upon: false where the image hides its symbols or
 * relocations (no section headers), or has them in a form that is not read. -ENOMEM. */
int flow_image_map(struct elf_image *image, const struct image_function *functions, size_t count,
                   struct flow_map **ret_map, bool *ret_all_taken, struct error *err);

#endif
