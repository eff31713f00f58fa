/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What threads have packed (bpf/slots.h): records of the ring, and what still stands in the slots of threads
 * that do nothing any more.
 *
 * The second is taken in two steps. packed_reader_sample() copies what stands there now. Whatever a thread
 * wrote into the ring before is in the ring by then; so when all of that has been read, and none of the
 * copies' chunks has come with it, what they say comes next.
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_PACKED_READER_H
#define TRACECTL_COLLECTOR_UPROBE_PACKED_READER_H

#include "collector/uprobe/unpack.h"

struct packed_reader;

/* `slots` and `pool` are the maps of bpf/slots.h, with room for `count` slots; the pool is filled. */
int packed_reader_new(int slots, int pool, uint32_t count, struct packed_reader **ret_reader);
void packed_reader_free(struct packed_reader *reader);

/* Hands on the records of a WIRE_PACKED. One that makes no sense is handed on as a loss, as is all that
 * follows in that slot. A failure of the sink is its `answer`, as everywhere here; -ENOMEM. */
int packed_reader_record(struct packed_reader *reader, const void *record, size_t size,
                         struct unpack_sink *sink);

/* Copies what stands in the slots; what was copied before is forgotten. -ENOMEM. */
int packed_reader_sample(struct packed_reader *reader);
/* Hands on what was copied. */
int packed_reader_consume(struct packed_reader *reader, struct unpack_sink *sink);

/* Hands on what a thread, or all threads of a process that has ended (else `tgid` 0), have left behind,
 * before the record that says so. */
int packed_reader_consume_left(struct packed_reader *reader, uint32_t tid, uint32_t tgid,
                               struct unpack_sink *sink);

#endif
