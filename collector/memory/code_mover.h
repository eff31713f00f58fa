/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that run a copy of code instead of the code: breakpoints would be copied with it, and the copies
 * are not the kernel's probes any more but traps that kill the program. Three kinds of such programs are recognised
 * beforehand:
 *
 * - translators, which map other programs and run what they make of them (valgrind's tools);
 * - programs that move their own code to huge pages if an option says so (node --use-largepages);
 * - programs that move memory (mremap) and know where their code begins and ends (ClickHouse): by the symbols
 *   that a linker defines only for who asks for them. Their configuration is not known.
 *
 * Of others (stripped ones, HHVM, PHP) those that map memory to run the copy in are noticed when they do
 * (bpf/rewrites.h).
 */
#ifndef TRACECTL_COLLECTOR_MEMORY_CODE_MOVER_H
#define TRACECTL_COLLECTOR_MEMORY_CODE_MOVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "image/elf/elf_image.h"

/* Whether the image is a translator's: neither it nor what its processes map may be probed. */
bool code_mover_translates(struct elf_image *image);

/* Whether the image can move its own code. */
bool code_mover_can_move(struct elf_image *image);

/* Whether it must be expected to, whatever code_mover_is_configured() says. */
bool code_mover_moves(struct elf_image *image);

/* Whether the process, which runs such an image, was told to: by its arguments or its environment. */
bool code_mover_is_configured(pid_t pid);

#endif
