/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/doctor/checks.h"
#include "collector/launch/privileges.h"

static void cleanup_closedir(DIR **folder)
{
    if (*folder)
        closedir(*folder);
}

void check_privileges(struct self_check *check)
{
    unsigned missing = privileges_missing(PRIVILEGES_TO_RECORD);
    char names[128];

    privileges_text(missing ? missing : PRIVILEGES_TO_RECORD, names, sizeof(names));
    self_check_say(check, !missing, "%s: %s", missing ? "missing" : "there", names);
}

void check_other_users(struct self_check *check)
{
    unsigned missing = privileges_missing(PRIVILEGES_FOR_OTHERS);
    char names[128];

    privileges_text(missing, names, sizeof(names));
    if (missing)
        self_check_say(check, false, "missing privileges to record programs of other users: %s", names);
    else
        self_check_say(check, true, "programs of other users can be recorded");
}

/* The links may be followed with CAP_CHECKPOINT_RESTORE only (fs/proc/base.c, proc_map_files_get_link;
 * since 5.9, commit 12886f8ab10c, "proc: allow access in init userns for map_files with
 * CAP_CHECKPOINT_RESTORE"). */
void check_map_files(struct self_check *check)
{
    CLEANUP(cleanup_closedir) DIR *folder = opendir("/proc/self/map_files");
    AUTO_CLOSE int fd = -1;
    const struct dirent *entry;

    if (!folder) {
        self_check_say(check, false, "/proc/self/map_files: %s", strerror(errno));
        return;
    }
    while (fd < 0 && (entry = readdir(folder))) {
        if (*entry->d_name == '.')
            continue;
        fd = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            break;
    }
    self_check_say(check, fd >= 0, "mapped files that were deleted or replaced %s",
                   fd >= 0 ? "can be opened" : "cannot be opened");
}

/* kernel.yama.ptrace_scope in words, "" where there is no Yama. */
static const char *ptrace_scope(void)
{
    static const char *const scopes[] = {"", "; yama allows tracing of your own children only",
                                         "; yama requires CAP_SYS_PTRACE", "; yama forbids it"};
    AUTO_FCLOSE FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    unsigned scope;

    return file && fscanf(file, "%u", &scope) == 1 && scope < 4 ? scopes[scope] : "";
}

void check_ptrace(struct self_check *check)
{
    pid_t child = fork();
    long r;
    int code;

    if (!child) {
        pause();
        _exit(0);
    }
    if (child < 0) {
        self_check_say(check, false, "cannot start a child process: %s", strerror(errno));
        return;
    }
    r = ptrace(PTRACE_SEIZE, child, NULL, NULL);
    code = errno;
    self_check_say(check, !r, "a child process %s%s%s", r ? "cannot be traced: " : "can be traced",
                   r ? strerror(code) : "", ptrace_scope());
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* Exits with the errno of an attempt to trace the process: by one that is not its parent, as record does it. */
_Noreturn static void trace_beside(pid_t pid)
{
    _exit(ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? errno : 0);
}

void check_tracer(struct self_check *check)
{
    pid_t target = fork(), tracer;
    int status = 0;

    if (!target) {
        pause();
        _exit(0);
    }
    tracer = target < 0 ? -1 : fork();
    if (!tracer)
        trace_beside(target);
    if (tracer < 0)
        self_check_say(check, false, "cannot start a child process: %s", strerror(errno));
    else if (waitpid(tracer, &status, 0) != tracer || status)
        self_check_say(check, false, "own processes cannot be traced: %s%s", strerror(WEXITSTATUS(status)),
                       ptrace_scope());
    else
        self_check_say(check, true,
                       "own processes can be traced: record works without BPF, with inline probes");
    if (target > 0) {
        kill(target, SIGKILL);
        waitpid(target, NULL, 0);
    }
}
