/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to gopclntab*.c: inline trees (Go's runtime/symtabinl.go). A function into which others were
 * inlined has a pc table that gives the tree's node for each instruction (-1: none), and the tree as
 * funcdata: nodes with the inlined function's name and the place of an instruction of the call's line in the
 * caller. Since go 1.18 funcdata are offsets from moduledata.gofunc, one of the words of runtime.moduledata;
 * which one differs from version to version: the word is taken with which trees of many functions make sense.
 */
#ifndef TRACECTL_IMAGE_FUNCTIONS_GOPCLNTAB_INLINE_H
#define TRACECTL_IMAGE_FUNCTIONS_GOPCLNTAB_INLINE_H

#include "image/functions/gopclntab_table.h"

/* Whether the instruction at `distance` from the entry was inlined into the function; then the name of the
 * innermost inlined function, and the distance of an instruction that has the line, and belongs to the
 * caller, of its call. */
bool go_inline_at(struct elf_image *image, struct gopclntab *table, const struct go_function *function,
                  uint64_t distance, const char **ret_name, uint64_t *ret_call_site);

#endif
