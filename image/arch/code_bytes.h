/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bytes of code may be where nothing is known of the instructions before them: read at every offset, or
 * out of the memory of a process.
 */
#ifndef TRACECTL_IMAGE_ARCH_CODE_BYTES_H
#define TRACECTL_IMAGE_ARCH_CODE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_TRAP_BYTES 1     /* a breakpoint */
#define CODE_CALL_BYTES 5     /* a direct call or jump of any distance */
#define CODE_CALL_LONGEST 7   /* an indirect call, with its operand */
#define CODE_DISTANCE_BYTES 4 /* at the end of direct calls, jumps and branches */

/* Whether a breakpoint begins there: the kernel's for a uprobe, or a debugger's. */
bool code_is_trap(const uint8_t *code);

/* Whether a direct call, or a direct jump, begins there: CODE_CALL_BYTES may be read. */
bool code_is_call(const uint8_t *code);
bool code_is_jump(const uint8_t *code);

/* Where a direct call or jump of CODE_CALL_BYTES at `address` leads. */
uint64_t code_call_target(const uint8_t *code, uint64_t address);

/* Whether the CODE_CALL_LONGEST bytes end with an indirect call. */
bool code_ends_with_indirect_call(const uint8_t *code);

/* Whether compilers leave such a byte behind a function: padding, a return, the end of a no-op. */
bool code_ends_function(const uint8_t *code);

/* ---------------------------------------------------------------------------------------------- distances */

/* Where the distance of CODE_DISTANCE_BYTES at `code` leads, which is loaded at `address`. */
uint64_t code_distance_target(const uint8_t *code, uint64_t address);

enum code_reference {
    CODE_NO_REFERENCE,
    CODE_REFERENCE_CALL,
    CODE_REFERENCE_JUMP,
    CODE_REFERENCE_BRANCH,  /* conditional */
    CODE_REFERENCE_POINTER, /* an operand in memory */
};

/* What the distance at `code` would be part of; `before` bytes before it may be read. Of all but a pointer,
 * the bytes between the beginning of the instruction and the distance in *ret_lead, if that is not NULL. */
enum code_reference code_reference(const uint8_t *code, size_t before, size_t *ret_lead);

/* The bytes before the distance where a call, jump or branch of any distance begins at `code`; 0: none does. */
size_t code_branch_lead(const uint8_t *code);

/* Whether the distance is the end of a long no-op, and all zero. */
bool code_distance_is_padding(const uint8_t *code, size_t before);

/* Whether the CODE_LOAD_BYTES at `code` load `value` for argument 0 or 1 of a call. */
#define CODE_LOAD_BYTES 5
bool code_loads_argument(const uint8_t *code, unsigned argument, uint32_t value);

#endif
