/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to image/: where an indirect jump of a switch leads. Read are the two forms that gcc and clang
 * write:
 *
 *     lea table(%rip), %a;  movslq (%a, %i, 4), %b;  add %a, %b;  jmp *%b      distances from the table
 *     jmp *table(, %i, 8), or  mov table(, %i, 8), %b;  jmp *%b                addresses
 *
 * and how many entries there are from the comparison with the index's bound before it. Without such a
 * comparison, and with every other form, the jump is not resolved: a table that is read too far would make
 * ways that do not exist.
 */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_SWITCH_H
#define TRACECTL_IMAGE_FLOW_FLOW_SWITCH_H

#include "image/arch/disasm.h"
#include "image/elf/elf_image.h"

/* The instructions of one straight run, the indirect jump last; and all that were read of the function so
 * far, where the table's address may have been put into a register before a loop. */
struct flow_run {
    const struct instruction *items;
    size_t count;
    const struct instruction *all;
    size_t all_count;
};

/* The targets of the jump at the end of `run`, in the order of the table: the caller frees *ret_targets.
 * -ENOENT: not resolved; -ENOMEM. */
int flow_switch_targets(struct elf_image *image, const struct flow_run *run, uint64_t **ret_targets,
                        size_t *ret_count);

#endif
