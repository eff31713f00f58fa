# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a target really called, and how a recording compares with it.

A *stream* is the calls of one thread in their order: a list of (depth, name); depth counts only callers that belong to
the target's own functions. Both sides are compared as multisets of streams, since processes and threads are numbered by
whom they meet first. Names come from the symbol tables of the two builds, by image and link-time address: the
recording's own names do not matter, so stripped images compare with their unstripped twins.
"""
import collections
import functools
import glob
import itertools
import os
import struct
import subprocess

# Frames of one stack that the stack pointer leaves lie closer together than two stacks do (instrument.c).
SAME_STACK = 1 << 20


@functools.lru_cache(maxsize=None)
def symbols(path):
    """Link-time address -> name, of the functions that the source of a target defines itself."""
    listing = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    names = collections.defaultdict(list)
    for line in listing.splitlines():
        address, kind, name = line.split(maxsplit=2)
        # Names of the source's own: neither those that the linker adds nor parts of functions.
        if kind in "Tt" and "." not in name and (name[0] != "_" or name.startswith("_Z")):
            names[int(address, 16)].append(name)
    return {address: min(same) for address, same in names.items()}


def unstripped(path):
    return path.removesuffix(" (deleted)").removesuffix(".stripped")


def leave_jumped_over(open_calls, frame):
    """Takes away what longjmp has left when a frame is entered: what is open on other stacks, if its own was in use
    before (a signal handler on an alternate one), and frames of its own stack at or below it."""
    last = next((i for i in range(len(open_calls), 0, -1) if abs(open_calls[i - 1][1] - frame) < SAME_STACK), 0)
    if last:
        del open_calls[last:]
        while open_calls and 0 <= frame - open_calls[-1][1] < SAME_STACK:
            open_calls.pop()


class Truth:
    """The logs that instrument.c left at a prefix."""

    def __init__(self, prefix):
        self.modules = {}
        with open(prefix + ".modules", encoding="ascii") as file:
            for line in file:
                pid, number, path = line.split()
                self.modules[pid, int(number)] = path
        self.known = set().union(*(symbols(path).values() for path in self.modules.values()))
        logs = collections.defaultdict(list)
        for path in glob.glob(glob.escape(prefix) + ".*.*.*"):
            pid, tid, number = path[len(prefix) + 1 :].split(".")
            logs[pid, tid].append((int(number), path))
        self.streams = []
        for (pid, _), paths in logs.items():
            # A program that is executed by a process continues its stream: what it calls is inside the calls that
            # were open, which never return.
            depth, stream = 0, []
            for _, path in sorted(paths):
                calls, still_open = self.read(pid, path)
                stream += [(depth + inside, name) for inside, name in calls]
                depth += still_open
            self.streams.append(stream)

    def read(self, pid, path):
        """The calls with their depths, and how many of them were open in the end."""
        open_calls, stream = [], []
        with open(path, "rb") as file:
            for what, frame in struct.iter_unpack("<QQ", file.read()):
                if not what:
                    break
                module, address = (what >> 48 & 0x7FFF) - 1, what & (1 << 48) - 1
                call = (symbols(self.modules[pid, module]).get(address), frame)
                if call[0] is None:
                    continue
                if not what >> 63:
                    leave_jumped_over(open_calls, frame)
                    stream.append((len(open_calls), call[0]))
                    open_calls.append(call)
                elif call in open_calls:
                    del open_calls[len(open_calls) - 1 - open_calls[::-1].index(call) :]
        return stream, len(open_calls)


def name_at(image, address, images):
    path = unstripped(images.get(image, image))
    return symbols(path).get(address) if os.path.exists(path) else None


def recorded_streams(rows, images, known):
    """`rows`: thread, seq, parent seq, address, image, in the order of threads and seq. `images`: path of an image as
    the target names it -> path to read symbols from."""
    streams = collections.defaultdict(list)
    depths = {}
    for thread, seq, parent, address, image in rows:
        name = name_at(image, address, images)
        depth = depths.get((thread, parent), 0)
        if name in known:
            streams[thread].append((depth, name))
            depth += 1
        depths[thread, seq] = depth
    return list(streams.values())


def without(streams, names):
    """The streams as if functions of these names had not been there: those that a recording says it cannot see."""
    result = []
    for stream in streams:
        around, kept = [], []  # of each open call: whether it is kept
        for depth, name in stream:
            del around[depth:]
            if name not in names:
                kept.append((sum(around), name))
            around.append(name not in names)
        result.append(kept)
    return [stream for stream in result if stream]


def by_name(streams):
    return collections.Counter(name for stream in streams for _, name in stream)


def first_difference(wanted, got):
    """A few lines about where two streams part."""
    n = next((i for i, (a, b) in enumerate(zip(wanted, got)) if a != b), min(len(wanted), len(got)))
    lines = [f"{len(got)} calls recorded of {len(wanted)} on a thread; call {n} differs"]
    for i in range(max(0, n - 4), n + 6):
        sides = [f"{s[i][0]:5} {s[i][1]}" if i < len(s) else "-" for s in (wanted, got)]
        lines.append(f"  {'>' if i == n else ' '} wanted {sides[0]:40} got {sides[1]}")
    return "\n".join(lines)


def compare_counts(wanted, got):
    wrong = [f"{name}: {wanted[name]} calls, {got[name]} recorded" for name in sorted(wanted | got)
             if wanted[name] != got[name]]
    return "\n".join(wrong)


def compare(wanted, got, level):
    """Nothing, or what differs. `level`: "counts" of calls by function; their "order" by thread; their nesting too:
    "tree"."""
    if level == "counts":
        return compare_counts(by_name(wanted), by_name(got))
    if level == "order":
        wanted, got = ([[(0, name) for _, name in stream] for stream in side] for side in (wanted, got))
    left = collections.Counter(map(tuple, wanted))
    right = collections.Counter(map(tuple, got))
    missing, extra = list((left - right).elements()), list((right - left).elements())
    if not missing and not extra:
        return ""
    counts = compare_counts(by_name(wanted), by_name(got)) or "every function was called as often as recorded"
    if not missing or not extra:
        return f"{len(missing)} threads are missing, {len(extra)} too many\n{counts}"
    # The most alike of those that differ tell the most.
    def unlike(pair):
        left, right = map(collections.Counter, pair)
        return (left - right).total() + (right - left).total()

    stream, twin = min(itertools.product(missing[:20], extra[:20]), key=unlike)
    return f"{counts}\n{first_difference(stream, twin)}"
