# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Numbers, codecs and packed sections, as docs/trace-format.md describes them, and from that document alone: the part
of format_reader.py that makes words and bytes of bits. Decodes only; for reading, not for speed.

`seen` counts what of the format was met.
"""
import collections

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
    """A decoder of the arithmetic code."""

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


class Unpacking:
    """The packed sections of one segment, one after the other."""

    def __init__(self, code):
        self.code = code
        self.anywhere = [[[FRESH] * 256 for _ in range(4)] for _ in range(9)]
        self.follower = [FRESH] * 16384
        self.before = [[0] * 4 for _ in range(9)]

    def byte(self, column, place):
        anywhere = self.anywhere[column][place]
        before = self.before[column][place]
        n = 1
        while n < 256:
            slot = (((4 * column + place) << 16) + (before << 8) + n) * 0x9E3779B1 % 2**32 >> 18
            a, f = probability(anywhere[n]), probability(self.follower[slot])
            known = self.follower[slot] & 1023
            p = a if known == 0 else (a + f) // 2 if known < 3 else (a + 3 * f) // 4
            bit = self.code.bit(min(max(p, 64), 65472))
            self.follower[slot] = learned(self.follower[slot], bit, 30)
            anywhere[n] = learned(anywhere[n], bit, 60)
            n = n << 1 | bit
        self.before[column][place] = n & 255
        return n & 255

    def section(self, length, columns):
        """A plain section of a known length, whose numbers belong to these columns in turn."""
        plain = bytearray()
        number = place = 0
        for _ in range(length):
            plain.append(self.byte(columns[number % len(columns)], min(place, 3)))
            if plain[-1] & 128:
                place += 1
            else:
                place = 0
                number += 1
        return bytes(plain)


# ------------------------------------------------------------------------------------------------ codec 1

VOICES = 5
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


class Prediction:
    """The model of codec 1, and the words that it decodes."""

    # The voices are in the order of the document; None for a word is "silent", or "none is excluded".

    def __init__(self, code):
        self.code = Arithmetic(code)
        self.decoded = []
        self.words = [0] * 64
        self.position = 0
        self.frames = [Frame() for _ in range(64)]
        self.depth = 0
        self.known = 1
        self.long = self.near = self.far = 0
        self.contexts = [Table([Slot() for _ in range(64)], 65536, 2, Slot.copy) for _ in range(5)]
        self.near_heads = Table([0] * 64, 65536, 8, int)
        self.far_heads = Table([0] * 64, 65536, 8, int)
        self.tree = Table([FRESH] * 64, 262144, 32, int)
        self.at = self.length = 0
        self.trust = [[start(65536 - 24576 // (level + 1), 2) for level in range(18)] for _ in range(VOICES)]
        self.weight = [[22938] * VOICES for _ in range(16)]
        self.step = [[start(p, 10) for p in LOGISTIC] for _ in range(16)]
        self.choice = [[FRESH] * 3 for _ in range(4)]
        self.novel = [[FRESH] * 2 for _ in range(4)]
        self.run = AdaptiveNumber()
        self.jump = AdaptiveNumber()
        self.surprise = self.was_novel = 0

    def decode(self, count):
        while self.position < count:
            excluded = None
            if self.length > 0:
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
            self.decoded.append(self.word_at(self.at))
            self.happens(self.word_at(self.at))
            self.at += 1
            self.length += 1
        if self.position == count:
            need(run > 0, "an empty run at the end")
            return False
        for distance in range(64, 0, -1):
            self.take_in(self.word_at(self.position - distance))
        return True

    # ---- growing

    def grow(self):
        full_words = self.position >= len(self.words) and len(self.words) < 262144
        full_frames = self.depth >= len(self.frames) - 1 and len(self.frames) < 1024
        if full_words:
            self.words += self.words
        if full_frames:
            self.frames += [Frame() for _ in self.frames]
        if full_words or full_frames:
            seen["rings grown"] += 1
            return
        for table in (*self.contexts, self.near_heads, self.far_heads, self.tree):
            if table.grow():
                return

    # ---- an open word

    def open_word(self, excluded):
        slots = self.find_slots()
        said = [slot.word if slot.count > 0 else None for slot in slots]
        said = [None if word == excluded else word for word in said]
        levels = [LEVELS[slot.count] for slot in slots]
        word = None
        if any(one is not None for one in said):
            word = self.read_spoken(slots, said, levels, excluded)
        if word is None:
            word = self.read_unspoken(said)
        need(word <= 0xFFFF, "a word of more than 16 bits")
        self.decoded.append(word)
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
        candidates = [said[voice] for voice in (4, 1, 3, 2, 0)]
        candidates += [slot.other for slot in slots if slot.count > 0]
        choices = []
        for word in candidates:
            if word is not None and word not in (expected, excluded) and word not in choices:
                choices.append(word)
        bits = self.choice[self.speakers(said)]
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
        elif self.depth > 0:
            self.depth -= 1
        else:
            self.frames[0] = Frame()

    def take_in(self, word):
        self.long = (self.long + word + 1) * (K << 3) & MASK64
        self.near = (self.near + word + 1) * (0xB67FF4331B14FCE9 << 4) & MASK64
        self.far = (self.far + word + 1) * (0xD6E8FEB86659FD93 << 1) & MASK64

    def note_place(self, heads, value):
        index = value >> 40 & (heads.size - 1)
        head = heads.elements[index]
        heads.used += head == 0
        heads.elements[index] = self.position
        return head

    def agreement(self, head):
        oldest = max(self.position - len(self.words), 0)
        n = 0
        while n < 64 and head - n > oldest and self.word_at(head - n - 1) == self.word_at(self.position - n - 1):
            n += 1
        return n

    def try_match(self, head, least):
        n = self.agreement(head) if head != 0 else 0
        if n >= least:
            self.at, self.length = head, n

    def find_match(self):
        near = self.note_place(self.near_heads, self.near)
        far = self.note_place(self.far_heads, self.far)
        self.length = 0
        self.try_match(far, 48)
        if self.length == 0:
            self.try_match(near, 12)


def decode(codec, code, count):
    need(codec == 1, f"codec {codec}")
    need(len(code) > 0 and code[-1] == count & 255, "a wrong number of words")
    model = Prediction(code[:-1])
    model.decode(count)
    return model.decoded
