/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: filtered KIND COMMAND [ARGUMENT...]
 *
 * Executes a command under a seccomp filter: `container` is like the default one of container engines: most calls are
 * allowed, some have an error, and some are allowed with some arguments only. The others allow all but one call that
 * inline probes would need: to `errno` gives it an error, `trap` a SIGSYS, `kill` kills the process, `notify` asks
 * another process, `arguments` refuses executable memory that is writable, `restart` kills when a sleep continues after
 * a stop.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ON(number, what) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), RETURN(what)
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define LENGTH(code) (unsigned short)(sizeof(code) / sizeof((code)[0]))

static int install(struct sock_filter *code, unsigned short length, unsigned flags)
{
    struct sock_fprog program = {.len = length, .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static int install_container(void)
{
    struct sock_filter code[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
        ON(SYS_add_key, REFUSED),
        ON(SYS_keyctl, REFUSED),
        ON(SYS_bpf, REFUSED),
        ON(SYS_kexec_load, REFUSED),
        ON(SYS_mount, REFUSED),
        ON(SYS_userfaultfd, REFUSED),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        LOAD(args[0]),
        ON(AF_VSOCK, REFUSED),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 4),
        LOAD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        RETURN(REFUSED),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(SECCOMP_RET_ALLOW),
    };

    return install(code, LENGTH(code), 0);
}

static int install_arguments(void)
{
    struct sock_filter code[] = {
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 4),
        LOAD(args[2]),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC),
        ON(PROT_WRITE | PROT_EXEC, REFUSED),
        RETURN(SECCOMP_RET_ALLOW),
    };

    return install(code, LENGTH(code), 0);
}

static int install_against(int number, unsigned what, unsigned flags)
{
    struct sock_filter code[] = {LOAD(nr), ON((unsigned)number, what), RETURN(SECCOMP_RET_ALLOW)};

    return install(code, LENGTH(code), flags);
}

static int install_kind(const char *kind)
{
    if (!strcmp(kind, "container"))
        return install_container();
    if (!strcmp(kind, "arguments"))
        return install_arguments();
    if (!strcmp(kind, "errno"))
        return install_against(SYS_socketpair, REFUSED, 0);
    if (!strcmp(kind, "trap"))
        return install_against(SYS_socketpair, SECCOMP_RET_TRAP, 0);
    if (!strcmp(kind, "kill"))
        return install_against(SYS_socketpair, SECCOMP_RET_KILL_PROCESS, 0);
    if (!strcmp(kind, "restart"))
        return install_against(SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS, 0);
    if (!strcmp(kind, "notify")) /* nobody answers: a call would never return */
        return install_against(SYS_socketpair, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER) < 0;
    return -1;
}

int main(int count, char **arguments)
{
    if (count < 3 || install_kind(arguments[1])) {
        fprintf(stderr, "usage: filtered KIND COMMAND [ARGUMENT...]\n");
        return 2;
    }
    execvp(arguments[2], arguments + 2);
    perror(arguments[2]);
    return 2;
}
