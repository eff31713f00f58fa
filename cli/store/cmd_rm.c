/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl rm RUN...: removes runs. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "cli/common/command.h"
#include "cli/common/output.h"

struct rm_input {
    char **names;
    int count;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct rm_input *input = state->input;

    switch (key) {
    case ARGP_KEY_ARGS:
        input->names = state->argv + state->next;
        input->count = state->argc - state->next;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "rm needs a run (tracectl runs lists them)");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .parser = parse,
    .args_doc = "RUN...",
    .doc =
        "Remove runs from the store.\vA RUN is a number, a name (the newest run of that name), "
        "'latest', 'latest~1' or STORE.db:RUN. All runs are looked up before the first one is removed. "
        "A run that is being recorded is not removed.",
    .children = cli_common_children,
};

/* One of the runs: where it is. */
struct doomed {
    struct tracestore *store;
    struct tracestore_run run;
};

static int find_all(const struct rm_input *input, struct doomed *doomed, struct error *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < input->count; i++)
        r = cli_open_run(input->names[i], TRACESTORE_CHANGE, &doomed[i].store, &doomed[i].run, err);
    return r;
}

/* Whether an earlier argument means the same run: it is gone already. */
static bool named_before(const struct rm_input *input, const struct doomed *doomed, int index)
{
    const char *name;
    AUTO_FREE char *path = cli_split_run(input->names[index], &name);

    for (int i = 0; i < index; i++) {
        AUTO_FREE char *other = cli_split_run(input->names[i], &name);

        if (doomed[i].run.run_id == doomed[index].run.run_id &&
            !strcmp(path ? path : cli.store_path, other ? other : cli.store_path))
            return true;
    }
    return false;
}

static int remove_all(const struct rm_input *input, struct doomed *doomed, struct error *err)
{
    int r = find_all(input, doomed, err);

    for (int i = 0; r == 0 && i < input->count; i++)
        if (!named_before(input, doomed, i))
            r = tracestore_delete_run(doomed[i].store, doomed[i].run.run_id, err);
    return r;
}

static void print_json(const struct rm_input *input, const struct doomed *doomed)
{
    AUTO_JSON json_t *removed = json_array();

    for (int i = 0; i < input->count; i++)
        json_array_append_new(removed, json_pack("{s:I, s:o}", "run", (json_int_t)doomed[i].run.run_id,
                                                 "name", cli_json_text(doomed[i].run.name)));
    cli_json_print(removed);
}

static int run(int argc, char **argv)
{
    struct rm_input input = {0};
    AUTO_FREE struct doomed *doomed = NULL;
    struct error err = {0};
    int r;

    cli_parse(&cmd_rm, argc, argv, &input);
    doomed = calloc((size_t)input.count + 1, sizeof(*doomed));
    r = doomed ? remove_all(&input, doomed, &err) : error_no_memory(&err);
    if (r == 0 && doomed && cli.json)
        print_json(&input, doomed);
    for (int i = 0; doomed && i < input.count; i++) {
        tracestore_run_release(&doomed[i].run);
        tracestore_free(doomed[i].store);
    }
    return r < 0 ? cli_fail(&err) : cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_rm = {
    .name = "rm",
    .summary = "remove runs",
    .argp = &argp,
    .examples =
        "Remove the newest run:\n"
        "  tracectl rm latest\n",
    .run = run,
};
