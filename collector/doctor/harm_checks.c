/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Defects of some kernels by which a probe harms the program that it is in, each tried on a process of our
 * own. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "collector/cost/isolate.h"
#include "collector/cost/trial.h"
#include "collector/doctor/checks.h"
#include "image/arch/code_bytes.h"

static void call_nop5(void)
{
    self_test_site(FORM_NOP5, COPY_TRIAL)();
}

/*
 * Since 6.18 a probe on a five-byte nop becomes a call into a page that the kernel maps into the process. On
 * some kernels a child made by fork() has the call but not the page, and dies at it.
 */
void check_nop5_fork(struct self_check *check)
{
    AUTO_TRIAL struct trial trial;
    const volatile unsigned char *code = (const unsigned char *)self_test_site(FORM_NOP5, COPY_TRIAL);
    int r = trial_begin(&trial, "empty", TRIAL_CALLS, FORM_NOP5);

    if (r) {
        self_check_not_tried(check, &trial, r);
        return;
    }
    for (int i = 0; i < 100; i++)
        call_nop5();
    r = isolate_harm(call_nop5);
    if (r)
        self_check_say(check, false,
                       "after a probe on a five-byte nop was hit, a child created by fork() dies "
                       "of signal %d",
                       r);
    else
        self_check_say(check, true, "probes on five-byte nops are %s and do no harm in children",
                       code_is_call((const uint8_t *)code) ? "optimised" : "traps");
}

/* A filter that kills for every system call but write and exit_group. */
static int filter_system_calls(void)
{
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {ARRAY_SIZE(instructions), instructions};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1ul, 0ul, 0ul, 0ul))
        return -errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

static void call_filtered(enum self_test_form form)
{
    if (filter_system_calls())
        return;
    for (int i = 0; i < 100; i++)
        self_test_site(form, COPY_TRIAL)();
    syscall(SYS_exit_group, 0);
}

static void call_push_filtered(void)
{
    call_filtered(FORM_PUSH);
}

static void call_nop5_filtered(void)
{
    call_filtered(FORM_NOP5);
}

static void try_filtered(struct self_check *check, const char *program, enum trial_kind kind,
                         enum self_test_form form, void (*call)(void))
{
    AUTO_TRIAL struct trial trial;
    int r = trial_begin(&trial, program, kind, form);

    if (r)
        self_check_not_tried(check, &trial, r);
    else if ((r = isolate_harm(call)))
        self_check_say(check, false, "a process whose filter allows few system calls dies of signal %d", r);
    else
        self_check_say(check, true, "a process whose filter allows few system calls continues");
}

/* Return probes enter the kernel by a system call of their own since 6.11, which filters did not know. */
void check_seccomp_returns(struct self_check *check)
{
    try_filtered(check, "empty_session", TRIAL_SESSION, FORM_PUSH, call_push_filtered);
}

/* And so do optimised probes since 6.18. */
void check_seccomp_nop5(struct self_check *check)
{
    try_filtered(check, "empty", TRIAL_CALLS, FORM_NOP5, call_nop5_filtered);
}
