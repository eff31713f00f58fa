/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stubs of x86-64. The layout of what they write, and what they do, is in collector/inline/record.h; here is
 * how their code is cut.
 *
 *     lea    -128(%rsp), %rsp         } behind the red zone: what the function may still read
 *     push   %rax;  push %rcx;  ...   } of two registers, and of rax for the flags
 *     lahf;  seto %al                 }
 *     (take a record, or else go aside; write it)
 *     add    $127, %al;  sahf         }
 *     pop    ...                      }
 *     lea    128(%rsp), %rsp          }
 *     the displaced instructions
 *     jmp    FUNCTION + their length
 *
 * Every register and flag that the function may read has its value again before the first displaced
 * instruction: gcc's -fipa-ra keeps values of the caller in registers that a callee is known not to touch,
 * r10, r11 and the vector registers among them. Those that it overwrites first need not be saved
 * (liveness_x86_64.h): most functions leave some, and where two registers
 * and the flags are left the stub touches no stack at all. The red zone is left alone. Below it 24 bytes of
 * stack are written, as a signal frame would at any time; more on the way to the agent.
 *
 * What calls for which there is no room run through lies aside, so that the stubs that do get one lie closer.
 *
 * Signals. A handler may run between any two instructions, and the functions that it calls have stubs, which
 * work on the same slots of the same thread. Nothing is lost and nothing wrong, because
 *
 * - what the interrupted stub has saved lies on the stack above rsp, where the handler does not write, and
 *   what it has at hand lies in registers, which the kernel restores. No slot is used for either: the first
 *   instruction of a nested stub would have to overwrite it before it could know that it is nested. (Garbage
 *   collectors that stop threads by signals look for pointers on the stack and in its signal frames: they
 *   find the saved registers, too.)
 * - the record is taken by one instruction, which a signal comes before or after. Before: the handler's
 *   records come first, and the interrupted stub takes the one behind them. After: the record is the stub's
 *   own, whatever the handler appends, and its place says that it came before. A load and a store instead,
 *   which is what leaving the flags alone would take, would take back what the handler appended in between.
 *   (Without `lock` xadd is one instruction for signals, not for other processors; but the slots are the
 *   thread's own.)
 * - the same instruction brings the answer whether there was room. A limit in a second slot could be that of
 *   another chunk by the time it is read. Several stubs may find the chunk full before the first of them has
 *   come to the slow path: each gets a number that is not negative.
 * - the owner's check comes before, but a handler in between does not change whose slots they are; it may
 * only have given the thread another chunk, or found none. A call that is being counted as lost then counts
 * where the thread stood before the handler, or, past the agent, behind it. If it forks, the child goes on in
 * the interrupted stub as well, and writes the record that the parent writes, in the same place with the same
 * content. Every later stub of the child takes the slow path: the kernel has wiped the key.
 * - a handler may leave by longjmp and never come back to the stub: registers and stack pointer are those of
 *   setjmp then. If a record had been taken it stays unwritten; whoever reads the chunk counts it.
 * - a chunk that runs full during the handler is handed over with the interrupted stub's record not yet
 *   written. Its number is 0 until it is, since chunks are all zero when they are given out.
 *
 * The agent is called with the number in %ecx and the address of the return address in %rdx. It keeps
 * everything but %rcx, %rdx and the flags (%ax has the function's), copes with any alignment of the stack and
 * with DF set, appends the record itself or counts it, and returns with ret.
 *
 * LAHF and SAHF are missing in 64-bit mode from the first x86-64 processors, of 2003 to 2005.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_STUB_X86_64_H
#define TRACECTL_COLLECTOR_INLINE_STUB_X86_64_H

#include "collector/inline/stub.h"

extern const struct stub_arch stub_x86_64;

#endif
