/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Remote sessions on children of this process: their calls, their signals, and that whoever was to stand
 * still does. */
#include <criterion/criterion.h>
#include <errno.h>
#include <mntent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "collector/ptrace/remote.h"

/* What a child and its session tell this process. */
struct shared {
    atomic_uint rounds, handled;
    int64_t result;
};

static struct shared *shared;

static void on_signal(int signal)
{
    (void)signal;
    atomic_fetch_add(&shared->handled, 1);
}

static void child_main(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* an assertion may end the test before its child */
    signal(SIGUSR1, on_signal);
    for (;;)
        atomic_fetch_add(&shared->rounds, 1);
}

static pid_t begin(void)
{
    pid_t pid;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(shared, MAP_FAILED);
    pid = fork();
    if (!pid)
        child_main();
    while (!atomic_load(&shared->rounds))
        usleep(100);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

static char state_of(pid_t pid)
{
    char path[64], state = '?';
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%*d %*s %c", &state), 1);
    fclose(file);
    return state;
}

static int ask_pid(void *context, struct remote *remote, struct error *err)
{
    const uint64_t none[6] = {0};
    int r = 0;

    (void)context;
    for (int i = 0; i < 4 && !r; i++)
        r = remote_call(remote, SYS_getpid, none, &shared->result, err);
    return r;
}

Test(remote, a_running_process_calls_the_kernel_and_goes_on)
{
    struct error err = {0};
    pid_t pid = begin();
    unsigned rounds;

    cr_assert_eq(remote_session(pid, ask_pid, NULL, &err), 0, "%s", err.message);
    cr_expect_eq(shared->result, pid);
    rounds = atomic_load(&shared->rounds);
    while (atomic_load(&shared->rounds) == rounds)
        usleep(100);
    end(pid);
}

/* The SIGSTOP may come before the session has begun, with it, or between the calls that the process is to
 * make. */
Test(remote, a_process_that_was_told_to_stop_stands_still_afterwards)
{
    struct error err = {0};
    pid_t pid = begin();

    for (int i = 0; i < 300; i++) {
        unsigned rounds;

        cr_assert_eq(kill(pid, SIGSTOP), 0);
        cr_assert_eq(remote_session(pid, ask_pid, NULL, &err), 0, "%s", err.message);
        cr_expect_eq(shared->result, pid);
        for (int wait = 0; state_of(pid) != 'T' && wait < 1000; wait++)
            usleep(100);
        cr_assert_eq(state_of(pid), 'T', "session %d: the process runs", i);
        rounds = atomic_load(&shared->rounds);
        cr_assert_eq(kill(pid, SIGCONT), 0);
        while (atomic_load(&shared->rounds) == rounds)
            usleep(100);
    }
    end(pid);
}

Test(remote, signals_wait_for_the_end_of_the_session)
{
    struct error err = {0};
    pid_t pid = begin();

    for (unsigned i = 1; i <= 300; i++) {
        cr_assert_eq(kill(pid, SIGUSR1), 0);
        cr_assert_eq(remote_session(pid, ask_pid, NULL, &err), 0, "%s", err.message);
        cr_expect_eq(shared->result, pid);
        while (atomic_load(&shared->handled) < i)
            usleep(100);
    }
    end(pid);
}

/* ------------------------------------------------------------------------------------ frozen control groups
 */

static struct {
    char path[128], file[160];
} group;

static void write_to(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    cr_assert(file && fputs(text, file) >= 0 && !fclose(file), "%s: %s", path, strerror(errno));
}

/* Puts a process into a control group of its own, of version 2. */
static void make_group(pid_t pid)
{
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    struct mntent *mount;
    char number[32];

    cr_assert_not_null(mounts);
    while ((mount = getmntent(mounts)) && strcmp(mount->mnt_type, "cgroup2") != 0)
        continue;
    cr_assert(mount, "control groups of version 2 are mounted");
    snprintf(group.path, sizeof(group.path), "%s/tracectl-test-%d", mount->mnt_dir, (int)pid);
    endmntent(mounts);
    cr_assert_eq(mkdir(group.path, 0755), 0, "%s", group.path);
    snprintf(group.file, sizeof(group.file), "%s/cgroup.procs", group.path);
    snprintf(number, sizeof(number), "%d", (int)pid);
    write_to(group.file, number);
    snprintf(group.file, sizeof(group.file), "%s/cgroup.freeze", group.path);
}

static void expect_rounds(void)
{
    unsigned rounds = atomic_load(&shared->rounds);

    while (atomic_load(&shared->rounds) == rounds)
        usleep(100);
}

/* Two calls, and it is frozen between them. */
static int freeze_between(void *context, struct remote *remote, struct error *err)
{
    const uint64_t none[6] = {0};
    int r = remote_call(remote, SYS_getpid, none, &shared->result, err);

    (void)context;
    if (r)
        return error_say(err, -EIO, "the first call failed");
    write_to(group.file, "1");
    return remote_call(remote, SYS_getpid, none, &shared->result, err);
}

Test(remote, a_frozen_process_is_given_up_and_is_whole)
{
    struct error err = {0};
    pid_t pid;

    if (geteuid() != 0)
        cr_skip_test("needs root");
    pid = begin();
    make_group(pid);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(remote_session(pid, i ? freeze_between : ask_pid, NULL, &err), i ? -ETIMEDOUT : 0);
        write_to(group.file, "1");
        cr_expect_eq(remote_session(pid, ask_pid, NULL, &err), -ETIMEDOUT);
        cr_expect(strstr(err.message, "is frozen"), "%s", err.message);
        write_to(group.file, "0");
        expect_rounds();
    }
    cr_expect_eq(remote_session(pid, ask_pid, NULL, &err), 0, "%s", err.message);
    end(pid);
    cr_expect_eq(rmdir(group.path), 0);
}

/* ------------------------------------------------------------------------------------ limits */

static int never_ends(void *context, struct remote *remote, struct error *err)
{
    (void)context;
    (void)remote;
    (void)err;
    for (;;)
        pause();
    return 0;
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* A signal to the collector ends it soon: what it waits for may never come. */
Test(remote, a_session_that_does_not_end_is_ended)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    struct error err = {0};
    pid_t pid = begin();

    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    cr_expect_eq(remote_session(pid, never_ends, NULL, &err), -ETIMEDOUT);
    expect_rounds();
    end(pid);
}

/* A call that waits for something that does not come. */
static int wait_for_ever(void *context, struct remote *remote, struct error *err)
{
    const uint64_t none[6] = {0};

    (void)context;
    return remote_call(remote, SYS_pause, none, &shared->result, err);
}

Test(remote, a_call_that_does_not_end_is_given_up)
{
    struct error err = {0};
    pid_t pid = begin();

    cr_expect_eq(remote_session(pid, wait_for_ever, NULL, &err), -ETIMEDOUT);
    expect_rounds();
    cr_expect_eq(remote_session(pid, ask_pid, NULL, &err), 0, "%s", err.message);
    end(pid);
}

Test(remote, a_process_that_is_gone_is_said_to_be)
{
    struct error err = {0};
    pid_t pid = begin();

    end(pid);
    cr_expect_eq(remote_session(pid, ask_pid, NULL, &err), -ESRCH);
}
