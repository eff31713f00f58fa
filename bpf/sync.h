/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What threads do to each other: the functions of the C library that the collector has probed, or functions
 * that the user has declared; and system calls that wait, send, receive, or take time.
 *
 * A function's arguments are still in their registers where its probe stands (collector/sync/targets.h sees
 * to that). Where its result counts, its RET instructions are probed, which may be other functions' as well:
 * a return belongs to the beginning that had its return address at the same place of the stack.
 *
 * A system call's number and arguments are in the registers at its end as well, so nothing is remembered.
 */
#ifndef TRACECTL_BPF_SYNC_H
#define TRACECTL_BPF_SYNC_H

#include <bpf/bpf_core_read.h>

#include "bpf/arch.h"
#include "bpf/goroutines.h"
#include "bpf/losses.h"
#include "bpf/probe_cookie.h"
#include "bpf/processes.h"
#include "bpf/return_address.h"
#include "bpf/ring.h"
#include "bpf/wire.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, SYNC_CALLS);
    __type(key, __u32);
    __type(value, struct sync_call);
} sync_calls SEC(".maps");

static __always_inline void *sync_reserve(__u32 tid, __u64 size)
{
    struct wire_sync *record = report_loss(tid) ? bpf_ringbuf_reserve(&ring, size, 0) : 0;

    if (!record) {
        count_sync_loss(tid);
        return 0;
    }
    record->header.kind = WIRE_SYNC;
    record->header.flags = 0;
    record->header.sp_high = 0;
    record->header.tid = tid;
    record->header.ns = bpf_ktime_get_ns();
    return record;
}

/* ------------------------------------------------------------------------------------------ functions */

/* The arguments that the cookie names by their numbers, from 1; 0: none. */
static __always_inline void sync_arguments(const struct pt_regs *ctx, __u64 cookie, struct wire_sync *record)
{
    __u64 arguments[16] = {0};

    read_arguments(ctx, arguments);
    record->object = arguments[cookie >> SYNC_COOKIE_OBJECT_SHIFT & 15];
    record->other = arguments[cookie >> SYNC_COOKIE_OTHER_SHIFT & 15];
}

static __always_inline int sync_function(struct pt_regs *ctx)
{
    struct hit hit = current_hit();
    struct wire_sync *record;
    __u64 cookie, sp;

    if (!hit.flags)
        return 0;
    cookie = probe_cookie(ctx);
    if (cookie & SYNC_COOKIE_IF_ZERO && !was_zero(ctx))
        return 0;
    sp = stack_pointer(ctx) + (cookie >> COOKIE_SP_SHIFT) * 8;
    record = sync_reserve(hit.tid, sizeof(*record));
    if (!record)
        return 0;
    record->header.flags = WIRE_OF_FUNCTION;
    record->operation = (__u8)cookie;
    record->phase = (__u8)(cookie >> SYNC_COOKIE_PHASE_SHIFT) & 3;
    record->declared = (__u16)(cookie >> SYNC_COOKIE_DECLARED_SHIFT);
    record->fd = -1;
    sync_arguments(ctx, cookie, record);
    record->result = (__s64)result_of(ctx);
    record->sp = sp;
    record->place = record->phase == SYNC_WIRE_RETURN ? 0 : return_address_at(hit.task, sp);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 0;
}

/* ------------------------------------------------------------------------------------------ files */

#define SYNC_S_IFMT 0170000
#define SYNC_S_IFSOCK 0140000
#define SYNC_AF_UNIX 1
#define SYNC_AF_INET 2
#define SYNC_AF_INET6 10
#define SYNC_PROTOCOL_TCP 6
#define SYNC_SOCK_DGRAM 2
#define SYNC_SOCK_DONE 1 /* a bit of skc_flags: a FIN was received (tcp_fin) */

/* The file of a descriptor of the current process, or NULL. */
static __always_inline struct file *sync_file(struct task_struct *task, __s32 fd)
{
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    struct file **files, *file = 0;

    if (!table || fd < 0 || (__u32)fd >= BPF_CORE_READ(table, max_fds))
        return 0;
    files = BPF_CORE_READ(table, fd);
    if (bpf_probe_read_kernel(&file, sizeof(file), files + fd))
        return 0;
    return file;
}

static __always_inline void sync_name_file(struct wire_sync *record, struct file *file)
{
    record->declared = file ? BPF_CORE_READ(file, f_inode, i_mode) : 0;
    record->object = file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
    record->other = file ? BPF_CORE_READ(file, f_inode, i_sb, s_dev) : 0;
}

static __always_inline void sync_describe_peer(struct wire_sync_file *record, struct sock *sk)
{
    struct sock *peer = 0;
    struct file *file;
    __u64 inode = 0;

    if (bpf_core_field_exists(struct unix_sock, peer))
        peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
    file = peer ? BPF_CORE_READ(peer, sk_socket, file) : 0;
    if (file)
        inode = BPF_CORE_READ(file, f_inode, i_ino);
    __builtin_memcpy(record->remote, &inode, sizeof(inode));
}

/* The sequence number behind the last byte of the stream. A thread that has received all up to the end has
 * counted the FIN as well (tcp_recvmsg_locked), which is no byte. */
static __always_inline __u32 sync_tcp_position(struct sock *sk, bool sends)
{
    struct tcp_sock *tcp = (struct tcp_sock *)sk;
    __u32 position;

    if (sends)
        return BPF_CORE_READ(tcp, write_seq);
    position = BPF_CORE_READ(tcp, copied_seq);
    if (BPF_CORE_READ(sk, __sk_common.skc_flags) >> SYNC_SOCK_DONE & 1 &&
        position == BPF_CORE_READ(tcp, rcv_nxt))
        position--;
    return position;
}

static __always_inline void sync_describe_socket(struct wire_sync_file *record, struct socket *socket,
                                                 bool sends)
{
    struct sock *sk = BPF_CORE_READ(socket, sk);
    __u16 port = 0;

    if (!sk)
        return;
    record->type = (__u16)BPF_CORE_READ(socket, type);
    record->family = BPF_CORE_READ(sk, __sk_common.skc_family);
    record->net = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
    if (record->family == SYNC_AF_UNIX) {
        sync_describe_peer(record, sk);
        return;
    }
    if (record->family == SYNC_AF_INET) {
        BPF_CORE_READ_INTO((__be32 *)record->local, sk, __sk_common.skc_rcv_saddr);
        BPF_CORE_READ_INTO((__be32 *)record->remote, sk, __sk_common.skc_daddr);
    } else if (record->family == SYNC_AF_INET6) {
        BPF_CORE_READ_INTO((struct in6_addr *)record->local, sk, __sk_common.skc_v6_rcv_saddr);
        BPF_CORE_READ_INTO((struct in6_addr *)record->remote, sk, __sk_common.skc_v6_daddr);
    } else {
        return;
    }
    port = BPF_CORE_READ(sk, __sk_common.skc_dport);
    record->remote_port = (__u16)(port << 8 | port >> 8);
    record->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
    if (BPF_CORE_READ(sk, sk_protocol) == SYNC_PROTOCOL_TCP)
        record->position = sync_tcp_position(sk, sends);
}

static __always_inline void sync_describe_file(struct wire_sync_file *record, struct file *file, bool sends)
{
    if ((record->sync.declared & SYNC_S_IFMT) == SYNC_S_IFSOCK)
        sync_describe_socket(record, (struct socket *)BPF_CORE_READ(file, private_data), sends);
}

/* ------------------------------------------------------------------------------------------ system calls */

/* Registers of a system call, copied. */
struct sync_registers {
    __u64 arguments[6];
    __s64 number;
};

static __always_inline void sync_read_registers(const struct pt_regs *from, struct sync_registers *to)
{
    to->number = read_system_call(from, to->arguments);
}

static __always_inline __u64 sync_register(const struct sync_registers *registers, __u32 number)
{
    switch (number) {
    case 0:
        return registers->arguments[0];
    case 1:
        return registers->arguments[1];
    case 2:
        return registers->arguments[2];
    case 3:
        return registers->arguments[3];
    default:
        return registers->arguments[4];
    }
}

#define FUTEX_COMMAND 127

/* A futex waits (1), wakes (2) or does something else. FUTEX_WAIT, WAIT_BITSET, LOCK_PI, WAIT_REQUEUE_PI and
 * LOCK_PI2 wait; FUTEX_WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, UNLOCK_PI and WAKE_BITSET wake. */
static __always_inline int sync_futex(const struct sync_registers *registers)
{
    __u32 command = (__u32)registers->arguments[1] & FUTEX_COMMAND;

    if (command < 14 && 1u << command & (1u << 0 | 1u << 9 | 1u << 6 | 1u << 11 | 1u << 13))
        return 1;
    return command < 14 && 1u << command & (1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 7 | 1u << 10) ? 2
                                                                                                        : 0;
}

static __always_inline __u64 sync_timespec(__u64 address)
{
    struct {
        __s64 seconds, ns;
    } time;

    if (bpf_probe_read_user(&time, sizeof(time), (const void *)address))
        return 0;
    return (__u64)time.seconds * 1000000000 + (__u64)time.ns;
}

#define SYNC_MSG_PEEK 2

/* The common part of both records. `file`: of the descriptor, where there is one. */
static __always_inline void sync_fill_call(struct wire_sync *record, const struct sync_call *call,
                                           const struct sync_registers *registers, struct file *file)
{
    record->operation = call->operation;
    record->declared = 0;
    record->fd = -1;
    record->object = 0;
    record->other = 0;
    record->sp = (__u64)registers->number;
    record->place = 0;
    if (call->shape == SYNC_SHAPE_FD || call->shape == SYNC_SHAPE_ACCEPT) {
        record->fd = (__s32)sync_register(registers, call->fd);
        sync_name_file(record, file);
    } else if (call->shape == SYNC_SHAPE_FUTEX) {
        record->object = registers->arguments[0];
        if (sync_futex(registers) == 2)
            record->operation = call->wake;
    } else if (call->shape == SYNC_SHAPE_SLEEP) {
        record->other = sync_timespec(sync_register(registers, call->fd));
    }
}

static __always_inline const struct sync_call *sync_call_of(__s64 number)
{
    __u32 index = (__u32)number;
    const struct sync_call *call;

    if (number < 0 || number >= SYNC_CALLS)
        return 0;
    call = bpf_map_lookup_elem(&sync_calls, &index);
    return call && call->shape ? call : 0;
}

static __always_inline int sync_call_begins(const struct pt_regs *at, __u64 number)
{
    const struct sync_call *call = sync_call_of((__s64)number);
    struct sync_registers registers;
    struct wire_sync *record;
    struct file *file = 0;
    struct hit hit;

    if (!call)
        return 0;
    hit = current_hit();
    if (!hit.flags)
        return 0;
    sync_read_registers(at, &registers);
    if (call->shape == SYNC_SHAPE_FUTEX && sync_futex(&registers) != 1)
        return 0;
    if (call->shape == SYNC_SHAPE_FD || call->shape == SYNC_SHAPE_ACCEPT)
        file = sync_file(hit.task, (__s32)sync_register(&registers, call->fd));
    record = sync_reserve(hit.tid, sizeof(*record));
    if (!record)
        return 0;
    sync_fill_call(record, call, &registers, file);
    record->phase = SYNC_WIRE_BEGIN;
    record->result = 0;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 0;
}

/* A sockaddr_in or sockaddr_in6. */
struct sync_address {
    __u16 family, port;
    __u8 v4[4];
    __u8 v6[16];
};

/* Where a datagram goes to or comes from that is not of a connection: the target's memory says so. */
static __always_inline void sync_name_peer(struct wire_sync_file *record, const struct sync_call *call,
                                           const struct sync_registers *registers)
{
    struct sync_address address;
    __u64 at = 0;

    if (record->type != SYNC_SOCK_DGRAM || record->remote_port ||
        (record->family != SYNC_AF_INET && record->family != SYNC_AF_INET6))
        return;
    if (call->peer_in)
        at = sync_register(registers, call->peer_in);
    else if (call->message_in &&
             bpf_probe_read_user(&at, sizeof(at), (const void *)sync_register(registers, call->message_in)))
        return; /* msg_name comes first */
    __builtin_memset(&address, 0, sizeof(address));
    if (!at ||
        bpf_probe_read_user(&address, record->family == SYNC_AF_INET ? 8 : sizeof(address), (const void *)at))
        return;
    if (address.family != record->family)
        return;
    record->named = 1;
    record->remote_port = (__u16)(address.port << 8 | address.port >> 8);
    if (record->family == SYNC_AF_INET)
        __builtin_memcpy(record->remote, address.v4, sizeof(address.v4));
    else
        __builtin_memcpy(record->remote, address.v6, sizeof(address.v6));
}

static __always_inline void sync_emit_file_end(const struct hit *hit, const struct sync_call *call,
                                               const struct sync_registers *registers, __s64 result)
{
    __s32 fd = (__s32)sync_register(registers, call->fd);
    struct wire_sync_file *record;
    struct file *file;

    if (call->shape == SYNC_SHAPE_ACCEPT && result >= 0)
        fd = (__s32)result;
    file = sync_file(hit->task, fd);
    record = sync_reserve(hit->tid, sizeof(*record));
    if (!record)
        return;
    __builtin_memset((char *)record + sizeof(record->sync), 0, sizeof(*record) - sizeof(record->sync));
    sync_fill_call(&record->sync, call, registers, file);
    record->sync.phase = SYNC_WIRE_END;
    record->sync.result = result;
    record->sync.fd = fd;
    record->peeked = call->peek_in && sync_register(registers, call->peek_in) & SYNC_MSG_PEEK;
    sync_describe_file(record, file, call->sends);
    if (result > 0)
        sync_name_peer(record, call, registers);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static __always_inline int sync_call_ends(const struct pt_regs *at, __s64 result)
{
    struct sync_registers registers;
    const struct sync_call *call;
    struct wire_sync *record;
    struct hit hit = current_hit();
    int futex;

    if (!hit.flags)
        return 0;
    call = sync_call_of(system_call_of(at)); /* most calls end here */
    if (!call)
        return 0;
    sync_read_registers(at, &registers);
    if (call->shape == SYNC_SHAPE_FD || call->shape == SYNC_SHAPE_ACCEPT) {
        sync_emit_file_end(&hit, call, &registers, result);
        return 0;
    }
    futex = call->shape == SYNC_SHAPE_FUTEX ? sync_futex(&registers) : 1;
    if (!futex)
        return 0;
    record = sync_reserve(hit.tid, sizeof(*record));
    if (!record)
        return 0;
    sync_fill_call(record, call, &registers, 0);
    record->phase = futex == 2 ? SYNC_WIRE_AT : SYNC_WIRE_END;
    record->result = result;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 0;
}

#endif
