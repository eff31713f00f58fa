/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The numbers that entries of a folder of /proc have for names: of processes in /proc itself, of threads in
 * /proc/PID/task, of descriptors in /proc/PID/fd. */
#ifndef TRACECTL_COLLECTOR_PROCESS_PROC_NUMBERS_H
#define TRACECTL_COLLECTOR_PROCESS_PROC_NUMBERS_H

#include <dirent.h>

struct proc_numbers {
    DIR *folder; /* NULL: none is open */
};

#define AUTO_PROC_NUMBERS __attribute__((cleanup(proc_numbers_close))) struct proc_numbers

/* -errno: then there are no numbers. Close in any case. */
int proc_numbers_open(struct proc_numbers *numbers, const char *path);
void proc_numbers_close(struct proc_numbers *numbers);

/* The next number, in the order of the folder; -1: there is no further one. */
int proc_numbers_next(struct proc_numbers *numbers);

#endif
