/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/doctor/self_test.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "collector/cost/isolate.h"
#include "collector/doctor/checks.h"
#include "collector/uprobe/probe_events.h"

static const struct {
    const char *name;
    self_check_function run;
    bool optional;
    const char *remedy;
} table[] = {
    {"kernel", check_kernel, true, NULL},
    {"libraries", check_libraries, true, NULL},
    {"privileges", check_privileges, false,
     "run as root, or with the capabilities named (setpriv --ambient-caps)"},
    {"other users", check_other_users, true,
     "grant the capabilities named, or record only your own programs"},
    {"user namespace", check_user_namespace, false,
     "run outside of the container: BPF ignores capabilities of a user namespace"},
    {"process ids", check_process_ids, false, "run in the host's pid namespace (--pid=host)"},
    {"seccomp", check_seccomp, true,
     "if bpf fails below, allow bpf(2) and ptrace(2) in the container's profile"},
    {"bpf", check_bpf, false, "needs CONFIG_BPF_SYSCALL, CAP_BPF, and no seccomp filter against bpf(2)"},
    {"btf", check_btf, false, "use a kernel built with CONFIG_DEBUG_INFO_BTF, and mount /sys"},
    {"programs", check_programs, false, "needs CONFIG_BPF_EVENTS, BTF, CAP_BPF and CAP_PERFMON"},
    {"ring buffer", check_ring, false, "needs Linux 5.8; before 5.11 also ulimit -l unlimited"},
    {"tracepoints", check_tracepoints, false, "needs CONFIG_BPF_EVENTS and CONFIG_TRACEPOINTS, CAP_PERFMON"},
    {"uprobes", check_all_processes, false,
     "needs CAP_PERFMON, and Linux 6.6 with CONFIG_UPROBES or an older one with CONFIG_UPROBE_EVENTS"},
    {"process filter", check_one_process, true, "needs what uprobes need"},
    {"attach cookie", check_cookies, false, "needs what uprobes need, and BTF of the kernel itself"},
    {"sessions", check_sessions, true, "--returns probe needs Linux 6.13"},
    {"vfork", check_slots, true,
     "needs Linux 6.16; without it programs that use vfork get no "
     "inline probes"},
    {"send signal", check_signals, true,
     "needs Linux 5.3; without it the start of a new program "
     "is missed"},
    {"find vma", check_find_vma, true, "needs Linux 5.17; without it returns of threads are inferred"},
    {"iterators", check_iterators, true, "needs Linux 5.8 and CAP_BPF, CAP_PERFMON"},
    {"ptrace", check_ptrace, true, "kernel.yama.ptrace_scope below 3, or CAP_SYS_PTRACE"},
    {"tracer", check_tracer, true,
     "kernel.yama.ptrace_scope 0, or CAP_SYS_PTRACE; it is how record works without BPF"},
    {"map_files", check_map_files, true,
     "grant CAP_CHECKPOINT_RESTORE; without it deleted libraries are not probed"},
    {"lockdown", check_lockdown, true, "nothing to do: recording does not need it"},
    {"nop5 fork", check_nop5_fork, true, "nothing to do: such sites are avoided in programs that fork"},
    {"seccomp returns", check_seccomp_returns, true,
     "needs Linux 6.14; without it do not use --returns probe for programs with a strict seccomp filter"},
    {"seccomp nop5", check_seccomp_nop5, true, "nothing to do: such sites are avoided"},
};

/* The costs' check and the store's come on top. */
_Static_assert(ARRAY_SIZE(table) + 2 <= SELF_CHECKS_AT_MOST, "SELF_CHECKS_AT_MOST");

void self_check_say(struct self_check *check, bool ok, const char *detail, ...)
{
    va_list args;

    check->ok = ok;
    va_start(args, detail);
    vsnprintf(check->detail, sizeof(check->detail), detail, args);
    va_end(args);
}

/* The check in the child; its function goes along. */
struct task {
    self_check_function run;
    struct self_check check;
};

static void run_task(void *answer)
{
    struct task *task = answer;

    task->run(&task->check);
}

static void run_check(struct self_check *check, self_check_function run)
{
    struct task task = {run, *check};
    int r = isolate(run_task, &task, sizeof(task));

    *check = task.check;
    if (r > 0)
        self_check_say(check, false, "the check was ended by signal %d", r);
    else if (r < 0)
        self_check_say(check, false, "cannot start a child process: %s", strerror(-r));
}

static struct self_check *add_check(struct self_test *test, const char *name, bool optional,
                                    const char *remedy)
{
    struct self_check *check = &test->checks[test->count++];

    *check = (struct self_check){.name = name, .optional = optional, .remedy = remedy};
    return check;
}

static void check_store(struct self_check *check, const char *folder)
{
    struct statvfs space;
    unsigned long long mebibytes;

    if (statvfs(folder, &space)) {
        self_check_say(check, false, "%s: %s", folder, strerror(errno));
        return;
    }
    mebibytes = (unsigned long long)space.f_bavail * space.f_frsize >> 20;
    self_check_say(check, mebibytes >= 64 && !access(folder, W_OK), "%s has %llu MiB free and is %swritable",
                   folder, mebibytes, access(folder, W_OK) ? "not " : "");
}

static void check_costs(struct self_check *check, const struct probe_costs *costs)
{
    if (costs->delivers)
        self_check_say(check, true, "every hit on tracectl itself was delivered");
    else
        self_check_say(check, false, "%s", costs->why.message);
}

void self_test_run(const char *store_folder, struct self_test *ret_test)
{
    memset(ret_test, 0, sizeof(*ret_test));
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        run_check(add_check(ret_test, table[i].name, table[i].optional, table[i].remedy), table[i].run);
    probe_costs_measure(&ret_test->costs);
    check_costs(add_check(ret_test, "recorder", false, "see the checks above"), &ret_test->costs);
    probe_events_sweep(); /* of the checks' own probes */
    check_store(add_check(ret_test, "store", false,
                          "choose another folder with -d, or create this one, make it writable, or "
                          "free some space in it"),
                store_folder);
    for (size_t i = 0; i < ret_test->count; i++)
        if (ret_test->checks[i].ok)
            ret_test->checks[i].remedy = NULL;
}

static bool is_ok(const struct self_test *test, const char *name)
{
    for (size_t i = 0; i < test->count; i++)
        if (!strcmp(test->checks[i].name, name))
            return test->checks[i].ok;
    return false;
}

bool self_test_can_trace(const struct self_test *test)
{
    return is_ok(test, "tracer") && is_ok(test, "store");
}

bool self_test_can_record(const struct self_test *test)
{
    for (size_t i = 0; i < test->count; i++)
        if (!test->checks[i].ok && !test->checks[i].optional)
            return false;
    return true;
}
