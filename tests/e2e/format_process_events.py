#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""usage: format_process_events.py STORE      the process events of a store as CSV

A reader of the section "Process events" that shares nothing with tracectl: it is written from docs/trace-format.md
alone. The columns are stream, process_id, seq, ns, object, other, value, site, place; unknown is empty.
"""
import ctypes
import sqlite3
import sys
import zlib

MASK = 2**64 - 1
GO, SYNC = 1, 2
CREATE, RUN, TEST = 1, 2, 12  # kinds of GO
SEND, RECEIVE = 34, 35  # kinds of SYNC
UNKNOWN_THREAD = MASK
zstd = ctypes.CDLL("libzstd.so.1")


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        assert self.at + count <= len(self.data), "too short"
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)


def read_column(payload):
    size, packed = payload.varint(), payload.varint()
    if not packed:
        return Bytes(payload.take(size))
    frame = payload.take(packed)
    buffer = ctypes.create_string_buffer(size)
    assert zstd.ZSTD_decompress(buffer, size, frame, packed) == size, "a column that zstd does not unpack"
    return Bytes(buffer.raw)


def read_dictionary(data):
    ids, previous = [0], 0
    while data.at < len(data.data):
        previous = (previous + 1 + data.zigzag()) & 0xFFFFFFFF
        ids.append(previous)
    return ids


def mix(a, b):
    mixed = (a ^ ((b << 32 | b >> 32) & MASK)) * 0x9E3779B97F4A7C15 & MASK
    return mixed ^ mixed >> 29


def slot(a, b):
    return (mix(a, b) * 0xD6E8FEB86659FD93 & MASK) >> 52


def events_of(stream, data, count):
    """(ns, object, other, value, site, place) of each event of a segment."""
    payload = Bytes(data)
    assert payload.byte() == 1 and payload.byte() == stream and payload.varint() == count
    ns = payload.varint()
    ids = read_dictionary(Bytes(payload.take(payload.varint())))
    columns = [read_column(payload) for _ in range(16)]
    assert payload.at == len(data)
    tables = [{} for _ in range(7)]  # actor, head, site, object, other, value, place: by slot
    contexts = {}
    recent, literals = [[] for _ in range(7)], [0] * 7
    last_actor = last_context = last_place = 0
    for _ in range(count):
        missed = columns[0].byte()
        ns += columns[1].varint()
        values, slots = [], []
        for field in range(7):
            actor, head = (values + [0, 0])[:2]
            kind = head >> 16
            context = contexts.get(slot(actor, 1), 0)
            if field == 0:
                at = slot(last_actor, last_context)
            elif field == 1:
                at = slot(context, 2)
            elif field == 2:
                at = slot(context, head)
            elif field == 3:
                at = slot(actor, (head << 32) + values[2] & MASK)
            elif field in (4, 5):
                at = slot(head, values[3]) if values[3] else slot(context, head)
            else:
                at = slot(actor, 1)
            value = tables[field].get(at, 0)
            if field == 0 and not value:
                value = last_actor
            if field == 4 and stream == SYNC and kind in (SEND, RECEIVE):
                value = value + tables[5].get(at, 0) & MASK
            if field == 6 and stream == GO and kind == RUN:
                value = last_place
            if missed >> field & 1:
                rank = columns[2 + field].byte()
                if rank == 255:
                    value = literals[field] = literals[field] + columns[9 + field].zigzag() & MASK
                else:
                    value = recent[field].pop(rank)
                recent[field] = [value] + recent[field][:31]
            values.append(value)
            slots.append(at)
        for field in range(7):
            tables[field][slots[field]] = values[field]
        last_actor, head, site, thing, other, value, last_place = values
        own = slot(last_actor, 1)
        last_context = contexts[own] = (contexts.get(own, 0) << 21 & MASK) + (mix(head, site) & 0x1FFFFF)
        if stream == GO and head >> 16 in (CREATE, TEST):
            value = ids[value]
        yield ns, thing, other, value, ids[site], last_place
    assert all(column.at == len(column.data) for column in columns), "a column with more than was read"


def signed(value):
    return value - 2**64 if value >> 63 else value


def main():
    db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    rows = db.execute(
        "SELECT stream, process_id, first_seq, event_count, checksum, data FROM process_segments"
        " ORDER BY stream, process_id, first_seq"
    )
    for stream, process, seq, count, checksum, data in rows:
        assert zlib.crc32(data) == checksum
        for ns, thing, other, value, site, place in events_of(stream, data, count):
            fields = [stream, process, seq, ns, signed(thing), signed(other), signed(value), site, signed(place)]
            if stream == GO:  # 0 is NULL in go_events
                fields = [field or ("" if i in (4, 5, 7, 8) else 0) for i, field in enumerate(fields)]
            else:
                fields[7] = site or ""
                fields[5] = "" if other == UNKNOWN_THREAD else fields[5]
            print(*fields, sep=",")
            seq += 1


main()
