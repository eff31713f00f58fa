/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

/* Not execvp's fallback, though: a file that is no program must not be fed to a shell. */
static int look_up(const char *command, char *ret_path, size_t size)
{
    const char *path = getenv("PATH");
    AUTO_FREE char *list = strdup(path ? path : "/bin:/usr/bin");
    char *rest = list, *folder;
    int reason = ENOENT;

    if (!list)
        return ENOMEM;
    if (strchr(command, '/')) {
        snprintf(ret_path, size, "%s", command);
        return access(command, X_OK) ? errno : 0;
    }
    while ((folder = strsep(&rest, ":"))) {
        snprintf(ret_path, size, "%s/%s", *folder ? folder : ".", command);
        if (!access(ret_path, X_OK))
            return 0;
        if (errno == EACCES)
            reason = EACCES;
    }
    return reason;
}

/* The interpreter that a script names in its first line, in memory from malloc; NULL: it names none. */
static char *interpreter_of(const char *path)
{
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    char line[PATH_MAX], *name = NULL;

    if (!file || !fgets(line, sizeof(line), file) || strncmp(line, "#!", 2) != 0)
        return NULL;
    return sscanf(line + 2, " %ms", &name) == 1 ? name : NULL;
}

static int cannot_run(int code, const char *command, struct error *err)
{
    AUTO_FREE char *interpreter = code == ENOENT ? interpreter_of(command) : NULL;
    struct stat status;

    if (interpreter)
        return error_set(err, -code, "check the script's first line", "cannot run %s by %s", command,
                         interpreter);
    if (code == ENOENT && !access(command, F_OK))
        return error_set(err, -code, "is the program for another machine or C library?",
                         "cannot run %s, or its interpreter", command);
    if (code == ENOENT)
        return error_set(err, -code, "check the command's name", "cannot run %s", command);
    if (code == EACCES && !stat(command, &status) && S_ISDIR(status.st_mode))
        return error_say(err, -code, "cannot run %s: is a directory (name an executable file)", command);
    return error_set(err, -code, code == EACCES || code == ENOEXEC ? "name an executable file" : NULL,
                     "cannot run %s", command);
}

int launch_find(const char *command, char *ret_path, size_t size, struct error *err)
{
    int reason = look_up(command, ret_path, size);

    return reason ? cannot_run(reason, command, err) : 0;
}

static bool child_ends_were_ignored;

void launch_want_ends(void)
{
    struct sigaction action;

    if (sigaction(SIGCHLD, NULL, &action) || action.sa_handler != SIG_IGN)
        return;
    child_ends_were_ignored = true;
    signal(SIGCHLD, SIG_DFL);
}

/* The handlers of this process are not the command's: a signal that comes before exec does what it would to
 * the command. */
static void reset_handlers(void)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    struct sigaction action;

    for (int number = 1; number < NSIG; number++)
        if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_IGN)
            sigaction(number, &by_default, NULL);
    if (child_ends_were_ignored)
        signal(SIGCHLD, SIG_IGN);
}

static void child_main(const char *path, char *const *argv, const struct launch_streams *streams, int gate,
                       int failure)
{
    char byte;
    int code;

    if (read(gate, &byte, 1) != 1)
        _exit(127);
    if (streams->output >= 0)
        dup2(streams->output, STDOUT_FILENO);
    if (streams->errors >= 0)
        dup2(streams->errors, STDERR_FILENO);
    execv(path, argv);
    code = errno;
    if (write(failure, &code, sizeof(code)) != (ssize_t)sizeof(code))
        _exit(126);
    _exit(127);
}

/* As fork, without a moment in which the child has this process's handlers. */
static pid_t fork_without_handlers(void)
{
    sigset_t all, before;
    pid_t pid;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (!pid)
        reset_handlers();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

int launch_prepare(char *const *argv, const struct launch_streams *streams, struct launch *ret_launch,
                   struct error *err)
{
    char path[PATH_MAX];
    int gate[2], failure[2], r = launch_find(argv[0], path, sizeof(path), err);
    pid_t pid;

    if (r)
        return r;
    if (pipe2(gate, O_CLOEXEC))
        return error_set(err, -errno, NULL, "cannot start %s", argv[0]);
    if (pipe2(failure, O_CLOEXEC)) {
        r = -errno;
        close(gate[0]);
        close(gate[1]);
        return error_set(err, r, NULL, "cannot start %s", argv[0]);
    }
    pid = fork_without_handlers();
    if (!pid) {
        close(gate[1]);
        close(failure[0]);
        child_main(path, argv, streams, gate[0], failure[1]);
    }
    close(gate[0]);
    close(failure[1]);
    if (pid < 0) {
        r = -errno;
        close(gate[1]);
        close(failure[0]);
        return error_set(err, r, NULL, "cannot start %s", argv[0]);
    }
    *ret_launch = (struct launch){pid, gate[1], failure[0]};
    return 0;
}

int launch_go(struct launch *launch, struct error *err)
{
    if (write(launch->gate, "", 1) != 1)
        return error_set(err, -errno, NULL, "cannot start the command");
    close(take_fd(&launch->gate));
    return 0;
}

int launch_result(struct launch *launch, const char *command, struct error *err)
{
    struct pollfd ready = {.fd = launch->failure, .events = POLLIN};
    int code;

    if (launch->failure < 0)
        return 1;
    if (poll(&ready, 1, 0) <= 0)
        return 0;
    if (read(launch->failure, &code, sizeof(code)) == (ssize_t)sizeof(code))
        return cannot_run(code, command, err);
    close(take_fd(&launch->failure));
    return 1;
}

void launch_release(struct launch *launch)
{
    if (launch->gate >= 0)
        close(take_fd(&launch->gate));
    if (launch->failure >= 0)
        close(take_fd(&launch->failure));
}
