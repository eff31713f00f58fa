/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/channels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/array.h"
#include "base/cleanup.h"

/* A send whose bytes may still be received. */
struct sent {
    uint64_t from, to; /* positions */
    uint32_t node;
};

/* The bytes from one end of a connection to the other. */
struct direction {
    char *key;
    struct sent *sent;
    size_t first, count, capacity;
    UT_hash_handle hh;
};

struct channels {
    struct direction *by_key;
    struct direction **outgoing, **incoming; /* by channel number - 1; NULL: not matched */
    size_t count;
};

/* Whether positions mean the same at both ends. */
static bool has_positions(const struct sync_channel *channel)
{
    switch (channel->kind) {
    case SYNC_CHANNEL_TCP:
        return true;
    case SYNC_CHANNEL_UNIX:
    case SYNC_CHANNEL_PIPE:
        return channel->from_start;
    default:
        return false;
    }
}

static bool is_local(const struct sync_channel *channel)
{
    return channel->kind != SYNC_CHANNEL_TCP || !strncmp(channel->local, "127.", 4) ||
           !strncmp(channel->local, "[::1]", 5);
}

/* NULL: no memory. */
static struct direction *get_direction(struct channels *channels, const struct sync_channel *channel,
                                       const char *from, const char *to)
{
    AUTO_FREE char *key = NULL;
    struct direction *direction;

    if (asprintf(&key, "%d %" PRIu64 " %s %s", (int)channel->kind, is_local(channel) ? channel->net : 0, from,
                 to) < 0)
        return key = NULL, NULL;
    HASH_FIND_STR(channels->by_key, key, direction);
    if (direction)
        return direction;
    direction = calloc(1, sizeof(*direction));
    if (!direction)
        return NULL;
    direction->key = take_pointer(key);
    HASH_ADD_KEYPTR(hh, channels->by_key, direction->key, strlen(direction->key), direction);
    if (!direction->hh.tbl) {
        free(direction->key);
        free(direction);
        return NULL;
    }
    return direction;
}

void channels_free(struct channels *channels)
{
    struct direction *direction = NULL, *next = NULL;

    if (!channels)
        return;
    HASH_ITER (hh, channels->by_key, direction, next) {
        HASH_DEL(channels->by_key, direction);
        free(direction->key);
        free(direction->sent);
        free(direction);
    }
    free(channels->outgoing);
    free(channels->incoming);
    free(channels);
}

/* Enters the two directions of a channel, seen from its end. */
static int add_channel(struct channels *channels, const struct sync_channel *channel)
{
    size_t at = channel->channel - 1;

    if (!channel->channel || !has_positions(channel) || !*channel->local || !*channel->remote)
        return 0;
    channels->outgoing[at] = get_direction(channels, channel, channel->local, channel->remote);
    channels->incoming[at] = get_direction(channels, channel, channel->remote, channel->local);
    return channels->outgoing[at] && channels->incoming[at] ? 0 : -ENOMEM;
}

DEFINE_CLEANUP(cleanup_channels, struct channels *, channels_free)

int channels_new(const struct cascade_trace *trace, struct channels **ret_channels)
{
    CLEANUP(cleanup_channels) struct channels *channels = calloc(1, sizeof(*channels));
    int r = 0;

    if (!channels)
        return -ENOMEM;
    for (size_t i = 0; i < trace->channel_count; i++)
        if (trace->channels[i].channel > channels->count)
            channels->count = trace->channels[i].channel;
    channels->outgoing = calloc(channels->count + 1, sizeof(struct direction *));
    channels->incoming = calloc(channels->count + 1, sizeof(struct direction *));
    if (!channels->outgoing || !channels->incoming)
        return -ENOMEM;
    for (size_t i = 0; i < trace->channel_count && r == 0; i++)
        r = add_channel(channels, &trace->channels[i]);
    if (r == 0)
        *ret_channels = take_pointer(channels);
    return r;
}

static struct direction *find(struct direction *const *directions, size_t count,
                              const struct sync_event *event)
{
    return event->object && event->object <= count ? directions[event->object - 1] : NULL;
}

bool channels_matched(const struct channels *channels, const struct sync_event *event)
{
    return find(channels->outgoing, channels->count, event);
}

int channels_send(struct channels *channels, const struct sync_event *event, uint32_t node)
{
    struct direction *direction = find(channels->outgoing, channels->count, event);

    if (!direction || event->result <= 0)
        return 0;
    if (array_reserve(&direction->sent, &direction->capacity, direction->count + 1) < 0)
        return -ENOMEM;
    direction->sent[direction->count++] =
        (struct sent){event->other, event->other + (uint64_t)event->result, node};
    return 0;
}

/* Forgets what was received long ago, once it is more than half of all. */
static void forget(struct direction *direction)
{
    if (direction->first < 64 || direction->first < direction->count / 2)
        return;
    direction->count -= direction->first;
    memmove(direction->sent, direction->sent + direction->first, direction->count * sizeof(*direction->sent));
    direction->first = 0;
}

/* Positions of an address that is used again begin anew somewhere: only a small step forward is one. */
static bool is_passed(uint64_t position, uint64_t by)
{
    return by - position - 1 < UINT64_C(1) << 31;
}

/* The sends with bytes from `from` to `to` - 1, the youngest first. */
static size_t find_sent(const struct direction *direction, uint64_t from, uint64_t to, uint32_t *ret_nodes,
                        size_t most)
{
    size_t found = 0;

    for (size_t i = direction->count; i-- > direction->first && found < most;)
        if (direction->sent[i].from < to && direction->sent[i].to > from)
            ret_nodes[found++] = direction->sent[i].node;
    return found;
}

size_t channels_receive(struct channels *channels, const struct sync_event *event, uint32_t *ret_nodes,
                        size_t most)
{
    struct direction *direction = find(channels->incoming, channels->count, event);
    uint64_t from = event->other, to = event->other + (uint64_t)event->result;
    size_t found;

    if (!direction || event->result <= 0)
        return 0;
    forget(direction);
    while (direction->first < direction->count && is_passed(direction->sent[direction->first].to, from))
        direction->first++;
    found = find_sent(direction, from, to, ret_nodes, most);
    /* A receive that met the end of the stream, too, may be one too far (tcp_recvmsg counts the FIN); and
     * what was sent just before is before it in any case. */
    return found ? found : find_sent(direction, from - 1, to, ret_nodes, most);
}
