/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl gc: deletes the runs that are not to be kept, and gives the space back. */
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/retention_arguments.h"

/* Bytes of the store's file and its log. */
static uint64_t file_bytes(void)
{
    static const char *const suffixes[] = {"", "-wal"};
    uint64_t bytes = 0;

    for (int i = 0; i < 2; i++) {
        AUTO_FREE char *path = NULL;
        struct stat status;

        if (asprintf(&path, "%s%s", cli.store_path, suffixes[i]) > 0 && stat(path, &status) == 0)
            bytes += (uint64_t)status.st_size;
    }
    return bytes;
}

static void report(const struct trace_retained *retained, uint64_t before, uint64_t after)
{
    char from[32], to[32];

    if (cli.json) {
        AUTO_JSON json_t *document =
            json_pack("{s:I, s:I, s:I}", "deleted_runs", (json_int_t)retained->runs, "bytes_before",
                      (json_int_t)before, "bytes_after", (json_int_t)after);

        cli_json_print(document);
    } else if (cli.verbosity >= 0) {
        cli_format_bytes(before, from, sizeof(from));
        cli_format_bytes(after, to, sizeof(to));
        text_print(stdout, "%llu run%s deleted; the store had %s and has %s now\n",
                   (unsigned long long)retained->runs, retained->runs == 1 ? "" : "s", from, to);
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[1] = state->input;
        return 0;
    }
    return cli_parse_no_arguments(key, arg, state);
}

static const struct argp_child children[] = {
    {&cli_common_argp, 0, NULL, 0}, {&retention_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .parser = parse,
    .doc =
        "Delete old runs, with everything that belongs only to them, and return the space to the file "
        "system.\vThe oldest runs are deleted first. Without options no run is deleted, but free space "
        "is reclaimed. A run that is being recorded is never deleted. 'tracectl record' accepts the "
        "same options and applies them while it records. A run without an end counts as ended when it "
        "was last written.",
    .children = children,
};

static int run(int argc, char **argv)
{
    AUTO_STORE struct tracestore *store = NULL;
    struct trace_retention keep = {0};
    struct trace_retained retained = {.images_due = true, .space_due = true};
    struct error err = {0};
    uint64_t before;
    int r;

    cli_parse(&cmd_gc, argc, argv, &keep);
    before = file_bytes();
    r = cli_open_store(TRACESTORE_CHANGE, &store, &err);
    if (r < 0)
        return cli_fail(&err);
    do
        r = tracestore_retain(store, &keep, clock_ns(CLOCK_REALTIME), &retained, &err);
    while (r > 0);
    if (r < 0)
        return cli_fail(&err);
    report(&retained, before, file_bytes());
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_gc = {
    .name = "gc",
    .summary = "delete old runs and reclaim disk space",
    .argp = &argp,
    .examples =
        "Keep the newest ten runs, none older than a week:\n"
        "  tracectl gc --keep-runs 10 --keep-age 7d\n"
        "Reclaim free space only:\n"
        "  tracectl gc\n",
    .run = run,
};
