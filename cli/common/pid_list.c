/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/pid_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"
#include "cli/common/command.h"
#include "collector/process/process_name.h"

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

static void add(struct pid_list *list, pid_t pid, const struct argp_state *state)
{
    if (!pid_list_add(list, pid))
        argp_failure(state, EXIT_FAILED, ENOMEM, "cannot read the process ids");
}

static void add_named(struct pid_list *list, const char *name, const struct argp_state *state)
{
    AUTO_FREE pid_t *pids = NULL;
    struct error err = {0};
    size_t count = 0;

    if (!processes_named(name, &pids, &count, &err) && !count)
        error_say(&err, -ESRCH,
                  "cannot find process '%s': no running process has this name (ps -e lists them)", name);
    if (!count)
        exit(cli_fail(&err));
    for (size_t i = 0; i < count; i++)
        add(list, pids[i], state);
}

static void add_item(struct pid_list *list, const char *item, const struct argp_state *state)
{
    uint64_t pid = 0;

    if (item[strspn(item, "0123456789")])
        add_named(list, item, state);
    else if (number_parse_count(item, &pid) && pid && pid <= PID_MAX)
        add(list, (pid_t)pid, state);
    else
        argp_error(state, "'%s' is not a process id", item);
}

void pid_list_parse(struct pid_list *list, const char *text, const struct argp_state *state)
{
    for (const char *at = text;;) {
        size_t length = strcspn(at, ", \t\n");
        AUTO_FREE char *item = strndup(at, length);

        if (!item) {
            argp_failure(state, EXIT_FAILED, ENOMEM, "cannot read the process ids");
            return;
        }
        if (!length)
            argp_error(state, "'%s' is not a list of processes (separate ids and names by commas or spaces)",
                       text);
        add_item(list, item, state);
        at += length;
        at += *at == ',' ? 1 : strspn(at, " \t\n");
        if (!*at && at[-1] != ',')
            return;
    }
}

bool pid_list_add_word(struct pid_list *list, const char *word, const struct argp_state *state)
{
    if (!list->count || cli_is_behind_dashes(state))
        return false;
    pid_list_parse(list, word, state);
    return true;
}
