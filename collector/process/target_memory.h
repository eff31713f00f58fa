/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All that is read of another process's memory and written to it, and what /proc tells of it while it may
 * hold its lock.
 *
 * The program of the process's user may serve its pages (FUSE, userfaultfd) and never answer: everything is
 * read aside (base/aside.h). All reads of a process together may keep the caller waiting for two seconds, and
 * for a twentieth of the time that passes; of one that has taken longer nothing is read any more, nor of any
 * of a user with four of them.
 */
#ifndef TRACECTL_COLLECTOR_PROCESS_TARGET_MEMORY_H
#define TRACECTL_COLLECTOR_PROCESS_TARGET_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies memory of a process (or of the process of a thread); returns how much could be read from its begin
 * (0: nothing). */
size_t target_memory_read(pid_t pid, uint64_t address, void *ret_bytes, size_t size);

/* The same of many pieces of one size (at most 4096 bytes); returns how many could be read. */
size_t target_memory_read_pieces(pid_t pid, const uint64_t *addresses, size_t count, size_t size,
                                 void *ret_bytes);

/* Stores words (at most TARGET_WORDS_MOST) in the memory of a process, or of the process of a thread, in this
 * order and at once, even where it may not write itself. 0, or a negative errno. */
#define TARGET_WORDS_MOST 4
struct target_word {
    uint64_t address;
    uint32_t value;
};
int target_memory_write(pid_t pid, const struct target_word *words, size_t count);

/* Reads `size` bytes of the file /proc/PID/NAME from `offset` on; how many there are, or a negative errno
 * (-ENOENT, -ESRCH: the process is gone). */
ssize_t target_proc_read(pid_t pid, const char *name, uint64_t offset, void *ret_bytes, size_t size);

/* Reads all of it; the caller frees `*ret_text`, which has a NUL behind it. */
int target_proc_text(pid_t pid, const char *name, char **ret_text, size_t *ret_size);

/* readlink(2) of /proc/PID/NAME; the length, without a NUL, or a negative errno. */
ssize_t target_proc_link(pid_t pid, const char *name, char *ret_path, size_t size);

#endif
