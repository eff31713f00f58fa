/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The instructions by which a PLT stub leaves through a slot of the GOT. */
#ifndef TRACECTL_IMAGE_ARCH_PLT_ENTRY_H
#define TRACECTL_IMAGE_ARCH_PLT_ENTRY_H

#include "image/arch/disasm.h"

/* Whether it jumps through a slot, and which. */
bool plt_entry_exit(const struct instruction *instruction, uint64_t *ret_slot);

/* Whether it loads a slot, for a call or jump to a piece of code that goes there. */
bool plt_entry_load(const struct instruction *instruction, uint64_t *ret_slot);

#endif
