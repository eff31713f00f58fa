/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: gives_up HOW [left]
 *
 * A service that works in a child with fewer rights than its own: `users` changes the user, `capabilities`
 * gives up one, `namespace` makes a user namespace, and `none` gives up nothing. `raw-...` is the same without
 * the C library, `raw-born` a child that is made with a namespace of its own. Ends with 0 if the child's
 * memory for records is its parent's with `none`, and otherwise its own, or (`left`) there is none any more;
 * it waits for that. Prints how often each of the two has called work().
 */
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rings.h"

int capset(cap_user_header_t header,
           const cap_user_data_t data); /* the C library's, which does not declare it */

#define OTHER 65534
#define CALLS 5000

static volatile unsigned long sum;

__attribute__((noinline)) void work(unsigned value)
{
    sum += value;
    __asm__ volatile("" : : : "memory");
}

static void work_on(unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        work(i);
}

static int drop_a_capability(int raw)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &header, data))
        return -1;
    data[0].permitted &= ~(1u << CAP_SYS_CHROOT);
    data[0].effective &= data[0].permitted;
    return raw ? (int)syscall(SYS_capset, &header, data) : capset(&header, data);
}

static int change_users(void)
{
    return syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, OTHER, OTHER, OTHER) ||
           syscall(SYS_setresuid, OTHER, OTHER, OTHER);
}

static int give_up(const char *how)
{
    if (!strcmp(how, "users"))
        return setgroups(0, NULL) || setresgid(OTHER, OTHER, OTHER) || setresuid(OTHER, OTHER, OTHER);
    if (!strcmp(how, "capabilities"))
        return drop_a_capability(0);
    if (!strcmp(how, "namespace"))
        return unshare(CLONE_NEWUSER);
    if (!strcmp(how, "raw-users"))
        return change_users();
    if (!strcmp(how, "raw-capabilities"))
        return drop_a_capability(1);
    if (!strcmp(how, "raw-namespace"))
        return (int)syscall(SYS_unshare, CLONE_NEWUSER);
    return 0;
}

static int child(const char *how, int left, unsigned long parents)
{
    int shares = !strcmp(how, "none");

    work_on(CALLS);
    if (give_up(how)) {
        perror(how);
        return 2;
    }
    while (!shares && (rings() == parents || (rings() == 0) != left))
        usleep(1000);
    work_on(CALLS);
    return (rings() == parents) == shares ? 0 : 1;
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "none";
    unsigned long parents;
    int status;
    pid_t pid;

    alarm(60);
    work_on(CALLS);
    parents = rings();
    pid = strcmp(how, "raw-born") != 0
              ? fork()
              : (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (!pid)
        _exit(child(how, count > 2, parents));
    work_on(CALLS);
    if (waitpid(pid, &status, 0) != pid)
        return 3;
    work_on(CALLS);
    printf("%d %d\n%d %d\n", (int)getpid(), 3 * CALLS, (int)pid, 2 * CALLS);
    return status ? 4 : 0;
}
