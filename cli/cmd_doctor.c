/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl doctor: what works here, what does not and what to do about it, found out by trying. */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "cli/command.h"
#include "collector/self_test.h"

struct check {
    const char *name;
    bool ok;
    bool optional; /* recording works without it */
    char detail[480];
    const char *remedy; /* NULL when ok */
};

enum { CHECK_PRIVILEGES, CHECK_BTF, CHECK_LOAD, CHECK_PROBE, CHECK_SESSION, CHECKS };

/* Capability numbers of include/uapi/linux/capability.h. */
static const struct {
    const char *name;
    unsigned number;
} capabilities[] = {{"CAP_BPF", 39}, {"CAP_PERFMON", 38}, {"CAP_SYS_PTRACE", 19}};
#define CAPABILITY_SYS_ADMIN 21

static unsigned long long effective_capabilities(void)
{
    AUTO_FCLOSE FILE *status = fopen("/proc/self/status", "re");
    unsigned long long set = 0;
    char line[256];

    while (status && fgets(line, sizeof(line), status))
        if (sscanf(line, "CapEff: %llx", &set) == 1)
            break;
    return set;
}

static void check_privileges(struct check *check)
{
    unsigned long long set = effective_capabilities();
    size_t used = 0;

    check->ok = true;
    snprintf(check->detail, sizeof(check->detail), "all needed capabilities are there");
    for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
        if (set >> capabilities[i].number & 1 || set >> CAPABILITY_SYS_ADMIN & 1)
            continue;
        check->ok = false;
        used += (size_t)snprintf(check->detail + used, sizeof(check->detail) - used, "%s%s",
                                 used ? ", " : "missing: ", capabilities[i].name);
    }
    check->remedy = "run as root, or grant the capabilities named";
}

static void check_btf(struct check *check)
{
    check->ok = !access("/sys/kernel/btf/vmlinux", R_OK);
    snprintf(check->detail, sizeof(check->detail), "/sys/kernel/btf/vmlinux %s",
             check->ok ? "is readable" : strerror(errno));
    check->remedy = "use a kernel built with CONFIG_DEBUG_INFO_BTF";
}

static void check_probes(struct check *checks, const struct self_test *test)
{
    const char *why = test->why.message[0] ? test->why.message : "not reached";

    checks[CHECK_LOAD].ok = test->loads;
    snprintf(checks[CHECK_LOAD].detail, sizeof(checks[CHECK_LOAD].detail), "%s",
             test->loads ? "programs load, tracepoints attach" : why);
    checks[CHECK_LOAD].remedy =
        "needs Linux 6.6 with CONFIG_BPF_SYSCALL, CONFIG_UPROBES, BTF, and the privileges";
    checks[CHECK_PROBE].ok = test->probes;
    snprintf(checks[CHECK_PROBE].detail, sizeof(checks[CHECK_PROBE].detail), "%s",
             test->probes ? "every hit on tracectl itself was delivered" : why);
    checks[CHECK_PROBE].remedy = "needs Linux 6.6 (uprobe_multi links)";
    checks[CHECK_SESSION].ok = test->sessions;
    checks[CHECK_SESSION].optional = true;
    snprintf(checks[CHECK_SESSION].detail, sizeof(checks[CHECK_SESSION].detail), "%s",
             test->sessions ? "returns are probed where that is safe" : "returns are inferred, never probed");
    checks[CHECK_SESSION].remedy = "needs Linux 6.13 (uprobe sessions); recording works without";
}

static int print_json(const struct check *checks, const struct self_test *test, const struct utsname *system)
{
    json_t *list = json_array(), *costs = json_object(), *document;
    int r;

    for (size_t i = 0; i < CHECKS; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:b, s:b, s:s, s:s?}", "name", checks[i].name, "ok",
                                        checks[i].ok, "optional", checks[i].optional, "detail",
                                        checks[i].detail, "remedy", checks[i].ok ? NULL : checks[i].remedy));
    for (size_t i = 0; i < SELF_TEST_COSTS; i++)
        json_object_set_new(costs, self_test_cost_name((enum self_test_cost)i),
                            test->probes ? json_real(test->cost_ns[i]) : json_null());
    document =
        json_pack("{s:s, s:o, s:o}", "kernel", system->release, "checks", list, "probe_cost_ns", costs);
    r = !document || json_dumpf(document, stdout, JSON_INDENT(2)) || putchar('\n') == EOF || fflush(stdout);
    json_decref(document);
    return r ? -EIO : 0;
}

static void print_text(const struct check *checks, const struct self_test *test, const struct utsname *system)
{
    printf("kernel      %s\n", system->release);
    for (size_t i = 0; i < CHECKS; i++) {
        printf("%-11s %-3s %s\n", checks[i].name, checks[i].ok ? "yes" : "no", checks[i].detail);
        if (!checks[i].ok)
            printf("%15s %s\n", "", checks[i].remedy);
    }
    for (size_t i = 0; test->probes && i < SELF_TEST_COSTS; i++)
        printf("%-24s %8.0f ns\n", self_test_cost_name((enum self_test_cost)i), test->cost_ns[i]);
}

static const struct argp_child doctor_children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};
static const struct argp doctor_argp = {
    .parser = cli_parse_no_arguments,
    .doc =
        "Try what recording needs on this machine and say what is missing, with the remedy; and measure "
        "what a probe costs here.\v"
        "Exits with 0 when recording works, else with 3.",
    .children = doctor_children,
};

static int run_doctor(int argc, char **argv)
{
    struct check checks[CHECKS] = {
        [CHECK_PRIVILEGES] = {.name = "privileges"}, [CHECK_BTF] = {.name = "btf"},
        [CHECK_LOAD] = {.name = "programs"},         [CHECK_PROBE] = {.name = "probes"},
        [CHECK_SESSION] = {.name = "sessions"},
    };
    struct self_test test;
    struct utsname system;
    int status = EXIT_NOTHING_FOUND;

    cli_parse(&cmd_doctor, argc, argv, NULL);
    uname(&system);
    check_privileges(&checks[CHECK_PRIVILEGES]);
    check_btf(&checks[CHECK_BTF]);
    self_test_run(&test);
    check_probes(checks, &test);
    for (size_t i = 0; i < CHECKS; i++)
        if (!checks[i].ok && !checks[i].optional && i != CHECK_PRIVILEGES)
            status = EXIT_FAILED;
    if (cli.json) {
        if (print_json(checks, &test, &system)) {
            fprintf(stderr, "tracectl: cannot write standard output\n");
            return EXIT_FAILED;
        }
    } else {
        print_text(checks, &test, &system);
    }
    return status;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "say what works on this machine and what a probe costs",
    .argp = &doctor_argp,
    .run = run_doctor,
};
