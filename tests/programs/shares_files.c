/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shares its table of descriptors with a child, which takes every message away that comes to a socket there.
 * Calls a function all the time, and prints "beat" ten times a second.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIGHEST 16 /* descriptor that the child looks at */

static volatile unsigned long sum;

__attribute__((noinline, noclone)) static void call(unsigned long n)
{
    sum = sum + n;
}

static void take_messages(void)
{
    char byte, control[64];
    struct iovec text = {&byte, 1};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        for (int fd = 3; fd <= HIGHEST; fd++) {
            struct msghdr message = {
                .msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};

            recvmsg(fd, &message, MSG_DONTWAIT);
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

int main(void)
{
    if (!syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL))
        take_messages();
    for (unsigned long n = 1;; n++) {
        for (int i = 0; i < 100; i++)
            call(n);
        if (n % 10 == 0) {
            puts("beat");
            fflush(stdout);
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}
