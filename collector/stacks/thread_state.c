/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/thread_state.h"

#include <stdio.h>
#include <sys/syscall.h>

#include "base/array.h"

/* TASK_... of the kernel's include/linux/sched.h */
enum { INTERRUPTIBLE = 1, UNINTERRUPTIBLE = 2, STOPPED = 4, TRACED = 8, ENDING = 0x10 | 0x20 | 0x80 };

/* System calls that threads are found waiting in. */
static const struct {
    long number;
    const char *name;
} calls[] = {
    {SYS_futex, "futex"},
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pread64, "pread"},
    {SYS_pwrite64, "pwrite"},
    {SYS_poll, "poll"},
    {SYS_ppoll, "ppoll"},
    {SYS_select, "select"},
    {SYS_pselect6, "pselect"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_epoll_pwait2, "epoll_pwait2"},
    {SYS_io_uring_enter, "io_uring_enter"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_connect, "connect"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_pause, "pause"},
    {SYS_rt_sigsuspend, "sigsuspend"},
    {SYS_rt_sigtimedwait, "sigtimedwait"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_open, "open"},
    {SYS_openat, "openat"},
    {SYS_semop, "semop"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_msgsnd, "msgsnd"},
    {SYS_mq_timedreceive, "mq_receive"},
    {SYS_mq_timedsend, "mq_send"},
    {SYS_sched_yield, "sched_yield"},
};

static const char *call_name(int64_t number)
{
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        if (calls[i].number == number)
            return calls[i].name;
    return NULL;
}

void thread_state_words(const struct live_thread *thread, char *ret_text, size_t size)
{
    const char *word = "running", *call = call_name(thread->system_call);

    if (thread->state & INTERRUPTIBLE)
        word = "sleeping";
    else if (thread->state & UNINTERRUPTIBLE)
        word = "waiting";
    else if (thread->state & STOPPED)
        word = "stopped";
    else if (thread->state & TRACED)
        word = "traced";
    else if (thread->state & ENDING)
        word = "ending";
    if (!thread->state || thread->system_call < 0)
        snprintf(ret_text, size, "%s", word);
    else if (call)
        snprintf(ret_text, size, "%s in %s", word, call);
    else
        snprintf(ret_text, size, "%s in system call %lld", word, (long long)thread->system_call);
}
