/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl doctor: what works here, what does not and what to do about it, found out by trying. */
#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "collector/doctor/self_test.h"

/* {"call_emulated": 600.0, ...}; null where it could not be measured. */
static json_t *costs_json(const double *ns, const struct probe_costs *costs)
{
    json_t *object = json_object();

    for (int i = 0; i < PROBE_COSTS; i++)
        json_object_set_new(object, probe_cost_name((enum probe_cost)i),
                            costs->delivers && ns[i] > 0 ? json_real(ns[i]) : json_null());
    return object;
}

static int print_json(const struct self_test *test, const struct utsname *system)
{
    json_t *list = json_array(), *document;
    int r;

    for (size_t i = 0; i < test->count; i++) {
        const struct self_check *check = &test->checks[i];

        json_array_append_new(list, json_pack("{s:s, s:b, s:b, s:s, s:s?}", "name", check->name, "ok",
                                              check->ok, "optional", check->optional, "detail", check->detail,
                                              "remedy", check->remedy));
    }
    document = json_pack("{s:s, s:b, s:o, s:o, s:o}", "kernel", system->release, "can_record",
                         self_test_can_record(test), "checks", list, "probe_cost_ns",
                         costs_json(test->costs.recorded_ns, &test->costs), "empty_probe_cost_ns",
                         costs_json(test->costs.empty_ns, &test->costs));
    r = !document || json_dumpf(document, stdout, JSON_INDENT(2)) || putchar('\n') == EOF || fflush(stdout);
    json_decref(document);
    return r ? -EIO : 0;
}

static void print_costs(const struct probe_costs *costs)
{
    if (!costs->delivers)
        return;
    text_print(stdout, "\n%-20s %10s %10s %6s\n", "COST PER HIT", "RECORDED", "EMPTY", "RATIO");
    for (int i = 0; i < PROBE_COSTS; i++)
        if (costs->recorded_ns[i] > 0 && costs->empty_ns[i] > 0)
            text_print(stdout, "%-20s %7.0f ns %7.0f ns %6.2f\n", probe_cost_name((enum probe_cost)i),
                       costs->recorded_ns[i], costs->empty_ns[i], costs->recorded_ns[i] / costs->empty_ns[i]);
}

static void print_text(const struct self_test *test)
{
    for (size_t i = 0; i < test->count; i++) {
        const struct self_check *check = &test->checks[i];

        text_print(stdout, "%-16s %-3s %s\n", check->name, check->ok ? "yes" : "no", check->detail);
        if (check->remedy)
            text_print(stdout, "%20s %s%s\n", "", check->remedy, check->optional ? " (optional)" : "");
    }
    print_costs(&test->costs);
    text_print(stdout, "\n%s\n",
               self_test_can_record(test) ? "recording works"
               : self_test_can_trace(test)
                   ? "recording works by ptrace only: record, of own processes, with inline "
                     "probes; all else needs what is missing above"
                   : "recording does not work");
}

static const struct argp doctor_argp = {
    .parser = cli_parse_no_arguments,
    .doc =
        "Check what recording needs on this machine and explain how to fix what is missing; measure the "
        "cost of a probe here, compared with an empty BPF program.\vEvery check runs in a separate "
        "process with your own privileges: without privileges doctor lists which ones are missing and "
        "what they are needed for.\n\n"
        "Exit status: 0 recording works, 3 it does not, or by ptrace only.",
    .children = cli_common_children,
};

static int run_doctor(int argc, char **argv)
{
    AUTO_FREE struct self_test *test = malloc(sizeof(*test));
    AUTO_FREE char *store = NULL;
    struct utsname system;

    cli_parse(&cmd_doctor, argc, argv, NULL);
    store = strdup(cli.store_path);
    if (!test || !store) {
        fputs("tracectl: out of memory\n", stderr);
        return EXIT_FAILED;
    }
    uname(&system);
    self_test_run(dirname(store), test);
    if (!cli.json) {
        print_text(test);
    } else if (print_json(test, &system)) {
        fputs("tracectl: cannot write standard output\n", stderr);
        return EXIT_FAILED;
    }
    return self_test_can_record(test) ? EXIT_NOTHING_FOUND : EXIT_FAILED;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "check this machine and measure the cost of a probe",
    .argp = &doctor_argp,
    .examples =
        "Check this machine:\n"
        "  tracectl doctor\n",
    .run = run_doctor,
};
