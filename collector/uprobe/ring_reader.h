/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the rings of the kernel side, and what threads have packed; hands on plain records. */
#ifndef TRACECTL_COLLECTOR_UPROBE_RING_READER_H
#define TRACECTL_COLLECTOR_UPROBE_RING_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/uprobe/packed_reader.h"
#include "collector/uprobe/unpack.h"

struct ring_buffer;

struct ring_reader {
    struct ring_buffer *rings;
    struct packed_reader *packed; /* NULL: nothing is packed */
    bool wanted, looked;          /* to look into slots now; what was found there has not been taken yet */
    unsigned long looked_at;      /* how far the ring was filled then */
    uint64_t sampled_ns;

    /* One round. */
    struct unpack_sink sink;
    uint64_t left; /* records */
    int failure;
};

/* `ring` and `overflow` are maps, `packed` is taken over. A negative errno. */
int ring_reader_open(struct ring_reader *reader, int ring, int overflow, struct packed_reader *packed);
void ring_reader_close(struct ring_reader *reader);

/* As life_cycle_operations.consume. */
int ring_reader_consume(struct ring_reader *reader, unsigned limit, wire_handler handle, void *context);

/* Bytes of the rings that have been read, with the kernel's own 8 of each record. */
uint64_t ring_reader_bytes(const struct ring_reader *reader);

#endif
