/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which functions a return probe would harm. The kernel implements it by overwriting the return address when
 * the probe is hit, so it is harmless only where that address lies where the stack pointer
 * points, is used by the return alone, and the
 * frame ends with it. Some functions return twice, switch stacks, or look at where they were called
 * from (setjmp, vfork, dlsym). They are known by their names, and by what they do where names have been
 * stripped.
 */
#ifndef TRACECTL_COLLECTOR_PLAN_RETURN_RULES_H
#define TRACECTL_COLLECTOR_PLAN_RETURN_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a return probe on this name (mangled; plain or NAME@plt) would harm the program, whatever the
 * image. */
bool return_name_forbids(const char *name);

/*
 * The same from the function's code: whether it
 *
 * - pops, reads or writes its return address, or takes the address of where that lies, as far as the stack
 * pointer is known (up to the first jump; through the frame pointer in all of a function with a frame
 * pointer);
 * - loads the stack pointer from memory that is not in its own frame, exchanges it, stores it elsewhere than
 * in its frame, or copies it from a register and then pops, returns or jumps through a register without
 * having found its frame again;
 * - calls the kernel for a return from a signal, for a clone or a vfork;
 * - cannot be decoded to its end.
 *
 * Compilers make code like that for none of these reasons too (variable-length arrays are recognised, not
 * everything is): such a function only goes without its return probe.
 */
bool return_code_forbids(const uint8_t *code, size_t size, uint64_t address);

/* What a function's code does that return probes on other functions would harm. */
enum return_code_trait {
    RETURN_CODE_WALKS = 1,      /* it takes its frame's address, or the saved frame pointer out of it */
    RETURN_CODE_DISPATCHES = 2, /* it has system calls handed to the program (PR_SET_SYSCALL_USER_DISPATCH) */
};

/* The set of them, as far as the code can be decoded. `prctl`: where calls of prctl() go, its stub; 0: there
 * are none. */
unsigned return_code_traits(const uint8_t *code, size_t size, uint64_t address, uint64_t prctl);

#endif
