/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl import: makes a run of call traces from elsewhere. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "image/elf/demangle.h"
#include "store/import/import_chrome.h"
#include "store/import/import_u16.h"
#include "store/import/import_uftrace.h"

struct import_input {
    const struct import_format *format;
    const char *path, *name;
};

struct import_format {
    const char *name;
    int (*import)(const struct import_input *input, struct tracestore **store, int64_t *ret_run_id,
                  struct error *err);
};

DEFINE_CLEANUP(cleanup_u16, struct u16_plan *, u16_plan_free)
DEFINE_CLEANUP(cleanup_chrome, struct chrome_plan *, chrome_plan_free)
DEFINE_CLEANUP(cleanup_uftrace, struct uftrace_plan *, uftrace_plan_free)

/* All of them check everything first: refused input does not even make a store. */
static int import_u16(const struct import_input *input, struct tracestore **store, int64_t *ret_run_id,
                      struct error *err)
{
    CLEANUP(cleanup_u16) struct u16_plan *plan = NULL;
    int r = u16_plan_new(input->path, &plan, err);

    if (r == 0)
        r = cli_open_store(TRACESTORE_CREATE, store, err);
    return r < 0 ? r : u16_plan_write(plan, *store, input->name, demangle, ret_run_id, err);
}

static int import_uftrace(const struct import_input *input, struct tracestore **store, int64_t *ret_run_id,
                          struct error *err)
{
    CLEANUP(cleanup_uftrace) struct uftrace_plan *plan = NULL;
    int r = uftrace_plan_new(input->path, &plan, err);

    if (r == 0)
        r = cli_open_store(TRACESTORE_CREATE, store, err);
    return r < 0 ? r : uftrace_plan_write(plan, *store, input->name, demangle, ret_run_id, err);
}

static int import_chrome(const struct import_input *input, struct tracestore **store, int64_t *ret_run_id,
                         struct error *err)
{
    CLEANUP(cleanup_chrome) struct chrome_plan *plan = NULL;
    int r = chrome_plan_new(input->path, &plan, err);

    if (r == 0)
        r = cli_open_store(TRACESTORE_CREATE, store, err);
    return r < 0 ? r : chrome_plan_write(plan, *store, input->name, demangle, ret_run_id, err);
}

static const struct import_format formats[] = {
    {"u16", import_u16}, {"uftrace", import_uftrace}, {"chrome", import_chrome}};

static const struct import_format *find_format(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        if (!strcmp(formats[i].name, name))
            return &formats[i];
    return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct import_input *input = state->input;

    switch (key) {
    case 'f':
        input->format = find_format(arg);
        if (!input->format)
            argp_error(state, "unknown format '%s' (u16, uftrace or chrome)", arg);
        return 0;
    case 'n':
        input->name = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (input->path)
            argp_usage(state);
        input->path = arg;
        return 0;
    case ARGP_KEY_END:
        if (!input->path)
            argp_error(state, "import needs a directory or a file");
        if (!input->format)
            argp_error(state, "import needs --format u16, uftrace or chrome");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"format", 'f', "FORMAT", 0, "Format of the traces: u16, uftrace or chrome", 0},
    {"name", 'n', "NAME", 0, "Name of the run (default: the name of the directory or file)", 0},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "DIR|FILE",
    .doc =
        "Import call traces as a new run.\vu16: one .u16 file per thread, little-endian 16-bit words, a "
        "function's number for a call and 0 for a return; a return without its call, as at the start of "
        "a forked child, is stored as a loss. P.T.u16 is thread P.T, NAME.PID.TID.u16 a thread of "
        "process PID, any other file a separate process. .info files name the functions, one 'NUMBER "
        "NAME' per line. uftrace: a directory written by 'uftrace record' without arguments. chrome: a "
        "file of Chrome JSON trace events (B and E, X), as export writes them. Damaged input is "
        "rejected and nothing is stored.",
    .children = cli_common_children,
};

static void print(const struct tracestore_run *run, const struct tracestore_totals *totals, double seconds)
{
    char events[32], bytes[32];

    if (cli.json) {
        AUTO_JSON json_t *json =
            json_pack("{s:I, s:o, s:n, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "run",
                      (json_int_t)run->run_id, "name", cli_json_text(run->name), "exit_status", "events",
                      (json_int_t)totals->events, "calls", (json_int_t)totals->calls, "returns",
                      (json_int_t)totals->returns, "threads", (json_int_t)totals->threads, "lost",
                      (json_int_t)totals->lost, "muted_functions", (json_int_t)totals->muted_functions,
                      "stored_bytes", (json_int_t)totals->stored_bytes, "catalog_bytes",
                      (json_int_t)totals->catalog_bytes, "index_bytes", (json_int_t)totals->index_bytes,
                      "raw_bytes", (json_int_t)totals->raw_bytes, "wall_seconds", seconds);

        cli_json_print(json);
        return;
    }
    if (cli.verbosity < 0)
        return;
    text_count(totals->events, events, sizeof(events));
    cli_format_bytes(totals->stored_bytes, bytes, sizeof(bytes));
    text_print(stdout,
               "run %lld '%s': %s events of %llu thread%s in %s (%.1f times smaller than 2 bytes "
               "per event)\n",
               (long long)run->run_id, run->name, events, (unsigned long long)totals->threads,
               totals->threads == 1 ? "" : "s", bytes,
               totals->stored_bytes ? (double)totals->raw_bytes / (double)totals->stored_bytes : 0.0);
}

static int run(int argc, char **argv)
{
    struct import_input input = {0};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run made = {0};
    struct tracestore_totals totals;
    uint64_t started = clock_ns(CLOCK_MONOTONIC);
    struct error err = {0};
    char number[32];
    int64_t run_id = 0;

    cli_parse(&cmd_import, argc, argv, &input);
    if (input.format->import(&input, &store, &run_id, &err) < 0)
        return cli_fail(&err);
    snprintf(number, sizeof(number), "%lld", (long long)run_id);
    if (tracestore_run_totals(store, run_id, &totals, &err) < 0 ||
        tracestore_find_run(store, number, &made, &err) < 0)
        return cli_fail(&err);
    print(&made, &totals, (double)(clock_ns(CLOCK_MONOTONIC) - started) / 1e9);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_import = {
    .name = "import",
    .summary = "import call traces as a new run",
    .argp = &argp,
    .examples =
        "Import a uftrace recording:\n"
        "  tracectl import --format uftrace uftrace.data -n nightly\n"
        "Import a file of Chrome trace events:\n"
        "  tracectl import --format chrome trace.json\n",
    .run = run,
};
