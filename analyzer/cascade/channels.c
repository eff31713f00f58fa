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
    bool datagrams;
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

    if (!channel->channel || !*channel->local || !*channel->remote)
        return 0;
    if (channel->kind == SYNC_CHANNEL_UDP) {
        channels->outgoing[at] = get_direction(channels, channel, channel->local, channel->remote);
        if (channels->outgoing[at])
            channels->outgoing[at]->datagrams = true;
        return channels->outgoing[at] ? 0 : -ENOMEM;
    }
    if (!has_positions(channel))
        return 0;
    channels->outgoing[at] = get_direction(channels, channel, channel->local, channel->remote);
    channels->incoming[at] = get_direction(channels, channel, channel->remote, channel->local);
    return channels->outgoing[at] && channels->incoming[at] ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------------------------------ datagrams */

/* One end of UDP. */
struct endpoint {
    size_t host; /* the length of its address in the text */
    const char *text;
    unsigned long port;
};

static struct endpoint endpoint_of(const char *text)
{
    const char *colon = strrchr(text, ':');

    return (struct endpoint){.host = colon ? (size_t)(colon - text) : strlen(text),
                             .text = text,
                             .port = colon ? strtoul(colon + 1, NULL, 10) : 0};
}

static bool is_host(const struct endpoint *endpoint, const char *host)
{
    return endpoint->host == strlen(host) && !strncmp(endpoint->text, host, endpoint->host);
}

/* A socket that is bound to no address in particular has one of its host's. */
static bool is_wildcard(const struct endpoint *endpoint)
{
    return is_host(endpoint, "0.0.0.0") || is_host(endpoint, "[::]");
}

static bool can_be_same(const struct endpoint *a, const struct endpoint *b)
{
    return a->port == b->port &&
           (is_wildcard(a) || is_wildcard(b) || (a->host == b->host && !strncmp(a->text, b->text, a->host)));
}

static bool is_loopback(const struct endpoint *endpoint)
{
    return !strncmp(endpoint->text, "127.", 4) || is_host(endpoint, "[::1]");
}

/* Whether what is sent over the one channel can be received over the other one. */
static bool can_reach(const struct sync_channel *from, const struct sync_channel *to)
{
    struct endpoint source = endpoint_of(from->local), target = endpoint_of(from->remote),
                    received_from = endpoint_of(to->remote), receiver = endpoint_of(to->local);

    return can_be_same(&source, &received_from) && can_be_same(&target, &receiver) &&
           (from->net == to->net || !is_loopback(&target));
}

/* Of those who could have sent the channel's datagrams the only one; when there are several, nobody knows. */
static void find_sender(struct channels *channels, const struct cascade_trace *trace,
                        const struct sync_channel *to)
{
    struct direction *found = NULL;

    for (size_t i = 0; i < trace->channel_count; i++) {
        const struct sync_channel *from = &trace->channels[i];
        struct direction *direction = from->channel ? channels->outgoing[from->channel - 1] : NULL;

        if (from->kind != SYNC_CHANNEL_UDP || !direction || direction == found || !can_reach(from, to))
            continue;
        if (found)
            return;
        found = direction;
    }
    channels->incoming[to->channel - 1] = found;
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
    for (size_t i = 0; i < trace->channel_count && r == 0; i++)
        if (trace->channels[i].kind == SYNC_CHANNEL_UDP && trace->channels[i].channel &&
            *trace->channels[i].remote)
            find_sender(channels, trace, &trace->channels[i]);
    if (r == 0)
        *ret_channels = take_pointer(channels);
    return r;
}

/* ------------------------------------------------------------------------------------------ sending */

static struct direction *find(struct direction *const *directions, size_t count,
                              const struct process_event *event)
{
    return event->object && event->object <= count ? directions[event->object - 1] : NULL;
}

int channels_send(struct channels *channels, const struct process_event *event, uint32_t node)
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

/* The oldest datagram of that size, which is used up. */
static size_t take_datagram(struct direction *direction, uint64_t size, uint32_t *ret_nodes)
{
    for (size_t i = direction->first; i < direction->count; i++) {
        struct sent *sent = &direction->sent[i];

        if (sent->to - sent->from != size)
            continue;
        *ret_nodes = sent->node;
        sent->to = sent->from; /* no datagram that is received has no bytes */
        while (direction->first < direction->count &&
               direction->sent[direction->first].to == direction->sent[direction->first].from)
            direction->first++;
        return 1;
    }
    return 0;
}

size_t channels_receive(struct channels *channels, const struct process_event *event, uint32_t *ret_nodes,
                        size_t most)
{
    struct direction *direction = find(channels->incoming, channels->count, event);
    uint64_t from = event->other, to = event->other + (uint64_t)event->result;

    if (!direction || event->result <= 0)
        return 0;
    forget(direction);
    if (direction->datagrams)
        return most ? take_datagram(direction, (uint64_t)event->result, ret_nodes) : 0;
    while (direction->first < direction->count && is_passed(direction->sent[direction->first].to, from))
        direction->first++;
    return find_sent(direction, from, to, ret_nodes, most);
}
