/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PLT stubs. Each linker has its own, of its own size, with and without IBT, MPX or retpolines, for lazy and
 * eager binding; some say so in the section's header and some do not. They have one thing in common, by which
 * they are found: they leave through a slot of the GOT (plt_entry.h), and the relocation of that slot names
 * the function.
 *
 * So the sections are decoded from their beginning. What leads up to such an exit is the stub's beginning:
 * what stands behind the exit or the jump before it, without padding. A stub reaches up to the next one: what
 * follows its exit is how a lazy one calls the dynamic linker.
 */
#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "image/arch/disasm.h"
