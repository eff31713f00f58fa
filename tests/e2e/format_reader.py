#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""usage: format_reader.py STORE [THREAD_ID]      the events of a store, or of one of its threads, as CSV
       format_reader.py --answers DOCUMENT     decodes the known answers of docs/trace-format.md

A reader of the format that shares nothing with tracectl: it is written from docs/trace-format.md alone and has
neither the library nor the extension, only Python's standard library. Where it and tracectl differ, one of the three
is wrong.

The columns are thread_id and those that docs/sql.md gives the table `events`; the rows come by thread_id and seq.
Standard error tells what of the format was met, as "NAME COUNT" lines, so that a test knows that it has tested it.
"""
import collections
import contextlib
import csv
import re
import sqlite3
import sys
import zlib

from format_codecs import MASK32, MASK64, Arithmetic, Bytes, Damaged, K, Unpacking, decode, need, seen

APPLICATION_ID = 0x74726163
VERSION = 1
LOST = 0xFFFFFFFF
CALLS_ONLY, CALL_SITES, ASSUMED, PACKED = 1, 2, 4, 8
# Of the numbers in packed sections.
COLUMNS = {
    "stack": (0, 1, 2),
    "dictionary": (3,),
    "time": (4, 5),
    "site stack": (6,),
    "site dictionary": (7,),
    "assumed": (8,),
}


# ------------------------------------------------------------------------------------------------ segments

Call = collections.namedtuple("Call", "function seq site local")
Event = collections.namedtuple("Event", "thread_id seq kind function_id depth ns ns_error call_site assumed")


def section_names(flags):
    names = ["stack", "dictionary", "time", "code"]
    if flags & CALL_SITES:
        names += ["site stack", "site dictionary", "site code"]
    if flags & ASSUMED:
        names.append("assumed")
    return names


class Segment:
    """The sections of one segment: of a row of `segments`, or of an open one that the journal tells."""

    def __init__(self, codec, flags, sections, first_seq, event_count, first_ns, last_ns):
        self.codec, self.flags, self.sections = codec, flags, sections
        self.first_seq, self.event_count = first_seq, event_count
        self.first_ns, self.last_ns = first_ns, last_ns

    def read_dictionary(self, name):
        data = Bytes(self.sections[name])
        numbers = [None]
        previous = 0
        while data.rest():
            previous = (previous + 1 + data.zigzag()) & MASK32
            numbers.append(previous)
        return numbers

    def read_stack(self):
        """Functions and seqs of the calls that are open before the first event."""
        data = Bytes(self.sections["stack"])
        calls = []
        function = seq = time = 0
        while data.rest():
            function = (function + data.zigzag()) & MASK32
            step = data.varint()
            need(step > 0 or not calls, "a stack that is not ascending")
            seq += step
            time += data.varint()
            need(function not in (0, LOST), "no function in the stack")
            need(seq < self.first_seq, "a call in the stack that is not before the segment")
            calls.append((function, seq))
        return calls

    def read_anchors(self):
        """The last anchor before the segment (0: none), and (index, time) of those in it."""
        data = Bytes(self.sections["time"])
        if not data.rest():
            return 0, []
        before = time = data.varint()
        index = 0
        anchors = []
        while data.rest():
            index += data.varint()
            time += data.varint()
            need(index <= self.event_count, "an anchor outside of the segment")
            anchors.append((index, time))
        return before, anchors


def read_segment(row):
    need(zlib.crc32(row["data"]) == row["checksum"], "a wrong checksum")
    need(row["raw_bytes"] == 2 * row["event_count"], "raw_bytes")
    need(0 < row["event_count"] <= 16777216, "too many events")
    data = Bytes(row["data"])
    need(data.byte() == 1, "a segment of another version")
    codec, flags = data.byte(), data.byte()
    need(codec == row["codec"], "the codec is not that of the row")
    need(flags & ~(CALLS_ONLY | CALL_SITES | ASSUMED | PACKED) == 0, "unknown flags")
    names = section_names(flags)
    lengths = {name: data.varint() for name in names}
    sections = {}
    if flags & PACKED:
        plain = [name for name in names if name not in ("code", "site code")]
        need(sum(lengths[name] for name in plain) <= 4194304, "sections too long to be packed")
        code = Arithmetic(data.take(data.varint()))
        unpacking = Unpacking(code)
        for name in plain:
            sections[name] = unpacking.section(lengths[name], COLUMNS[name])
        code.end()
        seen["packed segments"] += 1
        names = [name for name in names if name not in plain]
    for name in names:
        sections[name] = data.take(lengths[name])
    need(data.rest() == 0, "bytes behind the sections")
    seen[f"segments of codec {codec}"] += 1
    return Segment(codec, flags, sections, row["first_seq"], row["event_count"], row["first_ns"], row["last_ns"])


def read_functions(blob):
    """The calls of each function that `segments.functions` names."""
    need(len(blob) >= 4 and zlib.crc32(blob[:-4]) == int.from_bytes(blob[-4:], "little"), "a wrong list of functions")
    data = Bytes(blob[:-4])
    functions = {}
    function = 0
    while data.rest():
        calls, gap = divmod(data.varint(), 2)
        function += 2 + data.varint() if gap else 1
        need(function <= LOST, "no function in a list")
        functions[function] = calls
    return functions


# ------------------------------------------------------------------------------------------------ events


class Sites:
    """Where the calls of a segment came from, with local ids throughout."""

    def __init__(self, segment, stack_size, calls):
        self.numbers = segment.read_dictionary("site dictionary")
        data = Bytes(segment.sections["site stack"])
        self.of_stack = [data.varint() for _ in range(stack_size)]
        need(data.rest() == 0, "bytes behind the site stack")
        need(all(site < len(self.numbers) for site in self.of_stack), "a site outside of the dictionary")
        self.words = iter(decode(segment.codec, segment.sections["site code"], calls))
        self.context = 0
        self.table = [(0, 0)] * 4096
        self.last = collections.defaultdict(int)

    def call(self, function):
        index = ((self.context * K + function) * K & MASK64) >> 52
        site = next(self.words)
        if site == 0:
            entry = self.table[index]
            site = entry[1] if entry[0] == function else self.last[function]
            need(site != 0, "a prediction where there is none")
            seen["predicted sites"] += 1
        need(site < len(self.numbers), "a site outside of the dictionary")
        self.table[index] = (function, site)
        self.last[function] = site
        self.change(site, 0)
        return site

    def change(self, site, ends):
        self.context = (self.context * 2**17 + 2 * site + ends) % 2**51

    def number(self, site):
        """A site_id, None: unknown."""
        return self.numbers[site] or None


class AssumedCalls:
    def __init__(self, segment, stack_size, calls):
        data = Bytes(segment.sections["assumed"])
        runs = []
        need(data.rest() > 0, "an assumed section without a length")
        while data.rest():
            runs.append(data.varint())
        need(all(runs[1:]), "an empty run of assumed calls")
        need(sum(runs) < stack_size + calls, "no assumed calls behind the last run")
        runs.append(stack_size + calls - sum(runs))
        self.bits = (number & 1 for number, length in enumerate(runs) for _ in range(length))
        self.entries = [0] * 1024
        self.of_stack = [next(self.bits) for _ in range(stack_size)]

    def call(self, function, around):
        index = (around * 40503 + function) * 2654435769 % 2**32 >> 22
        self.entries[index] ^= next(self.bits)
        return self.entries[index]


class NoSites:
    """Of a segment without call sites."""

    numbers = [None]

    def call(self, _function):
        return 0

    def change(self, _site, _ends):
        pass

    def number(self, _site):
        return None


class NoneAssumed:
    def call(self, _function, _around):
        return 0


class Times:
    """When events happened: from when on, and how much later at most."""

    def __init__(self, segment):
        before, self.anchors = segment.read_anchors()
        self.time = before or None
        self.last_ns = segment.last_ns
        self.next = 0

    def of(self, index):
        exact = False
        while self.next < len(self.anchors) and self.anchors[self.next][0] <= index:
            anchor, self.time = self.anchors[self.next]
            exact = anchor == index
            self.next += 1
            seen["anchors"] += 1
        if self.time is None:
            return None, None
        if exact:
            return self.time, 0
        latest = self.anchors[self.next][1] if self.next < len(self.anchors) else self.last_ns
        need(latest >= self.time, "time goes back")
        return self.time, max(latest - self.time, 10)


class SegmentEvents:
    """The events of one segment, in their order; `stack` are the calls open behind the last one."""

    def __init__(self, thread_id, segment):
        self.thread_id = thread_id
        self.segment = segment
        self.functions = segment.read_dictionary("dictionary")
        need(len(self.functions) <= 65536 and 0 not in self.functions, "no function in the dictionary")
        self.words = decode(segment.codec, segment.sections["code"], segment.event_count)
        need(max(self.words) < len(self.functions), "a function outside of the dictionary")
        self.calls = collections.Counter()
        stack = segment.read_stack()
        calls = sum(word > 0 and self.functions[word] != LOST for word in self.words)
        self.sites = NoSites()
        of_stack = [0] * len(stack)
        if segment.flags & CALL_SITES:
            self.sites = Sites(segment, len(stack), calls)
            of_stack = self.sites.of_stack
            seen["segments with call sites"] += 1
        self.assumed = AssumedCalls(segment, len(stack), calls) if segment.flags & ASSUMED else NoneAssumed()
        self.stack = [Call(function, seq, site, 0) for (function, seq), site in zip(stack, of_stack)]
        need(not (segment.flags & CALLS_ONLY and stack), "a stack without returns")

    def __iter__(self):
        times = Times(self.segment)
        for index, word in enumerate(self.words):
            seq = self.segment.first_seq + index
            ns, error = times.of(index)
            if word == 0:
                kind, function, depth, site, assumed = self.returns()
            elif self.functions[word] == LOST:
                self.calls[LOST] += 0
                kind, function, depth, site, assumed = "lost", None, len(self.stack), None, 0
            else:
                kind, function, depth, site, assumed = self.begins(word, seq)
            seen["events"] += 1
            seen["kind " + kind] += 1
            seen["assumed calls"] += assumed
            seen["deepest"] = max(seen["deepest"], depth)
            yield Event(self.thread_id, seq, kind, function, depth, ns, error, site, assumed)

    def returns(self):
        need(self.stack, "a return without an open call")
        call = self.stack.pop()
        self.calls[call.function] += 0
        self.sites.change(call.site, 1)
        return "return", call.function, len(self.stack), None, 0

    def begins(self, word, seq):
        function = self.functions[word]
        depth = len(self.stack)
        self.calls[function] += 1
        site = self.sites.call(word)
        assumed = self.assumed.call(word, self.stack[-1].local if self.stack else 0)
        if not self.segment.flags & CALLS_ONLY:
            self.stack.append(Call(function, seq, site, word))
        return "call", function, depth, self.sites.number(site), assumed


# ------------------------------------------------------------------------------------------------ the journal


class OpenSegment:
    """What the chunks of one thread say about the segment that is not a row yet."""

    def __init__(self, first_seq):
        self.first_seq = first_seq
        self.sections = collections.defaultdict(bytes)
        self.counts = collections.Counter()
        self.form = None

    def apply(self, chunk, row_ns):
        self.event_count = chunk.varint()
        codec, flags = chunk.byte(), chunk.byte()
        need(flags & ~(CALLS_ONLY | CALL_SITES | ASSUMED) == 0, "unknown flags in the journal")
        need(self.form in (None, (codec, flags & ~ASSUMED)), "a segment of the journal that changes its form")
        self.form = (codec, flags & ~ASSUMED)
        self.codec, self.flags = codec, flags
        self.first_ns = chunk.varint() or None
        self.last_ns = row_ns
        names = section_names(flags)
        lengths = [(chunk.varint(), chunk.varint()) for _ in names]
        counts_length = chunk.varint()
        for name, (offset, length) in zip(names, lengths):
            need(offset <= len(self.sections[name]), "an offset behind the section")
            self.sections[name] = self.sections[name][:offset] + chunk.take(length)
        if lengths[names.index("dictionary")][0] == 0:
            self.counts.clear()
        counts = Bytes(chunk.take(counts_length))
        local = 0
        while counts.rest():
            local += counts.varint()
            self.counts[local] += counts.varint()
        need(chunk.rest() == 0, "bytes behind a chunk")
        seen["chunks"] += 1

    def segment(self):
        return Segment(
            self.codec,
            self.flags,
            {name: self.sections[name] for name in section_names(self.flags)},
            self.first_seq,
            self.event_count,
            self.first_ns,
            self.last_ns,
        )

    def calls(self, functions):
        need(all(0 < local < len(functions) for local in self.counts), "a count of no function")
        return {functions[local]: count for local, count in self.counts.items()}


def journal_of(db, run_id):
    """Rows of the journal: time and the chunks as (thread_id, first_seq, the bytes behind)."""
    for row in db.execute("SELECT * FROM journal WHERE run_id = ? ORDER BY journal_id", (run_id,)):
        need(zlib.crc32(row["data"]) == row["checksum"], "a wrong checksum in the journal")
        data = Bytes(row["data"])
        need(data.byte() == 1, "a journal of another version")
        while data.rest():
            chunk = Bytes(data.take(data.varint()))
            thread_id = chunk.varint()
            yield row["ns"], thread_id, chunk.varint(), chunk


def open_segments(db, run_id, ends):
    """The open segments of a run's threads; `ends`: the event behind each thread's last segment."""
    found = {}
    for ns, thread_id, first_seq, chunk in journal_of(db, run_id):
        if first_seq == ends.get(thread_id, 0):
            found.setdefault(thread_id, OpenSegment(first_seq)).apply(chunk, ns)
        else:
            seen["stale chunks"] += 1
    return found


# ------------------------------------------------------------------------------------------------ the store


class Store:
    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.db.row_factory = sqlite3.Row
        need(self.pragma("application_id") == APPLICATION_ID, "not a store")
        need(self.pragma("user_version") == VERSION, "a store of another version")
        self.check_names()
        self.open_segments = {}
        for (run_id,) in self.db.execute("SELECT run_id FROM runs").fetchall():
            ends = dict(
                self.db.execute(
                    "SELECT thread_id, max(first_seq + event_count) FROM segments WHERE run_id = ? GROUP BY thread_id",
                    (run_id,),
                )
            )
            self.open_segments.update(open_segments(self.db, run_id, ends))

    def check_names(self):
        unique = set()
        for image_id, address, name, name_hash in self.db.execute(
            "SELECT image_id, address, CAST(name AS BLOB), name_hash FROM functions"
        ):
            need(name_hash == zlib.crc32(name) % 2**23, "a wrong hash of a name")
            need((image_id, address, name) not in unique, "a function that is there twice")
            unique.add((image_id, address, name))

    def pragma(self, name):
        return self.db.execute(f"PRAGMA {name}").fetchone()[0]

    def threads(self):
        return [row[0] for row in self.db.execute("SELECT thread_id FROM threads ORDER BY thread_id").fetchall()]

    def gaps(self, thread_id):
        return [
            row[0]
            for row in self.db.execute(
                "SELECT count FROM losses WHERE thread_id = ? AND seq IS NULL AND cause = 'damaged'", (thread_id,)
            )
        ]

    def events(self, thread_id):
        stack, end = [], 0
        gaps = self.gaps(thread_id)
        for segment, functions in self.segments(thread_id):
            events = SegmentEvents(thread_id, segment)
            if segment.first_seq != end:
                need(segment.first_seq - end in gaps, "a gap between segments")
            elif not segment.flags & CALLS_ONLY:
                before = [(call.function, call.seq) for call in events.stack]
                need(before == [(call.function, call.seq) for call in stack], "a stack that is not the one before")
            yield from events
            stack, end = events.stack, segment.first_seq + segment.event_count
            need(functions(events) == dict(events.calls), "segment_functions or the call counts are wrong")

    def segments(self, thread_id):
        """Segments of a thread, each with a function of what the store says of their functions' calls."""
        for row in self.db.execute("SELECT * FROM segments WHERE thread_id = ? ORDER BY first_seq", (thread_id,)):
            yield read_segment(row), lambda _, row=row: read_functions(row["functions"])
        opened = self.open_segments.get(thread_id)
        if opened:
            seen["open segments"] += 1
            yield opened.segment(), lambda events: {
                **dict.fromkeys(events.calls, 0),
                **opened.calls(events.functions),
            }


# ------------------------------------------------------------------------------------------------ known answers


def answers(document):
    """Decodes every row of the tables of known answers; prints how many each codec has."""
    codec = None
    with open(document, encoding="utf-8") as file:
        for line in file:
            heading = re.match(r"## (?:Codec (\d))?", line)
            if heading:
                codec = heading[1]
            row = re.fullmatch(r"\| ([^|]+) \| ((?:`[0-9a-f]{2}` ?)+)\|", line.strip())
            if not codec or not row:
                continue
            words = [] if row[1] == "none" else [int(word, 0) for word in row[1].split()]
            code = bytes.fromhex(row[2].replace("`", ""))
            got = decode(int(codec), code, len(words))
            need(got == words, f"codec {codec}: {row[2]}is {got} instead of {words}")
            seen[f"answers of codec {codec}"] += 1


def main():
    if sys.argv[1] == "--answers":
        answers(sys.argv[2])
    else:
        store = Store(sys.argv[1])
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(Event._fields)
        with contextlib.closing(store.db):
            for thread_id in [int(sys.argv[2])] if len(sys.argv) > 2 else store.threads():
                try:
                    out.writerows(store.events(thread_id))
                except Damaged as error:
                    raise Damaged(f"thread {thread_id}: {error}") from error
    for name, count in sorted(seen.items()):
        print(name, count, file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except Damaged as error:
        sys.exit(f"format_reader.py: {error}")
