/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/rank_processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/process/map_lines.h"
#include "collector/process/process.h"

struct pids {
    pid_t *items;
    size_t count, capacity;
};

static int add(struct pids *pids, pid_t pid)
{
    if (array_reserve(&pids->items, &pids->capacity, pids->count + 1))
        return -ENOMEM;
    pids->items[pids->count++] = pid;
    return 0;
}

/* Whether an MPI library is among the files that the process maps. */
static bool maps_mpi(pid_t pid)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line line;

    if (map_lines_open(pid, &maps))
        return false;
    while (map_lines_next(&maps, &line))
        if (strstr(line.name, "/libmpi"))
            return true;
    return false;
}

/* Walks down from `top`, generation by generation. `enter` says whether a process's children are of
 * interest. */
static int walk(pid_t top, bool (*enter)(struct pids *found, pid_t pid, int *r), struct pids *found,
                struct error *err)
{
    struct pids open = {0};
    int r = add(&open, top);

    for (size_t i = 0; i < open.count && !r; i++) {
        AUTO_FREE pid_t *children = NULL;
        size_t count = 0;

        if (!enter(found, open.items[i], &r) || r)
            continue;
        r = process_children(open.items[i], &children, &count, err);
        for (size_t j = 0; j < count && !r; j++)
            r = add(&open, children[j]);
    }
    free(open.items);
    return r;
}

static bool select_any(struct pids *found, pid_t pid, int *r)
{
    *r = add(found, pid);
    return true;
}

static int family(pid_t pid, struct pids *found, struct error *err)
{
    return walk(pid, select_any, found, err) ? (error_no_memory(err), -ENOMEM) : 0;
}

/* Whether a process below `pid` is the one that the rank was meant for. */
static bool is_wrapper(pid_t pid, int *r)
{
    struct pids below = {0};
    bool found = false;

    if (maps_mpi(pid))
        return false;
    *r = family(pid, &below, NULL);
    for (size_t i = 1; i < below.count && !found; i++)
        found = maps_mpi(below.items[i]);
    free(below.items);
    return found;
}

static bool take_rank(struct pids *found, pid_t pid, int *r)
{
    if (process_rank(pid) < 0 || is_wrapper(pid, r))
        return true;
    *r = add(found, pid);
    return false;
}

static int hand_over(struct pids *found, int r, pid_t **ret_pids, size_t *ret_count)
{
    if (r) {
        free(found->items);
        return r;
    }
    *ret_pids = found->items;
    *ret_count = found->count;
    return 0;
}

int rank_processes(pid_t pid, pid_t **ret_pids, size_t *ret_count, struct error *err)
{
    struct pids found = {0};
    int r = process_rank(pid) < 0 ? walk(pid, take_rank, &found, err) : 0;

    if (r)
        error_no_memory(err);
    return hand_over(&found, r, ret_pids, ret_count);
}

int process_family(pid_t pid, pid_t **ret_pids, size_t *ret_count, struct error *err)
{
    struct pids found = {0};

    return hand_over(&found, family(pid, &found, err), ret_pids, ret_count);
}
