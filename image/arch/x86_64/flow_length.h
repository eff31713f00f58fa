/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long an instruction of x86-64 is, from tables: all that is needed to walk through a whole image. It stands beside
 * Capstone for its speed: 15 ns per instruction of the C library where Capstone needs 260, which for the larger
 * programs means seconds.
 *
 * The tables follow the opcode maps of the Intel manual (volume 2D, appendix A) and, for XOP and 3DNow!,
 * AMD's (volume 3, appendix A). They say how operands are laid out, not whether a processor has the
 * instruction: some bytes get a length although they are none, so a site for a probe is never chosen by this
 * alone. Two forms have no one answer: a 16-bit displacement behind E8, E9 and 0F 8x with prefix 66 (Intel
 * ignores the prefix, AMD does not) is called undecodable.
 */
#ifndef TRACECTL_IMAGE_ARCH_X86_64_FLOW_LENGTH_H
#define TRACECTL_IMAGE_ARCH_X86_64_FLOW_LENGTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the instruction at `code`, 1 to 15 bytes, or -EILSEQ: none of 64-bit mode, or one that goes
 * on beyond `size`. */
int flow_length(const uint8_t *code, size_t size);

/* Whether a ModRM byte follows this opcode: `second` is the byte behind 0F, where `first` is that. Not for
 * VEX, EVEX and XOP. */
bool flow_has_modrm(uint8_t first, uint8_t second);

#endif
