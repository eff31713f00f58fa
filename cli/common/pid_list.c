/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/pid_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "cli/common/command.h"

enum { PID_MAX = 1 << 30 };

void pid_list_release(struct pid_list *list)
{
    free(list->items);
    *list = (struct pid_list){0};
}

bool pid_list_add(struct pid_list *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == pid)
            return true;
    if (array_reserve(&list->items, &list->capacity, list->count + 1))
        return false;
    list->items[list->count++] = pid;
    return true;
}

void pid_list_parse(struct pid_list *list, const char *text, const struct argp_state *state)
{
    for (const char *at = text;;) {
        const char *end = at;
        uint64_t pid = 0;

        if (!number_parse_count_at(at, &pid, &end) || (*end && *end != ',') || !pid || pid > PID_MAX)
            argp_error(state, "'%s' is not a list of process ids (separate pids by commas or spaces)", text);
        if (!pid_list_add(list, (pid_t)pid))
            argp_failure(state, EXIT_FAILED, ENOMEM, "cannot read the process ids");
        if (!*end)
            return;
        at = end + 1;
    }
}

bool pid_list_add_word(struct pid_list *list, const char *word, const struct argp_state *state)
{
    if (!list->count || cli_is_behind_dashes(state) || word[strspn(word, "0123456789")])
        return false;
    pid_list_parse(list, word, state);
    return true;
}
