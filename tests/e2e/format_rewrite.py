#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""usage: format_rewrite.py STORE

Writes the segments of a store anew, as a writer that only knows codec 1 does: their codes in that codec, the other
sections as they are, not packed. Written from docs/trace-format.md alone, as format_reader.py is.
"""
import sqlite3
import sys
import zlib

import format_reader as reader
from format_codecs import Window, decode


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def eliminate_zeros(words_out):
    plain = b"".join(word.to_bytes(2, "little") for word in words_out)
    out = bytearray()
    for at in range(0, len(plain), 8):
        group = plain[at : at + 8]
        out.append(sum(1 << i for i, byte in enumerate(group) if byte))
        out += bytes(byte for byte in group if byte)
    return bytes(out)


def encode_parlot(words):
    window = Window()
    out = []
    source = None
    length = 0
    for word in words:
        if source is not None:
            if word == window.words[(source + length) & 0xFFFF] and length < 65535:
                length += 1
                window.add(word, True)
                continue
            out.append(length)
        out.append(word)
        source = window.add(word, False)
        length = 0
    if source is not None:
        out.append(length)
    return eliminate_zeros(out)


def rewrite(row):
    segment = reader.read_segment(row)
    sections = dict(segment.sections)
    events = reader.SegmentEvents(row["thread_id"], segment)
    sections["code"] = encode_parlot(events.words)
    if segment.flags & reader.CALL_SITES:
        calls = sum(word > 0 and events.functions[word] != reader.LOST for word in events.words)
        sections["site code"] = encode_parlot(decode(segment.codec, segment.sections["site code"], calls))
    names = reader.section_names(segment.flags)
    return b"".join(
        [bytes([1, 1, segment.flags & ~reader.PACKED])]
        + [varint(len(sections[name])) for name in names]
        + [sections[name] for name in names]
    )


def main():
    db = sqlite3.connect(sys.argv[1])
    db.row_factory = sqlite3.Row
    with db:
        for row in db.execute("SELECT * FROM segments").fetchall():
            data = rewrite(row)
            db.execute(
                "UPDATE segments SET codec = 1, data = ?, checksum = ? WHERE segment_id = ?",
                (data, zlib.crc32(data), row["segment_id"]),
            )


main()
