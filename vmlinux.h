/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel types that bpf/ reads, written down by hand instead of dumped from a running kernel's BTF.
 *
 * Why: a dump is 150,000 lines that differ from machine to machine, and it cannot be made where the kernel
 * has no BTF (build hosts, containers). Every struct here carries preserve_access_index, so clang records
 * *which field* is read, and libbpf puts in the offset of the kernel that the program is loaded on (CO-RE).
 * Fields that are not read are left out; the order and the gaps do not matter.
 */
#ifndef TRACECTL_VMLINUX_H
#define TRACECTL_VMLINUX_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

/* Values of the kernel's user-space interface (include/uapi/linux/bpf.h); they never change. */
enum bpf_map_type {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_STACK = 23,
    BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_EXIST = 2 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

/* What is to be done when a thread enters the kernel (include/linux/thread_info.h); the values are relocated.
 */
enum syscall_work_bit {
    SYSCALL_WORK_BIT_SECCOMP = 0,
    SYSCALL_WORK_BIT_SYSCALL_TRACE = 2,
    SYSCALL_WORK_BIT_SYSCALL_EMU = 3,
    SYSCALL_WORK_BIT_SYSCALL_USER_DISPATCH = 5,
};

/* Of whom an id or a signal is (include/linux/pid_types.h). */
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID, PIDTYPE_PGID, PIDTYPE_SID };

/* The context of a probe: its layout is the machine's and never relocated. */
struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags,
        sp, ss;
};

/* The context of a raw tracepoint. */
struct bpf_raw_tracepoint_args {
    __u64 args[2];
};

#ifdef __bpf__ /* elsewhere the logic is compiled for tests: no relocations */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

typedef struct {
    int counter;
} atomic_t;

struct pid;
struct tty_struct;

struct signal_struct {
    atomic_t live;
    int nr_threads;
    int group_exit_code;
    struct pid *pids[4]; /* by enum pid_type */
    struct tty_struct *tty;
    unsigned int flags;
};

/* The page that the kernel has in a process for probes (kernel/events/uprobes.c). */
struct xol_area {
    unsigned long vaddr;
};

struct uprobes_state {
    struct xol_area *xol_area;
};

struct mm_struct {
    unsigned long start_stack;
    struct uprobes_state uprobes_state;
    struct file *exe_file;
};

struct vm_area_struct {
    unsigned long vm_start;
    unsigned long vm_end;
    unsigned long vm_flags;
    struct file *vm_file;
};

struct thread_struct {
    unsigned long fsbase;
};

/* A return probe that waits for its return (kernel/events/uprobes.c); the innermost comes first. */
struct return_instance {
    unsigned long stack;          /* where the return address lies */
    unsigned long orig_ret_vaddr; /* what stood there */
    struct return_instance *next;
};

struct uprobe_task {
    struct return_instance *return_instances;
    unsigned long vaddr; /* a struct uprobe_dispatch_data, while probes of tracefs events are handled */
};

/* Probes of tracefs events (kernel/trace/trace_uprobe.c, trace_probe.h). */
struct fetch_insn {
    unsigned long immediate; /* a constant */
};

struct probe_arg {
    struct fetch_insn *code;
};

struct trace_probe {
    struct probe_arg args[1];
};

struct trace_uprobe {
    struct trace_probe tp;
};

struct uprobe_dispatch_data {
    struct trace_uprobe *tu;
};

/* A tracefs event, with the number of its perf events, and what its file `enable` stands for. */
struct trace_event {
    int type; /* its number */
};

struct trace_event_call {
    struct trace_event event;
    int perf_refcount;
};

struct trace_event_file {
    struct trace_event_call *event_call;
};

typedef struct {
    unsigned int val;
} kuid_t;

struct user_namespace {
    int level; /* 0: the first one */
};

struct cred {
    kuid_t uid;
    struct user_namespace *user_ns;
};

/* Files and sockets. */
struct super_block {
    unsigned int s_dev;
};

struct inode {
    unsigned short i_mode;
    struct super_block *i_sb;
    unsigned long i_ino;
    void *i_private; /* of a tracefs event's `enable` its struct trace_event_file */
};

struct file {
    void *private_data; /* of a socket its struct socket */
    struct inode *f_inode;
};

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};

struct files_struct {
    struct fdtable *fdt;
};

struct ns_common {
    unsigned int inum;
};

struct net {
    struct ns_common ns;
};

typedef struct {
    struct net *net;
} possible_net_t;

struct in6_addr {
    __u8 bytes[16];
};

struct sock_common { /* some of these are in unions of the kernel's */
    __be32 skc_daddr;
    __be32 skc_rcv_saddr;
    __be16 skc_dport;
    __u16 skc_num;
    unsigned short skc_family;
    unsigned long skc_flags;
    possible_net_t skc_net;
    struct in6_addr skc_v6_daddr;
    struct in6_addr skc_v6_rcv_saddr;
};

struct sock;

struct socket {
    short type;
    struct file *file;
    struct sock *sk;
};

struct sock {
    struct sock_common __sk_common;
    __u16 sk_protocol;
    struct socket *sk_socket;
};

struct inet_sock {
    struct sock sk;
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    __u32 copied_seq;
    __u32 rcv_nxt;
    __u32 write_seq;
};

struct unix_sock {
    struct sock sk;
    struct sock *peer;
};

struct thread_info {
    unsigned long syscall_work; /* by enum syscall_work_bit */
};

struct action_cache {
    unsigned long allow_native[8]; /* by the numbers of system calls */
};

struct seccomp_filter {
    struct action_cache cache;
};

struct seccomp {
    int mode;
    struct seccomp_filter *filter;
};

struct task_struct {
    struct thread_info thread_info;
    struct seccomp seccomp;
    const struct cred *cred;
    struct files_struct *files;
    unsigned int flags;
    unsigned int ptrace;
    unsigned int __state; /* 0: it runs or wants to */
    unsigned long jobctl;
    int on_cpu;
    unsigned long nvcsw;
    unsigned long nivcsw;
    struct uprobe_task *utask;
    struct mm_struct *mm;
    struct thread_struct thread;
    int pid;
    int tgid;
    int exit_code;
    unsigned long sas_ss_sp;
    unsigned long sas_ss_size; /* size_t in the kernel */
    struct task_struct *real_parent;
    struct task_struct *parent; /* who traces it, or real_parent */
    struct task_struct *group_leader;
    struct signal_struct *signal;
    char comm[16];
};

/* The context of an iterator over tasks. */
struct seq_file;

struct bpf_iter_meta {
    struct seq_file *seq;
};

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
};

struct bpf_iter__task_file {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
    unsigned int fd;
    struct file *file;
};

#ifdef __bpf__
#pragma clang attribute pop
#endif

#endif
