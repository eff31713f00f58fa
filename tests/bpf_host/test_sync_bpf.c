/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel side tells of locks, messages and waiting: bpf/sync.h, without a kernel. */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "bpf/wire.h"
#include "store/streams/sync_events.h"
#include "tests/bpf_host/kernel_side.h"

enum { TGID = 7, TID = 8, CALL = 44 /* whatever its number */, FIN_TAKEN = 1 };

/* Where the target has addresses and messages. */
enum { MEMORY = 0x500000 };
static struct {
    struct sockaddr_in to;
    struct sockaddr_in6 to6;
    struct msghdr message;
} memory;

static void begin(void)
{
    kernel_reset();
    kernel_trace(TGID);
    memset(&memory, 0, sizeof(memory));
    memory.to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(9000)};
    memory.to.sin_addr.s_addr = htonl(0x0a000002);
    memory.to6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(9001)};
    memory.to6.sin6_addr.s6_addr[15] = 9;
    memory.message.msg_name = (void *)MEMORY;
    kernel_set_memory(MEMORY, &memory, sizeof(memory));
}

TestSuite(sync_bpf, .init = begin);

static uint64_t address_of(const void *part)
{
    return MEMORY + (uint64_t)((const char *)part - (const char *)&memory);
}

/* Records of the call, of which there must be `count`; the last one. */
static const void *call(const struct sync_call *kind, const uint64_t arguments[6], int64_t result,
                        size_t count)
{
    size_t before = kernel_records();

    kernel_set_sync_call(CALL, kind);
    kernel_system_call(TGID, TID, CALL, arguments, result);
    cr_assert_eq(kernel_records() - before, count, "%zu records", kernel_records() - before);
    return count ? kernel_record(kernel_records() - 1) : NULL;
}

/* ------------------------------------------------------------------------------------ positions */

static uint32_t position(const struct kernel_socket *socket, bool sends)
{
    const struct sync_call kind = {
        .operation = sends ? SYNC_SEND : SYNC_RECEIVE, .shape = SYNC_SHAPE_FD, .sends = sends};
    const uint64_t arguments[6] = {KERNEL_SOCKET};
    const struct wire_sync_file *record;

    kernel_set_socket(socket);
    record = call(&kind, arguments, 10, 2);
    cr_expect_eq(record->sync.phase, SYNC_WIRE_END);
    cr_expect_eq(record->sync.object, KERNEL_SOCKET_INODE);
    cr_expect_eq(record->net, KERNEL_NET);
    return record->position;
}

Test(sync_bpf, positions_of_tcp)
{
    struct kernel_socket socket = {
        .family = AF_INET, .type = SOCK_STREAM, .is_tcp = 1, .copied = 500, .next = 510, .written = 900};

    cr_expect_eq(position(&socket, true), 900);
    cr_expect_eq(position(&socket, false), 500);
    socket.next = 500;
    cr_expect_eq(position(&socket, false), 500, "all that has come was taken");
}

Test(sync_bpf, the_end_of_a_stream_is_no_byte)
{
    struct kernel_socket socket = {
        .family = AF_INET, .type = SOCK_STREAM, .is_tcp = 1, .had_fin = 1, .copied = 500, .next = 510};

    cr_expect_eq(position(&socket, false), 500, "it has come, but was not taken yet");
    socket.copied = 510;
    cr_expect_eq(position(&socket, false), 510 - FIN_TAKEN);
}

/* ------------------------------------------------------------------------------------ datagrams */

static const struct sync_call with_address = {.operation = SYNC_SEND,
                                              .shape = SYNC_SHAPE_FD,
                                              .sends = 1,
                                              .peer_in = 4},
                              with_message = {
                                  .operation = SYNC_RECEIVE, .shape = SYNC_SHAPE_FD, .message_in = 1};

static void expect_peer(const struct wire_sync_file *record, uint16_t port, const void *address, size_t size)
{
    cr_expect_eq(record->named, 1);
    cr_expect_eq(record->remote_port, port);
    cr_expect_eq(memcmp(record->remote, address, size), 0);
}

Test(sync_bpf, whom_a_datagram_is_for)
{
    const struct kernel_socket socket = {.family = AF_INET, .type = SOCK_DGRAM, .local_port = 5000};
    const uint64_t arguments[6] = {KERNEL_SOCKET, 0, 0, 0, address_of(&memory.to)},
                   message[6] = {KERNEL_SOCKET, address_of(&memory.message)};

    kernel_set_socket(&socket);
    expect_peer(call(&with_address, arguments, 10, 2), 9000, &memory.to.sin_addr, 4);
    expect_peer(call(&with_message, message, 10, 2), 9000, &memory.to.sin_addr, 4);
}

Test(sync_bpf, whom_a_datagram_of_ipv6_is_for)
{
    const struct kernel_socket socket = {.family = AF_INET6, .type = SOCK_DGRAM, .local_port = 5000};
    const uint64_t arguments[6] = {KERNEL_SOCKET, 0, 0, 0, address_of(&memory.to6)};

    kernel_set_socket(&socket);
    expect_peer(call(&with_address, arguments, 10, 2), 9001, &memory.to6.sin6_addr, 16);
}

static void expect_nobody(const struct kernel_socket *socket, uint64_t address, int64_t result)
{
    const uint64_t arguments[6] = {KERNEL_SOCKET, 0, 0, 0, address};
    const struct wire_sync_file *record;

    kernel_set_socket(socket);
    record = call(&with_address, arguments, result, 2);
    cr_expect_eq(record->named, 0);
    cr_expect_eq(record->remote_port, socket->remote_port);
}

Test(sync_bpf, datagrams_without_a_name)
{
    const struct kernel_socket open = {.family = AF_INET, .type = SOCK_DGRAM},
                               connected = {.family = AF_INET,
                                            .type = SOCK_DGRAM,
                                            .remote_port = 80,
                                            .remote = 1},
                               stream = {.family = AF_INET, .type = SOCK_STREAM, .is_tcp = 1};

    expect_nobody(&open, 0, 10);
    expect_nobody(&open, address_of(&memory.to), -EAGAIN);
    expect_nobody(&open, address_of(&memory.to6), 10); /* of another family */
    expect_nobody(&connected, address_of(&memory.to), 10);
    expect_nobody(&stream, address_of(&memory.to), 10);
    kernel_set_user_word(0, 0); /* the address cannot be read */
    expect_nobody(&open, address_of(&memory.to), 10);
}

/* ------------------------------------------------------------------------------------ futexes */

Test(sync_bpf, futexes_that_wait_and_wake)
{
    const struct sync_call futex = {
        .operation = SYNC_FUTEX_WAIT, .shape = SYNC_SHAPE_FUTEX, .wake = SYNC_FUTEX_WAKE};
    uint64_t arguments[6] = {0x7000, FUTEX_WAIT | FUTEX_PRIVATE_FLAG};
    const struct wire_sync *record = call(&futex, arguments, 0, 2);

    cr_expect_eq(record->operation, SYNC_FUTEX_WAIT);
    cr_expect_eq(record->phase, SYNC_WIRE_END);
    cr_expect_eq(record->object, 0x7000);
    arguments[1] = FUTEX_WAKE;
    record = call(&futex, arguments, 3, 1);
    cr_expect_eq(record->operation, SYNC_FUTEX_WAKE);
    cr_expect_eq(record->phase, SYNC_WIRE_AT);
    cr_expect_eq(record->result, 3);
    arguments[1] = FUTEX_TRYLOCK_PI;
    call(&futex, arguments, 0, 0);
}

/* ------------------------------------------------------------------------------------ functions */

Test(sync_bpf, arguments_of_functions)
{
    const struct kernel_registers at = {.di = 0xd1, .si = 0x51, .ax = 0xa1, .sp = 0x9000};
    const uint64_t cookie = SYNC_COND_WAIT | (uint64_t)SYNC_WIRE_BEGIN << SYNC_COOKIE_PHASE_SHIFT |
                            1ull << SYNC_COOKIE_OBJECT_SHIFT | 2ull << SYNC_COOKIE_OTHER_SHIFT;
    const struct wire_sync *record;

    kernel_set_stack_word(0x9000, 0x401234);
    kernel_sync_hit(TGID, TID, cookie, &at);
    cr_assert_eq(kernel_records(), 1);
    record = kernel_record(0);
    cr_expect_eq(record->operation, SYNC_COND_WAIT);
    cr_expect_eq(record->phase, SYNC_WIRE_BEGIN);
    cr_expect_eq(record->object, 0xd1);
    cr_expect_eq(record->other, 0x51);
    cr_expect_eq(record->place, 0x401234);
    cr_expect_eq(record->sp, 0x9000);
    kernel_sync_hit(TGID + 1, TID + 1, cookie, &at);
    cr_expect_eq(kernel_records(), 1, "a process that is not traced");
}

Test(sync_bpf, a_branch_that_is_taken_is_no_lock)
{
    const struct kernel_registers taken = {.di = 1}, not_taken = {.di = 1, .flags = 1 << 6 /* zero */};

    kernel_sync_hit(TGID, TID, SYNC_SPIN_LOCK | SYNC_COOKIE_IF_ZERO, &taken);
    cr_expect_eq(kernel_records(), 0);
    kernel_sync_hit(TGID, TID, SYNC_SPIN_LOCK | SYNC_COOKIE_IF_ZERO, &not_taken);
    cr_expect_eq(kernel_records(), 1);
}

Test(sync_bpf, what_finds_no_room_is_counted)
{
    const struct kernel_registers at = {.di = 1};

    kernel_set_room(0, 0);
    kernel_sync_hit(TGID, TID, SYNC_MUTEX_LOCK, &at);
    kernel_sync_hit(TGID, TID, SYNC_MUTEX_LOCK, &at);
    cr_expect_eq(kernel_pending_sync(TID), 2);
}
