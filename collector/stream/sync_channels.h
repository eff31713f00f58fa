/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files, pipes and connections that the processes of a recording use, each with its number in the store
 * (struct sync_channel) and the positions in its streams of bytes. */
#ifndef TRACECTL_COLLECTOR_STREAM_SYNC_CHANNELS_H
#define TRACECTL_COLLECTOR_STREAM_SYNC_CHANNELS_H

#include <stdint.h>

#include "bpf/wire.h"
#include "collector/stream/registry.h"

struct sync_channels;
struct sync_known_channel;
struct streams;

/* The channel of a record that has a descriptor, found or made; its description becomes better when `file`
 * (NULL: at a beginning) says more. `ret_channel` NULL: the record has no file. `sends`: the direction, which
 * makes one end of a pipe or the other. On failure streams->error is filled. */
int sync_channel_of(struct streams *streams, const struct traced_process *process,
                    const struct wire_sync *record, const struct wire_sync_file *file, bool sends,
                    struct sync_known_channel **ret_channel);

uint64_t sync_channel_number(const struct sync_known_channel *channel);

/* The position of the first of `bytes` bytes that have just been sent or received, and moves on. */
uint64_t sync_channel_advance(struct sync_known_channel *channel, const struct wire_sync_file *file,
                              bool sends, uint64_t bytes);

void sync_channels_release(struct sync_channels *channels); /* accepts NULL */

#endif
