/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The libraries that a program would load, as its dynamic linker tells them. */
#ifndef TRACECTL_COLLECTOR_PROCESS_NEEDED_H
#define TRACECTL_COLLECTOR_PROCESS_NEEDED_H

#include <stddef.h>

struct error;

/* Asks `interpreter` (PT_INTERP) for the libraries of `program`: runs it with --list, as ldd does; nothing of
 * the program runs. The caller frees the paths and the list. A linker that does not know --list gives none.
 */
int libraries_needed(const char *interpreter, const char *program, char ***ret_paths, size_t *ret_count,
                     struct error *err);

#endif
