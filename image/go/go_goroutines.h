/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What it takes to find the goroutines of a Go process and to walk their stacks, from the file alone,
 * stripped or not: where the runtime keeps its list of goroutines, and how large the frames of functions are.
 */
#ifndef TRACECTL_IMAGE_GO_GO_GOROUTINES_H
#define TRACECTL_IMAGE_GO_GO_GOROUTINES_H

#include <stdint.h>

#include "image/elf/elf_image.h"

/* The link-time address of runtime.allgs, a slice (pointer, length, capacity) of pointers to all structs g
 * that there ever were, read off the code of runtime.allgadd, which appends to it. -ENOENT: not found;
 * -ENOMEM.
 */
int go_goroutines_find(struct elf_image *image, uint64_t *ret_allgs);

/* How the walk continues from a function of Go. */
enum go_stack_rule {
    GO_STACK_UNKNOWN,  /* the table does not know the code: it is not Go's */
    GO_STACK_SWITCHES, /* the function goes over to another stack, or its frame's size is not known */
    GO_STACK_CALLER,   /* the return address lies above the function's frame */
    GO_STACK_TOP,      /* nobody has called it: the outermost function of a stack */
};

/* The rule for code at `address`, link-time (of a caller: inside its call instruction). GO_STACK_CALLER:
 * `*ret_size` is the distance from the stack pointer to the return address. By the table that the runtime's
 * own unwinder uses (pcsp of .gopclntab). */
enum go_stack_rule go_stack_rule(struct elf_image *image, uint64_t address, uint64_t *ret_size);

#endif
