/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is done for the collector is done to its end, also when that is killed meanwhile. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/uprobe/proxy.h"

static int open_null(void *context)
{
    return open("/dev/null", O_WRONLY | O_CLOEXEC);
}

static int close_it(void *context)
{
    return close(*(int *)context);
}

Test(proxy, descriptors_are_shared)
{
    int fd = proxy_do(open_null, NULL);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "x", 1), 1);
    cr_assert_eq(proxy_do(close_it, &fd), 0);
    cr_assert_eq(fcntl(fd, F_GETFD), -1);
}

static int is_another(void *context)
{
    return getpid() != *(pid_t *)context && getsid(0) == getpid();
}

Test(proxy, it_is_a_process_of_its_own_and_no_child_of_wait)
{
    pid_t self = getpid();

    cr_assert_eq(proxy_do(is_another, &self), 1);
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
}

static int kill_itself(void *context)
{
    return kill(getpid(), SIGKILL);
}

Test(proxy, one_that_is_killed_itself_has_failed)
{
    cr_assert_lt(proxy_do(kill_itself, NULL), 0);
}

/* Says that it has begun, and later that it has not been stopped. */
static int go_on(void *context)
{
    const int *ends = context;

    if (write(ends[1], "b", 1) != 1)
        return -1;
    usleep(200000);
    return write(ends[1], "e", 1) == 1 ? 0 : -1;
}

Test(proxy, it_goes_on_when_who_asked_is_killed)
{
    struct pollfd wait = {.events = POLLIN};
    int ends[2];
    char byte;
    pid_t child;

    cr_assert_eq(pipe(ends), 0);
    child = fork();
    if (!child)
        _exit(proxy_do(go_on, ends));
    cr_assert_eq(read(ends[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    wait.fd = ends[0];
    cr_assert_eq(poll(&wait, 1, 10000), 1);
    cr_assert_eq(read(ends[0], &byte, 1), 1);
    cr_assert_eq(byte, 'e');
}
