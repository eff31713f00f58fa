/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* "PID|NAME[,PID|NAME...]": what options that name processes take. */
#ifndef TRACECTL_CLI_COMMON_PID_LIST_H
#define TRACECTL_CLI_COMMON_PID_LIST_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* All zero is empty. */
struct pid_list {
    pid_t *items; /* each once */
    size_t count, capacity;
};

void pid_list_release(struct pid_list *list);

/* Adds a process that is not in the list yet. False: no memory. */
bool pid_list_add(struct pid_list *list, pid_t pid);

/* Adds the processes that an option's argument names, by numbers and by names (process_name.h). Ends the
 * process: with a usage error when it is no list, with EXIT_FAILED when no process has a name. */
void pid_list_parse(struct pid_list *list, const char *text, const struct argp_state *state);

/* Takes a word behind -p as pid_list_parse() does, as in -p $(pidof nginx). False: -p was not given, or the
 * word stands behind "--". */
bool pid_list_add_word(struct pid_list *list, const char *word, const struct argp_state *state);

#endif
