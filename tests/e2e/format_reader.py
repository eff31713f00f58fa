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

APPLICATION_ID = 0x74726163
VERSION = 1
KNOWN_FEATURES = {"sealed segments"}
LOST = 0xFFFFFFFF
CALLS_ONLY, CALL_SITES, ASSUMED, PACKED = 1, 2, 4, 8

MASK32 = 2**32 - 1
MASK64 = 2**64 - 1
K = 0x9E3779B97F4A7C15

seen = collections.Counter()


class Damaged(Exception):
    """The store is not as docs/trace-format.md says."""


def need(condition, what):
    if not condition:
        raise Damaged(what)


# ------------------------------------------------------------------------------------------------ numbers


class Bytes:
    """Bytes that are read from the first to the last."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def rest(self):
        return len(self.data) - self.at

    def take(self, count):
        need(count <= self.rest(), "a length beyond the end")
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        value = 0
        for place in range(10):
            byte = self.byte()
            value |= (byte & 127) << (7 * place)
            if byte < 128:
                need(value <= MASK64, "a varint of more than 64 bits")
                return value
        raise Damaged("a varint of more than ten bytes")

    def zigzag(self):
        value = self.varint()
        need(value <= MASK32, "a zigzag of more than 32 bits")
        return -(value >> 1) - 1 if value & 1 else value >> 1


# ------------------------------------------------------------------------------------------------ codec 1


class WordsOut:
    """Undoes the zero elimination: hands out 16-bit words, as many as are asked for."""

    def __init__(self, code):
        self.code = Bytes(code)
        self.group = []

    def word(self):
        if not self.group:
            bitmap = self.code.byte()
            plain = [self.code.byte() if bitmap >> i & 1 else None for i in range(8)]
            need(0 not in plain, "a byte marked as not zero that is zero")
            self.group = [(plain[i] or 0) | (plain[i + 1] or 0) << 8 for i in range(0, 8, 2)]
        return self.group.pop(0)

    def end(self):
        need(self.code.rest() == 0 and not any(self.group), "code behind the last word")


class Window:
    """The words so far, and what each context was last followed by."""

    def __init__(self):
        self.words = [0] * 65536
        self.next = 3
        self.table = [3] * 4096

    def back(self, place, distance):
        return self.words[(place - distance) & 0xFFFF]

    def add(self, word, matching):
        """Takes in a word; the source of the match that begins behind it, None when none does."""
        self.words[self.next] = word
        self.next = (self.next + 1) & 0xFFFF
        last = [self.back(self.next, i) for i in (1, 2, 3)]
        context = last[0] + (last[1] << 16) + (last[2] << 32)
        slot = (context * K & MASK64) >> 52
        source = self.table[slot]
        self.table[slot] = self.next
        if not matching and [self.back(source, i) for i in (1, 2, 3)] == last:
            return source
        return None


def decode_parlot(code, count):
    out = WordsOut(code)
    window = Window()
    words = []
    while len(words) < count:
        words.append(out.word())
        source = window.add(words[-1], False)
        if source is not None:
            length = out.word()
            need(length <= count - len(words), "a match beyond the last word")
            seen["matches"] += 1
            for i in range(length):
                words.append(window.words[(source + i) & 0xFFFF])
                window.add(words[-1], True)
    out.end()
    return words


# ------------------------------------------------------------------------------------------------ arithmetic code

RATE = [131072 // (2 * n + 3) for n in range(256)]


def start(p, count):
    """An adaptive bit: 22 bits of probability above 10 of count."""
    return p << 16 | count


FRESH = start(32768, 0)


def learned(state, bit, limit):
    p, count = state >> 10, state & 1023
    p += ((4194303 * bit - p) * RATE[count]) >> 16
    return p << 10 | (count + 1 if count < limit else count)


def probability(state):
    return max(state >> 16, 1)


class Arithmetic:
    def __init__(self, code):
        self.code = code
        self.low, self.high = 0, MASK32
        self.shifted = 0
        self.value = int.from_bytes((code[:4] + bytes(4))[:4], "big")

    def bit(self, p):
        middle = self.low + ((self.high - self.low) * p >> 16)
        bit = self.value <= middle
        if bit:
            self.high = middle
        else:
            self.low = middle + 1
        while (self.low ^ self.high) < 1 << 24:
            follows = self.shifted + 4
            byte = self.code[follows] if follows < len(self.code) else 0
            self.low = self.low << 8 & MASK32
            self.high = (self.high << 8 | 255) & MASK32
            self.value = (self.value << 8 | byte) & MASK32
            self.shifted += 1
        return int(bit)

    def adaptive(self, table, index, limit):
        bit = self.bit(probability(table[index]))
        table[index] = learned(table[index], bit, limit)
        return bit

    def end(self):
        for length in range(5):
            unit = 1 << (32 - 8 * length)
            number = -(-self.low // unit) * unit
            if number <= self.high:
                rest = number.to_bytes(4, "big")[:length]
                need(self.code[self.shifted :] == rest, "an arithmetic code that does not end as it should")
                return
        raise Damaged("an arithmetic code without an end")


class AdaptiveNumber:
    def __init__(self):
        self.length = [FRESH] * 32
        self.upper = [[FRESH] * 3 for _ in range(32)]

    def read(self, code):
        digits = 1
        while digits < 31 and code.adaptive(self.length, digits, 30):
            digits += 1
        value = 1
        for place in range(digits - 1):
            if place < 2:
                bit = code.adaptive(self.upper[digits], 0 if place == 0 else 1 + (value & 1), 30)
            else:
                bit = code.bit(32768)
            value = value << 1 | bit
        return value - 1


# ------------------------------------------------------------------------------------------------ packed sections


def unpack_section(code, length, kinds):
    """A plain section of a known length whose varints are of so many kinds, in turn."""
    anywhere = [[[FRESH] * 256 for _ in range(4)] for _ in range(3)]
    follower = [FRESH] * 16384
    before = [[0] * 4 for _ in range(3)]
    plain = bytearray()
    kind = place = 0
    for _ in range(length):
        b = min(place, 3)
        n = 1
        while n < 256:
            any_bits = anywhere[kind][b]
            slot = (((4 * kind + b) << 16) + (before[kind][b] << 8) + n) * 0x9E3779B1 % 2**32 >> 18
            a, f = probability(any_bits[n]), probability(follower[slot])
            known = follower[slot] & 1023
            bit = code.bit(a if known == 0 else (a + f) // 2 if known < 3 else (a + 3 * f) // 4)
            any_bits[n] = learned(any_bits[n], bit, 60)
            follower[slot] = learned(follower[slot], bit, 30)
            n = n << 1 | bit
        byte = n & 255
        plain.append(byte)
        before[kind][b] = byte
        if byte & 128:
            place += 1
        else:
            place = 0
            kind = (kind + 1) % kinds
    return bytes(plain)


# ------------------------------------------------------------------------------------------------ codec 2

VOICES = 6
BELIEVED = 400
LOGISTIC = [22, 36, 60, 98, 162, 267, 439, 720, 1179, 1921, 3108, 4971, 7812, 11955, 17625, 24743, 32768]
LOGISTIC += [65536 - LOGISTIC[32 - i] for i in range(17, 33)]


def squash(x):
    i, r = divmod(x + 2048, 128)
    return (LOGISTIC[i] * (128 - r) + LOGISTIC[i + 1] * r) >> 7


def stretches():
    table = []
    x = -2048
    for p in range(4096):
        while x < 2047 and squash(x) >> 4 < p:
            x += 1
        table.append(x)
    return table


STRETCH = stretches()


def slot_level(count):
    if count < 8:
        return count
    digits = count.bit_length()
    return 8 + 2 * (digits - 4) + (count >> (digits - 2) & 1)


def match_level(length):
    digits = length.bit_length()
    return min(2 * (digits - 4) + (length >> (digits - 2) & 1), 31)


LEVELS = [slot_level(count) for count in range(256)]


class Frame:
    def __init__(self, function=0):
        self.function = function
        self.last = self.last2 = self.path = 0


class Slot:
    def __init__(self):
        self.word = self.other = self.check = self.count = 0

    def copy(self):
        other = Slot()
        other.word, other.other, other.check, other.count = self.word, self.other, self.check, self.count
        return other


class Table:
    """A table that doubles piece by piece: 64 elements are copied behind its end at a time."""

    def __init__(self, elements, largest, share, copy):
        self.elements = elements
        self.size = len(elements)
        self.largest = largest
        self.share = share
        self.copy = copy
        self.used = 0

    def grow(self):
        """Copies the next piece when the table is too full; whether it was."""
        if self.size >= self.largest or self.used <= (self.size - 1) // self.share:
            return False
        done = len(self.elements) - self.size
        self.elements += [self.copy(element) for element in self.elements[done : done + 64]]
        if len(self.elements) == 2 * self.size:
            self.size *= 2
            self.used = 0
            seen["tables grown"] += 1
        return True


def same(element):
    return element


class Prediction:
    """The model of codec 2, and the words that it decodes."""

    def __init__(self, code):
        self.code = Arithmetic(code)
        self.words = [0] * 64
        self.position = 0
        self.frames = [Frame() for _ in range(64)]
        self.depth = 0
        self.known = 1
        self.long = self.match = 0
        self.contexts = [Table([Slot() for _ in range(64)], 65536, 2, Slot.copy) for _ in range(5)]
        self.heads = Table([0] * 64, 65536, 2, same)
        self.tree = Table([FRESH] * 64, 262144, 32, same)
        self.at = self.length = 0
        self.trust = [[start(65536 - 24576 // (level + 1), 2) for level in range(32)] for _ in range(VOICES)]
        self.weight = [[22938] * VOICES for _ in range(16)]
        self.step = [[start(p, 10) for p in LOGISTIC] for _ in range(16)]
        self.choice = [[FRESH] * 3 for _ in range(8)]
        self.novel = [[FRESH] * 2 for _ in range(4)]
        self.run = AdaptiveNumber()
        self.jump = AdaptiveNumber()
        self.surprise = self.was_novel = 0

    def decode(self, count):
        while self.position < count:
            excluded = None
            if self.length >= BELIEVED:
                if not self.believe(count):
                    break
                excluded = self.word_at(self.at)
            self.grow()
            self.open_word(excluded)
        self.code.end()

    def word_at(self, position):
        return self.words[position & (len(self.words) - 1)]

    def frame(self, depth):
        return self.frames[depth & (len(self.frames) - 1)]

    def believe(self, count):
        """Takes a run of believed words; whether another word follows it."""
        run = self.run.read(self.code)
        need(run <= count - self.position, "a run beyond the last word")
        seen["believed runs"] += 1
        seen["believed words"] += run
        for _ in range(run):
            self.grow()
            self.words_out.append(self.word_at(self.at))
            self.happens(self.word_at(self.at))
            self.at += 1
            self.length += 1
        if self.position == count:
            need(run > 0, "an empty run at the end")
            return False
        for distance in range(22, 0, -1):
            self.take_in(self.word_at(self.position - distance))
        return True

    # ---- growing

    def grow(self):
        if self.position >= len(self.words) and len(self.words) < 262144:
            self.words += self.words
            seen["rings grown"] += 1
        elif self.depth >= len(self.frames) - 1 and len(self.frames) < 1024:
            self.frames += [Frame() for _ in self.frames]
            seen["rings grown"] += 1
        else:
            for table in (*self.contexts, self.heads, self.tree):
                if table.grow():
                    return

    # ---- an open word

    def open_word(self, excluded):
        slots = self.find_slots()
        said = [slot.word if slot.count > 0 else None for slot in slots]
        said.append(self.word_at(self.at) if self.length > 0 else None)
        said = [None if word == excluded else word for word in said]
        levels = [LEVELS[slot.count] for slot in slots] + [match_level(self.length) if self.length > 0 else 0]
        word = None
        if any(one is not None for one in said):
            word = self.read_spoken(slots, said, levels, excluded)
        if word is None:
            word = self.read_unspoken(said)
        need(word <= 0xFFFF, "a word of more than 16 bits")
        self.words_out.append(word)
        self.learn(word, slots, levels)

    def find_slots(self):
        frame = self.frame(self.depth)
        caller = self.frame(max(self.depth - 1, 0))
        last = [self.word_at(self.position - i) if self.position >= i else 0 for i in (1, 2, 3)]
        inside = ((caller.function << 48) + (frame.function << 32) + frame.path) & MASK64
        keys = (
            last[0] + (last[1] << 16) + (last[2] << 32),
            self.long,
            (frame.function << 32) + (frame.last << 16) + frame.last2,
            inside,
            inside * K + caller.path,
        )
        return [self.find_slot(table, key) for table, key in zip(self.contexts, keys)]

    @staticmethod
    def find_slot(table, key):
        k = key * K & MASK64
        h = (k ^ k >> 32) * K & MASK64
        index = h >> 28 & (table.size - 1)
        check = h >> 48
        first, second = table.elements[index], table.elements[index ^ 1]
        for slot in (first, second):
            if slot.check == check and slot.count > 0:
                return slot
        slot = second if second.count < first.count else first
        slot.word = slot.other = slot.count = 0
        slot.check = check
        table.used += 1
        return slot

    def mixer(self):
        a = sum(self.length >= limit for limit in (1, 32, 512))
        b = sum(self.surprise >= limit for limit in (1, 4, 12))
        return 4 * a + b

    def read_spoken(self, slots, said, levels, excluded):
        """The word when it is one that a voice or a slot knows, otherwise None."""
        mixer = self.mixer()
        weight = self.weight[mixer]
        evidence = [
            STRETCH[self.trust[voice][levels[voice]] >> 20] if said[voice] is not None else 0
            for voice in range(VOICES)
        ]
        sums = {}
        for voice in range(VOICES):
            if said[voice] is not None:
                sums[said[voice]] = sums.get(said[voice], 0) + weight[voice] * evidence[voice]
        expected = max(sums, key=sums.get)
        evidence = [e if word == expected else -e for e, word in zip(evidence, said)]
        x = sum(w * e for w, e in zip(weight, evidence)) >> 16
        x = max(-2047, min(2047, x))
        i, r = divmod(x + 2048, 128)
        step = self.step[mixer]
        q = (probability(step[i]) * (128 - r) + probability(step[i + 1]) * r) >> 7
        bit = self.code.bit(max(16, min(65535, (squash(x) + 3 * q) >> 2)))
        error = 3 * ((65535 if bit else 0) - squash(x))
        for voice in range(VOICES):
            change = evidence[voice] * error
            weight[voice] += change // 65536 if change >= 0 else -(-change // 65536)
        nearest = i if r < 64 else i + 1
        step[nearest] = learned(step[nearest], bit, 127)
        if bit:
            self.surprise = max(self.surprise - 1, 0)
            return expected
        self.surprise = min(self.surprise + 4, 15)
        return self.read_choice(slots, said, expected, excluded)

    def read_choice(self, slots, said, expected, excluded):
        candidates = [said[voice] for voice in (4, 1, 3, 5, 2, 0)]
        candidates += [slot.other for slot in slots if slot.count > 0]
        choices = []
        for word in candidates:
            if word is not None and word not in (expected, excluded) and word not in choices:
                choices.append(word)
        bits = self.choice[2 * self.speakers(said) + self.was_novel]
        for number, word in enumerate(choices[:3]):
            if self.code.adaptive(bits, number, 60):
                seen["choices"] += 1
                return word
        return None

    @staticmethod
    def speakers(said):
        count = sum(word is not None for word in said)
        return 0 if count == 0 else 1 if count <= 2 else 2 if count <= 4 else 3

    def read_unspoken(self, said):
        self.was_novel = self.code.adaptive(self.novel[self.speakers(said)], self.was_novel, 60)
        if self.was_novel:
            word = self.known + self.jump.read(self.code)
            self.known = word + 1
            return word
        seen["words bit by bit"] += 1
        here_key = (self.frame(self.depth).function + 1) << 32
        tree = self.tree
        word = 0
        for i in reversed(range((self.known - 1).bit_length())):
            n = (i << 16) + word
            anywhere = (n * K & MASK64) >> 40 & (tree.size - 1)
            here = ((here_key + n) * K & MASK64) >> 40 & (tree.size - 1)
            word = word << 1 | self.read_tree_bit(tree, anywhere, here)
        need(word < self.known, "a word that is not known")
        return word

    def read_tree_bit(self, tree, anywhere, here):
        bits = tree.elements
        p, other = probability(bits[here]), probability(bits[anywhere])
        count = bits[here] & 1023
        mean = other if count == 0 else (p + other) // 2 if count < 3 else (3 * p + other) // 4
        bit = self.code.bit(max(64, min(65472, mean)))
        bits[here] = learned(bits[here], bit, 12)
        bits[anywhere] = learned(bits[anywhere], bit, 60)
        tree.used += count == 0
        return bit

    # ---- what is learned

    def learn(self, word, slots, levels):
        for voice, slot in enumerate(slots):
            trust = self.trust[voice]
            level = levels[voice]
            if slot.count == 0:
                slot.word = slot.other = word
                slot.count = 1
            elif slot.word == word:
                trust[level] = learned(trust[level], 1, 250)
                slot.count = min(slot.count + 1, 255)
            else:
                trust[level] = learned(trust[level], 0, 250)
                if slot.count > 3:
                    slot.count //= 4
                    slot.other = word
                else:
                    slot.other, slot.word, slot.count = slot.word, word, 1
        if self.length > 0:
            hit = self.word_at(self.at) == word
            level = levels[VOICES - 1]
            self.trust[VOICES - 1][level] = learned(self.trust[VOICES - 1][level], int(hit), 250)
            self.length = self.length + 1 if hit else 0
            self.at += hit
        self.happens(word)
        self.take_in(word)
        self.find_match()

    def happens(self, word):
        self.words[self.position & (len(self.words) - 1)] = word
        self.position += 1
        if word > 0:
            frame = self.frame(self.depth)
            frame.last2, frame.last = frame.last, word
            path = (frame.path + word) * 0x9E3779B1 & MASK32
            frame.path = path ^ path >> 15
            self.depth += 1
            self.frames[self.depth & (len(self.frames) - 1)] = Frame(word)
            seen["deepest of codec 2"] = max(seen["deepest of codec 2"], self.depth)
        elif self.depth > 0:
            self.depth -= 1
        else:
            self.frames[0] = Frame()

    def take_in(self, word):
        self.long = (self.long + word + 1) * (K << 3) & MASK64
        self.match = (self.match + word + 1) * (0xB67FF4331B14FCE9 << 4) & MASK64

    def find_match(self):
        index = self.match >> 40 & (self.heads.size - 1)
        head = self.heads.elements[index]
        if head != 0 and self.length == 0:
            oldest = max(self.position - len(self.words), 0)
            n = 0
            while n < 32 and head - n > oldest and self.word_at(head - n - 1) == self.word_at(self.position - n - 1):
                n += 1
            if n >= 12:
                self.at, self.length = head, n
        self.heads.used += head == 0
        self.heads.elements[index] = self.position


def decode_prediction(code, count):
    need(len(code) > 0 and code[-1] == count & 255, "a wrong number of words")
    model = Prediction(code[:-1])
    model.words_out = []
    model.decode(count)
    return model.words_out


DECODERS = {1: decode_parlot, 2: decode_prediction}


def decode(codec, code, count):
    need(codec in DECODERS, f"codec {codec}")
    return DECODERS[codec](code, count)


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
        for name in plain:
            sections[name] = unpack_section(code, lengths[name], {"stack": 3, "time": 2}.get(name, 1))
        code.end()
        seen["packed segments"] += 1
        names = [name for name in names if name not in plain]
    for name in names:
        sections[name] = data.take(lengths[name])
    need(data.rest() == 0, "bytes behind the sections")
    seen[f"segments of codec {codec}"] += 1
    return Segment(codec, flags, sections, row["first_seq"], row["event_count"], row["first_ns"], row["last_ns"])


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
        return self.time, latest - self.time


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
        need(self.pragma("user_version") <= VERSION, "a store of a newer version")
        features = {name for (name,) in self.db.execute("SELECT name FROM features WHERE kind = 'incompatible'")}
        need(features <= KNOWN_FEATURES, f"unknown features: {features - KNOWN_FEATURES}")
        self.open_segments = {}
        for (run_id,) in self.db.execute("SELECT run_id FROM runs").fetchall():
            ends = dict(
                self.db.execute(
                    "SELECT thread_id, max(first_seq + event_count) FROM segments WHERE run_id = ? GROUP BY thread_id",
                    (run_id,),
                )
            )
            self.open_segments.update(open_segments(self.db, run_id, ends))

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
            yield read_segment(row), lambda _, row=row: dict(
                self.db.execute(
                    "SELECT function_id, calls FROM segment_functions WHERE segment_id = ?", (row["segment_id"],)
                )
            )
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
