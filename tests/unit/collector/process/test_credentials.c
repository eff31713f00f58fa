/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/credentials.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int drop_a_capability(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &header, data))
        return -1;
    data[0].effective &= ~(1u << CAP_SYS_CHROOT);
    return (int)syscall(SYS_capset, &header, data);
}

static int change_user(void)
{
    return setresuid((uid_t)-1, 65534, (uid_t)-1);
}

static int change_group(void)
{
    return setresgid((gid_t)-1, 65534, (gid_t)-1);
}

static int change_groups(void)
{
    const gid_t groups[] = {1, 65533};

    return setgroups(2, groups);
}

static int enter_namespace(void)
{
    return unshare(CLONE_NEWUSER);
}

/* Whether a child that has done that has other rights than this process; -1: it may not do it. */
static int differs_after(int (*change)(void))
{
    struct credentials own, childs = {0};
    int status, pipe_fds[2];
    char done = 1;
    pid_t child;

    cr_assert_eq(process_credentials(getpid(), &own), 0);
    cr_assert_eq(pipe(pipe_fds), 0);
    child = fork();
    if (!child) {
        done = (char)(change && change());
        if (write(pipe_fds[1], &done, 1) == 1)
            pause();
        _exit(0);
    }
    cr_assert_eq(read(pipe_fds[0], &done, 1), 1);
    cr_assert_eq(process_credentials(child, &childs), 0);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return done ? -1 : !credentials_equal(&own, &childs);
}

Test(credentials, those_of_a_child_are_its_parents_until_it_changes_one)
{
    int (*const changes[])(void) = {change_user, change_group, change_groups, drop_a_capability,
                                    enter_namespace};

    cr_expect_eq(differs_after(NULL), 0);
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
        cr_expect_neq(differs_after(changes[i]), 0, "change %zu", i);
}

Test(credentials, a_user_namespace_that_is_not_known_is_not_compared)
{
    struct credentials one = {.user_namespace = 7}, other = {.user_namespace = 8};

    cr_assert_not(credentials_equal(&one, &other));
    other.user_namespace = 0;
    cr_assert(credentials_equal(&one, &other));
}

Test(credentials, a_process_that_is_not_there_has_none)
{
    struct credentials none;

    cr_assert_eq(process_credentials(1 << 30, &none), -ESRCH);
}
