/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which send a receive's bytes are from: positions in streams of bytes, and datagrams, which have none. */
#include <criterion/criterion.h>

#include "analyzer/cascade/channels.h"

enum { MOST = 4, NOBODY = UINT32_MAX };

static struct sync_channel descriptions[MOST];
static struct cascade_trace trace;
static struct channels *channels;

static void tear_down(void)
{
    channels_free(channels);
    channels = NULL;
}

TestSuite(channels, .fini = tear_down);

/* Channel `number`, from 1. */
static void add(uint64_t number, enum sync_channel_kind kind, const char *local, const char *remote,
                uint64_t net)
{
    descriptions[number - 1] = (struct sync_channel){.channel = number,
                                                     .kind = kind,
                                                     .local = (char *)local,
                                                     .remote = (char *)remote,
                                                     .name = "",
                                                     .net = net};
    trace.channels = descriptions;
    trace.channel_count = number;
}

static void sends(uint64_t channel, uint64_t position, int64_t size, uint32_t node)
{
    const struct process_event event = {
        .kind = SYNC_SEND, .object = channel, .other = position, .result = size};

    cr_assert_eq(channels_send(channels, &event, node), 0);
}

/* The node that the receive is from; NOBODY: none, and one is the most. */
static uint32_t receives(uint64_t channel, uint64_t position, int64_t size)
{
    const struct process_event event = {
        .kind = SYNC_RECEIVE, .object = channel, .other = position, .result = size};
    uint32_t nodes[MOST];
    size_t count = channels_receive(channels, &event, nodes, MOST);

    cr_assert_leq(count, (size_t)1);
    return count ? nodes[0] : NOBODY;
}

Test(channels, bytes_at_the_same_position)
{
    add(1, SYNC_CHANNEL_TCP, "10.0.0.1:5", "10.0.0.2:6", 1);
    add(2, SYNC_CHANNEL_TCP, "10.0.0.2:6", "10.0.0.1:5", 2);
    cr_assert_eq(channels_new(&trace, &channels), 0);
    sends(1, 100, 10, 7);
    sends(1, 110, 10, 8);
    cr_expect_eq(receives(2, 100, 10), 7);
    cr_expect_eq(receives(2, 115, 5), 8);
    cr_expect_eq(receives(2, 120, 5), NOBODY, "nobody has sent that");
}

Test(channels, datagrams_by_their_sizes)
{
    add(1, SYNC_CHANNEL_UDP, "0.0.0.0:5", "10.0.0.2:6", 1);
    add(2, SYNC_CHANNEL_UDP, "[::]:6", "10.0.0.1:5", 2);
    cr_assert_eq(channels_new(&trace, &channels), 0);
    sends(1, 0, 10, 7);
    sends(1, 0, 20, 8);
    sends(1, 0, 10, 9);
    cr_expect_eq(receives(2, 0, 20), 8);
    cr_expect_eq(receives(2, 0, 10), 7, "the oldest of its size");
    cr_expect_eq(receives(2, 0, 10), 9);
    cr_expect_eq(receives(2, 0, 10), NOBODY, "each once");
}

Test(channels, datagrams_of_another_address)
{
    add(1, SYNC_CHANNEL_UDP, "10.0.0.3:5", "10.0.0.2:6", 1);
    add(2, SYNC_CHANNEL_UDP, "0.0.0.0:6", "10.0.0.1:5", 2);
    cr_assert_eq(channels_new(&trace, &channels), 0);
    sends(1, 0, 10, 7);
    cr_expect_eq(receives(2, 0, 10), NOBODY);
}

Test(channels, datagrams_of_another_namespace)
{
    add(1, SYNC_CHANNEL_UDP, "0.0.0.0:5", "127.0.0.1:6", 1);
    add(2, SYNC_CHANNEL_UDP, "0.0.0.0:6", "127.0.0.1:5", 2);
    cr_assert_eq(channels_new(&trace, &channels), 0);
    sends(1, 0, 10, 7);
    cr_expect_eq(receives(2, 0, 10), NOBODY, "each has a loopback interface of its own");
}

Test(channels, datagrams_of_one_of_two_senders)
{
    add(1, SYNC_CHANNEL_UDP, "0.0.0.0:5", "10.0.0.2:6", 1);
    add(2, SYNC_CHANNEL_UDP, "0.0.0.0:5", "10.0.0.2:6", 3);
    add(3, SYNC_CHANNEL_UDP, "0.0.0.0:6", "10.0.0.1:5", 2);
    cr_assert_eq(channels_new(&trace, &channels), 0);
    sends(1, 0, 10, 7);
    sends(2, 0, 10, 8);
    cr_expect_eq(receives(3, 0, 10), NOBODY, "nobody knows which");
}
