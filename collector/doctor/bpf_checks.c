/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bpf/self_test.skel.h"
#include "collector/cost/isolate.h"
#include "collector/cost/trial.h"
#include "collector/doctor/checks.h"
#include "collector/process/pid_namespace.h"
#include "collector/uprobe/kernel_features.h"

#define HITS 10

DEFINE_CLEANUP(cleanup_ring, struct ring_buffer *, ring_buffer__free)

static void failed(struct self_check *check, const char *what, int code)
{
    self_check_say(check, false, "%s: %s", what, strerror(-code));
    if (code == -EPERM)
        check->remedy = "get the privileges named above";
}

void self_check_not_tried(struct self_check *check, const struct trial *trial, int code)
{
    check->ok = false;
    trial_failure(trial, code, check->detail, sizeof(check->detail));
    if (code == -EPERM)
        check->remedy = "get the privileges named above";
    if (code == -EOPNOTSUPP)
        check->remedy = trial_is_session(trial)
                            ? "nothing to do: returns are not probed without sessions"
                            : "needs Linux 6.6 with CONFIG_UPROBES, or CONFIG_UPROBE_EVENTS";
}

/* Puts the program on a function of ours. Says why when that fails. */
static bool begun(struct trial *trial, const char *program, enum trial_kind kind, struct self_check *check)
{
    int r = trial_begin(trial, program, kind, FORM_PUSH);

    if (r)
        self_check_not_tried(check, trial, r);
    return !r;
}

static void hit(void)
{
    for (int i = 0; i < HITS; i++)
        self_test_site(FORM_PUSH, COPY_TRIAL)();
}

void check_bpf(struct self_check *check)
{
    AUTO_FCLOSE FILE *file = fopen("/proc/sys/kernel/unprivileged_bpf_disabled", "re");
    AUTO_CLOSE int map = bpf_map_create(BPF_MAP_TYPE_HASH, "doctor", 4, 4, 1, NULL);
    unsigned disabled = 0;

    if (map >= 0)
        self_check_say(check, true, "maps can be created");
    else if (file && fscanf(file, "%u", &disabled) == 1 && disabled && map == -EPERM)
        self_check_say(check, false,
                       "bpf(2) is restricted to privileged users (kernel.unprivileged_bpf_disabled)");
    else
        failed(check, "cannot create a map", map);
}

void check_programs(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;
    int r = trial_load(&trial, "empty", TRIAL_CALLS);

    if (r)
        self_check_not_tried(check, &trial, r);
    else
        self_check_say(check, true, "programs load");
}

static int count_record(void *context, void *record, size_t size)
{
    unsigned *records = context;

    ++*records;
    return 0;
}

void check_ring(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;
    CLEANUP(cleanup_ring) struct ring_buffer *ring = NULL;
    unsigned records = 0;

    if (!begun(&trial, "write_ring", TRIAL_CALLS, check))
        return;
    ring = ring_buffer__new(bpf_map__fd(trial.bpf->maps.try_ring), count_record, &records, NULL);
    if (!ring) {
        failed(check, "cannot map it", -errno);
        return;
    }
    hit();
    ring_buffer__consume(ring);
    self_check_say(check, records == HITS, "%u of %d records arrived through 32 MiB", records, HITS);
}

/* A child that starts a program and ends: our own, which says its version. */
static void run_child(void)
{
    pid_t pid = fork();

    if (!pid) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
            _exit(1);
        execl("/proc/self/exe", "tracectl", "--version", (char *)NULL);
        _exit(1);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

/* How often a tracepoint was seen for one child, or a negative errno. */
static int try_tracepoint(const char *program)
{
    AUTO_TRIAL struct trial trial;
    int r = trial_load(&trial, program, TRIAL_CALLS);

    if (!r)
        r = trial_attach(&trial);
    if (r)
        return r;
    trial.bpf->bss->watched = (uint32_t)getpid();
    run_child();
    return (int)trial.bpf->bss->hits;
}

void check_tracepoints(struct self_check *check)
{
    int forks = try_tracepoint("see_fork"), execs = try_tracepoint("see_exec"),
        exits = try_tracepoint("see_exit");
    int fewest = forks < execs ? forks : execs;

    if (exits < fewest)
        fewest = exits;
    if (fewest < 0)
        failed(check, "cannot attach", fewest);
    else
        self_check_say(check, fewest > 0, "events of a child process: %d fork, %d exec, %d exit", forks,
                       execs, exits);
}

void check_all_processes(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;

    if (!begun(&trial, "count_hits", TRIAL_CALLS, check))
        return;
    hit();
    isolate_harm(hit);
    self_check_say(check, trial.bpf->bss->hits == 2 * HITS,
                   "%llu of %d hits recorded in two processes, by %s",
                   (unsigned long long)trial.bpf->bss->hits, 2 * HITS, probe_way_name(kernel_probe_way()));
}

void check_one_process(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;
    self_test_function function = self_test_site(FORM_PUSH, COPY_TRIAL);
    int r = trial_load(&trial, "count_hits", TRIAL_CALLS);

    if (!r)
        r = trial_probe(&trial, &function, NULL, 1, getpid());
    if (r) {
        self_check_not_tried(check, &trial, r);
        return;
    }
    hit();
    isolate_harm(hit);
    self_check_say(check, trial.bpf->bss->hits == HITS,
                   "%llu hits recorded, %d of one process and none of another expected",
                   (unsigned long long)trial.bpf->bss->hits, HITS);
}

void check_cookies(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;
    self_test_function function = self_test_site(FORM_PUSH, COPY_TRIAL);
    uint64_t cookie = 0x123456789abcdef;
    int r = trial_load(&trial, "read_cookie", TRIAL_CALLS);

    if (!r)
        r = trial_probe(&trial, &function, &cookie, 1, 0);
    if (r) {
        self_check_not_tried(check, &trial, r);
        return;
    }
    hit();
    self_check_say(check, trial.bpf->bss->answer == cookie, "a probe %s identify itself",
                   trial.bpf->bss->answer == cookie ? "can" : "cannot");
}

void check_sessions(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;

    if (!begun(&trial, "count_session", TRIAL_SESSION, check))
        return;
    hit();
    self_check_say(check, trial.bpf->bss->hits == HITS && trial.bpf->bss->returns == HITS,
                   "%llu calls and %llu returns of %d recorded by one link",
                   (unsigned long long)trial.bpf->bss->hits, (unsigned long long)trial.bpf->bss->returns,
                   HITS);
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    signals++;
}

void check_signals(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;

    if (!begun(&trial, "send_signal", TRIAL_CALLS, check))
        return;
    signal(SIGUSR1, on_signal);
    hit();
    self_check_say(check, signals > 0, signals ? "a program can be paused at exec" : "no signal came: %s",
                   strerror((int)-trial.bpf->bss->answer));
}

void check_find_vma(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;

    if (!begun(&trial, "find_stack", TRIAL_CALLS, check))
        return;
    hit();
    self_check_say(check, trial.bpf->bss->hits > 0 && trial.bpf->bss->answer, "a thread's stack %s found",
                   trial.bpf->bss->answer ? "is" : "is not");
}

/* Whether a task is among those that the iterator writes. */
static bool listed(int iterator, uint32_t wanted)
{
    uint32_t tids[256];
    ssize_t size;

    while ((size = read(iterator, tids, sizeof(tids))) > 0)
        for (size_t i = 0; i < (size_t)size / sizeof(*tids); i++)
            if (tids[i] == wanted)
                return true;
    return false;
}

static void say_listed(struct self_check *check, int iterator)
{
    bool found = listed(iterator, (uint32_t)getpid());

    self_check_say(check, found, "iter/task %s", found ? "lists tasks" : "does not list this process");
}

void check_iterators(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;
    AUTO_CLOSE int iterator = -1;
    int r = trial_load(&trial, "list_tasks", TRIAL_CALLS);

    if (!r)
        r = trial_attach(&trial);
    if (!r)
        r = iterator = bpf_iter_create(bpf_link__fd(trial.link));
    if (r < 0)
        self_check_not_tried(check, &trial, r);
    else
        say_listed(check, iterator);
}

void check_slots(struct self_check *check)
{
    bool tells = kernel_reports_slots();

    self_check_say(check, tells, "the end of a task, before its memory is released, %s observed",
                   tells ? "can be" : "cannot be");
}

void check_process_ids(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;
    uint64_t seen;

    if (trial_begin(&trial, "see_process", TRIAL_CALLS, FORM_PUSH)) {
        bool initial = pid_namespace_is_initial();

        self_check_say(check, initial, "not tried with BPF; this is %s pid namespace",
                       initial ? "the host's" : "another");
        return;
    }
    hit();
    seen = trial.bpf->bss->answer;
    self_check_say(check, seen == (uint64_t)getpid(), "the kernel reports process %llu as %llu",
                   (unsigned long long)getpid(), (unsigned long long)seen);
}

void check_lockdown(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;

    if (!begun(&trial, "write_user", TRIAL_CALLS, check))
        return;
    hit();
    self_check_say(check, trial.bpf->bss->hits == HITS, "BPF programs %s write to a process",
                   trial.bpf->bss->hits == HITS ? "may" : "may not");
}
