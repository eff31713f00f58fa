/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the code that processes run is the file's, looked at before probes are put into it.
 *
 * The kernel's probes take the instruction that they stand on from the file: it is what a hit carries out,
 * and what is put back in the end. Where a process has other bytes in memory (it patches itself, somebody
 * patches it, it has moved its code to huge pages) a probe would change what the program does. A probe of a
 * program is in all processes that run it, whether they are traced or not, so all of them are looked at.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_TEXT_CHECK_H
#define TRACECTL_COLLECTOR_RECORDING_TEXT_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/images/image_table.h"

struct error;

/* Marks in `image->differs` the functions of which some process has another first stretch, up to the end of
 * the probed instruction, or another instruction at one of their other probes. `*ret_read_elsewhere`: a
 * process maps the file as code without running it as its program, as translators of code do (valgrind). */
int text_check_all(struct traced_image *image, bool *ret_any, bool *ret_read_elsewhere, struct error *err);

/* Waits until the threads of all processes that map the image have left the system calls that they were in or about to
 * make (threads_progress()), `most_ns` at most. */
void text_check_settle(const struct traced_image *image, uint64_t most_ns);

/* As text_check_all() for one process; nothing is marked without `mark`. A process that is gone has no differences. */
int text_check_process(struct traced_image *image, pid_t pid, bool mark, bool *ret_any, struct error *err);

/* Whether the process has a breakpoint where the image has probes; true as well where that cannot be read, or is not
 * the file's code. */
bool text_check_has_probes(const struct traced_image *image, pid_t pid);

#endif
