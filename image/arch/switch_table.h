/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table that an indirect jump of a switch takes its targets from, as compilers write it. */
#ifndef TRACECTL_IMAGE_ARCH_SWITCH_TABLE_H
#define TRACECTL_IMAGE_ARCH_SWITCH_TABLE_H

#include "image/arch/disasm.h"

/* The instructions of one straight run, the indirect jump last; and all that were read of the function so
 * far, where the table's address may have been put into a register before a loop. */
struct flow_run {
    const struct instruction *items;
    size_t count;
    const struct instruction *all;
    size_t all_count;
};

struct switch_table {
    uint64_t address;
    bool distances; /* of 4 bytes from the table, or else addresses of 8 */
    size_t entries;
};

/* The table of the jump at the end of `run`. False: it is not known, or how many entries it has is not: a
 * table that is read too far would make ways that do not exist. */
bool switch_table_find(const struct flow_run *run, struct switch_table *ret_table);

#endif
