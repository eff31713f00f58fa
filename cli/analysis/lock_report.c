/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/analysis/lock_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/common/output.h"

error_t lock_report_parse(int key, char *arg, struct argp_state *state)
{
    const char **run = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        if (*run)
            argp_error(state, "unexpected argument '%s' (name one run)", arg);
        *run = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no run");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int lock_report_run(const struct command *command, int argc, char **argv,
                    int (*read)(const char *run, struct lock_report *report, struct error *err),
                    const char *incomplete)
{
    struct lock_report report = {.complete = true};
    const char *argument = NULL;
    struct error err = {0};
    AUTO_JSON json_t *document = NULL;

    cli_parse(command, argc, argv, &argument);
    if (cli.json) {
        report.cycles = json_array();
        document = json_pack("{s:o}", "potential", report.cycles);
    }
    if (read(argument, &report, &err) < 0)
        return cli_fail(&err);
    if (document) {
        json_object_set_new(document, "complete", json_boolean(report.complete));
        cli_json_print(document);
    } else {
        if (!report.count)
            puts("no potential deadlock");
        if (!report.complete)
            text_print(stdout, "%s\n", incomplete);
    }
    return cli_finish(report.count ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

void lock_report_heading(bool happened)
{
    puts(happened ? "deadlocked in this run:" : "could deadlock, did not in this run:");
}

json_t *lock_report_json(uint64_t object, bool shared, const char *function, const char *file, int line)
{
    char address[32];

    snprintf(address, sizeof(address), "0x%" PRIx64, object);
    return json_pack("{s:s, s:b, s:o, s:o, s:i}", "object", address, "shared", shared, "function",
                     cli_json_text(function), "file", cli_json_text(file), "line", line);
}
