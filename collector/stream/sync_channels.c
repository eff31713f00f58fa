/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/sync_channels.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uthash.h>

#include "base/error.h"
#include "base/foreign_file.h"
#include "collector/stream/streams_private.h"
#include "store/streams/sync_events.h"

#define ADDRESS_ROOM (INET6_ADDRSTRLEN + 16)

/* What a channel is known by: of a pipe the direction, too, since both ends are one inode; of a socket that
 * is not connected, the receiver or the sender of the datagram. */
struct channel_key {
    uint64_t inode;
    uint32_t device;
    uint16_t end; /* 0, or of a pipe 1 to read from, 2 to write to */
    uint16_t remote_port;
    uint8_t remote[16];
};

struct sync_known_channel {
    struct channel_key key;
    uint64_t number;
    enum sync_channel_kind kind;
    char local[ADDRESS_ROOM], remote[ADDRESS_ROOM];
    bool has_position[2]; /* by direction: receiving, sending */
    uint64_t position[2];
    UT_hash_handle hh;
};

struct sync_channels {
    struct sync_known_channel *known;
};

uint64_t sync_channel_number(const struct sync_known_channel *channel)
{
    return channel->number;
}

void sync_channels_release(struct sync_channels *channels)
{
    struct sync_known_channel *channel = NULL, *next = NULL;

    if (!channels)
        return;
    HASH_ITER (hh, channels->known, channel, next) {
        HASH_DEL(channels->known, channel);
        free(channel);
    }
    free(channels);
}

/* ------------------------------------------------------------------------------------------ descriptions */

static void write_address(char *text, uint16_t family, const uint8_t *address, uint16_t port)
{
    char host[INET6_ADDRSTRLEN] = "";
    static const uint8_t v4_in_v6[12] = {[10] = 0xff, [11] = 0xff};

    if (family == AF_INET6 && !memcmp(address, v4_in_v6, sizeof(v4_in_v6))) {
        family = AF_INET; /* the other end may be a plain IPv4 socket */
        address += sizeof(v4_in_v6);
    }
    inet_ntop(family, address, host, sizeof(host));
    snprintf(text, ADDRESS_ROOM, family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, port);
}

static void describe_socket(struct sync_known_channel *channel, const struct wire_sync_file *file)
{
    uint64_t peer;

    channel->kind = SYNC_CHANNEL_OTHER;
    if (file->family == AF_UNIX) {
        channel->kind = SYNC_CHANNEL_UNIX;
        memcpy(&peer, file->remote, sizeof(peer));
        snprintf(channel->local, ADDRESS_ROOM, "unix:%llu", (unsigned long long)channel->key.inode);
        if (peer) /* a peer that has closed is not known any more */
            snprintf(channel->remote, ADDRESS_ROOM, "unix:%llu", (unsigned long long)peer);
    } else if (file->family == AF_INET || file->family == AF_INET6) {
        channel->kind = file->type == SOCK_STREAM  ? SYNC_CHANNEL_TCP
                        : file->type == SOCK_DGRAM ? SYNC_CHANNEL_UDP
                                                   : SYNC_CHANNEL_OTHER;
        if (file->local_port)
            write_address(channel->local, file->family, file->local, file->local_port);
        if (file->remote_port)
            write_address(channel->remote, file->family, file->remote, file->remote_port);
    }
}

static void describe_pipe(struct sync_known_channel *channel)
{
    unsigned long long inode = channel->key.inode;
    bool writes = channel->key.end == 2;

    channel->kind = SYNC_CHANNEL_PIPE;
    snprintf(channel->local, ADDRESS_ROOM, "pipe:%llu:%s", inode, writes ? "write" : "read");
    snprintf(channel->remote, ADDRESS_ROOM, "pipe:%llu:%s", inode, writes ? "read" : "write");
}

/* The path behind a descriptor; "" where it is gone, or another file's by now. */
static void read_name(const struct traced_process *process, const struct wire_sync *record, char *name,
                      size_t room)
{
    struct stat status;
    char link[64];
    ssize_t length;

    snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)process->pid, record->fd);
    length = readlink(link, name, room - 1);
    if (length < 0 || foreign_file_stat(link, &status) || status.st_ino != record->object)
        length = 0;
    name[length] = '\0';
}

static int store_channel(struct streams *streams, const struct traced_process *process,
                         struct sync_known_channel *channel, const struct wire_sync *record,
                         const struct wire_sync_file *file)
{
    /* The kernel's dev_t has 12 bits of a major and 20 of a minor number. */
    uint32_t device = channel->key.device;
    char name[4096] = "";
    const struct sync_channel description = {
        .channel = channel->number,
        .name = name,
        .local = channel->local,
        .remote = channel->remote,
        .device = makedev(device >> 20, device & 0xfffff),
        .inode = channel->key.inode,
        .net = file ? file->net : 0,
        .kind = channel->kind,
        .from_start = process->from_start,
    };

    if (channel->kind == SYNC_CHANNEL_FILE)
        read_name(process, record, name, sizeof(name));
    return trace_writer_sync_channel(streams->writer, &description, &channel->number, &streams->error);
}

/* ------------------------------------------------------------------------------------------ finding */

static struct sync_known_channel *add_channel(struct streams *streams, const struct channel_key *key)
{
    struct sync_known_channel *channel = calloc(1, sizeof(*channel));

    if (!streams->channels)
        streams->channels = calloc(1, sizeof(*streams->channels));
    if (!channel || !streams->channels) {
        free(channel);
        return NULL;
    }
    channel->key = *key;
    HASH_ADD(hh, streams->channels->known, key, sizeof(channel->key), channel);
    return channel;
}

static void describe(struct sync_known_channel *channel, uint16_t mode, const struct wire_sync_file *file)
{
    if (S_ISFIFO(mode))
        describe_pipe(channel);
    else if (!S_ISSOCK(mode))
        channel->kind = S_ISREG(mode) || S_ISDIR(mode) || S_ISCHR(mode) || S_ISBLK(mode) ? SYNC_CHANNEL_FILE
                                                                                         : SYNC_CHANNEL_OTHER;
    else if (file)
        describe_socket(channel, file);
    else
        channel->kind = SYNC_CHANNEL_OTHER;
}

int sync_channel_of(struct streams *streams, const struct traced_process *process,
                    const struct wire_sync *record, const struct wire_sync_file *file, bool sends,
                    struct sync_known_channel **ret_channel)
{
    uint16_t mode = record->declared;
    struct sync_known_channel *channel = NULL, before;
    struct channel_key key;

    *ret_channel = NULL;
    if (!mode)
        return 0;
    memset(&key, 0, sizeof(key));
    key.inode = record->object;
    key.device = (uint32_t)record->other;
    if (S_ISFIFO(mode))
        key.end = sends ? 2 : 1;
    if (file && file->named) {
        key.remote_port = file->remote_port;
        memcpy(key.remote, file->remote, sizeof(key.remote));
    }
    if (streams->channels)
        HASH_FIND(hh, streams->channels->known, &key, sizeof(key), channel);
    *ret_channel = channel;
    if (channel && (!file || !S_ISSOCK(mode)))
        return 0;
    if (!channel)
        channel = add_channel(streams, &key);
    if (!channel)
        return error_no_memory(&streams->error), -ENOMEM;
    before = *channel;
    describe(channel, mode, file);
    *ret_channel = channel;
    if (before.number && before.kind == channel->kind && !strcmp(before.local, channel->local) &&
        !strcmp(before.remote, channel->remote))
        return 0;
    if (*before.remote && strcmp(before.remote, channel->remote) != 0)
        channel->number = 0; /* the socket has been connected anew */
    return store_channel(streams, process, channel, record, file);
}

/* ------------------------------------------------------------------------------------------ positions */

uint64_t sync_channel_advance(struct sync_known_channel *channel, const struct wire_sync_file *file,
                              bool sends, uint64_t bytes)
{
    uint64_t *position = &channel->position[sends], first = *position;

    if (channel->kind == SYNC_CHANNEL_UDP)
        return 0;
    if (channel->kind != SYNC_CHANNEL_TCP) {
        *position += bytes;
        return first;
    }
    if (!channel->has_position[sends])
        *position = file->position;
    else
        *position += (uint64_t)(int64_t)(int32_t)(file->position - (uint32_t)*position);
    channel->has_position[sends] = true;
    return *position - bytes;
}
