# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sets of traces: folders of .u16 files, one a thread. Those that the bench records itself, with the runs they come
from, and what compressors make of them."""
import array
import csv
import os
import resource
import shutil
import subprocess
import time

from capture_programs import HERE, Redis, amounts
from capture_tools import BENCH, O, TRACECTL, Failure, last_line, run

FOLDER = os.path.join(BENCH, "store")
COMPRESSORS = {"zstd -3": ["zstd", "-3"], "zstd -19": ["zstd", "-19"], "xz -9": ["xz", "-9"], "lz4 -1": ["lz4", "-1"],
               "gzip -9": ["gzip", "-9"]}


class Run:
    """A run in a store of its own."""

    def __init__(self, name):
        self.name = name
        self.path = os.path.join(FOLDER, name + ".db")
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(self.path + suffix):
                os.remove(self.path + suffix)

    def tracectl(self, *arguments):
        return [TRACECTL, "-q", "-d", self.path, *arguments]

    def rows(self, sql):
        """The rows of a query as lists of text, one after the other."""
        with subprocess.Popen(self.tracectl("query", "--csv", sql), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            reader = csv.reader(process.stdout)
            next(reader, None)
            yield from reader
            if process.wait():
                raise Failure(last_line(process.stderr.read()))

    def write_words(self):
        """The folder with the run's words: functions numbered from 1, without what was lost."""
        folder = os.path.join(FOLDER, self.name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        numbers, threads = {}, {}
        for thread, kind, function in self.rows("SELECT thread_id, kind, function_id FROM events"):
            words = threads.setdefault(thread, array.array("H"))
            if kind == "call":
                words.append(numbers.setdefault(function, len(numbers) + 1))
            elif kind == "return":
                words.append(0)
        for thread, words in threads.items():
            with open(os.path.join(folder, f"0.{thread}.u16"), "wb") as file:
                words.tofile(file)
        return folder


def record_redis(traced, requests):
    redis = Redis(amounts(requests, requests, requests, requests, requests))

    def attach(pid):
        process = subprocess.Popen(traced.tracectl("record", "--time", "full", "-p", str(pid)),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)
        return process

    def detach(process):
        process.terminate()
        if process.wait(timeout=120) and not os.path.exists(traced.path):
            raise Failure(last_line(process.stderr.read()))
        return {}

    redis.under("tracectl", begin=attach, end=detach)


def recorded_runs(scale, note):
    """Records programs; yields the runs. `scale` divides the work."""
    programs = os.path.join(O, "tests/programs")
    commands = {
        "million": [os.path.join(programs, "million_frames"), str(1000000 // scale)],
        "recursion": [os.path.join(programs, "recursion")],
        "odd_even_sort": ["mpiexec", "-n", "4", os.path.join(programs, "odd_even_sort"), "normal"],
        "python3": ["/usr/bin/python3", "-S", f"{HERE}/programs/workload.py", str(40 // scale)],
    }
    for name, command in commands.items():
        traced = Run(name)
        try:
            run(traced.tracectl("record", "--", *command))
            yield traced
        except Failure as failure:
            note(f"{name}: {failure}")
    traced = Run("redis")
    try:
        record_redis(traced, 4000 // scale)
        yield traced
    except (Failure, subprocess.TimeoutExpired) as failure:
        note(f"redis: {failure}")


def uftrace_run(name, source, arguments):
    """A program built for uftrace and recorded by it: its folder, and the run that its import makes."""
    program, data = os.path.join(FOLDER, name), os.path.join(FOLDER, name + ".uftrace")
    shutil.rmtree(data, ignore_errors=True)
    run(["gcc", "-pg", "-g", "-O1", "-o", program, source])
    run(["uftrace", "record", "--no-event", "--no-pager", "-d", data, program, *arguments])
    imported = Run(name)
    run(imported.tracectl("import", "--format", "uftrace", data))
    return data, imported


def has_traces(folder):
    return any(entry.endswith(".u16") for entry in os.listdir(folder))


def given_sets(folders):
    """The sets that are given as data: folders with .u16 files below each of `folders`, or it itself."""
    for folder in folders:
        below = [entry.path for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
                 if entry.is_dir() and has_traces(entry.path)]
        yield from below or [folder]


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compressed_size(command, path):
    """What a compressor writes on its standard output."""
    size = 0
    with open(path, "rb") as file, subprocess.Popen([*command, "-c"], stdin=file, stdout=subprocess.PIPE,
                                                    stderr=subprocess.DEVNULL) as process:
        while chunk := process.stdout.read(1 << 20):
            size += len(chunk)
    if process.returncode:
        raise Failure(f"{command[0]} failed")
    return size


def compress(folder, events, note):
    """Whole files by each compressor that is installed: bytes, and CPU nanoseconds an event."""
    results = {}
    files = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".u16")]
    for name, command in COMPRESSORS.items():
        if not shutil.which(command[0]):
            note(f"{command[0]} is not installed")
            continue
        begun = children_seconds()
        size = sum(compressed_size(command, path) for path in files)
        results[name] = {"bytes": size, "encode": round((children_seconds() - begun) / events * 1e9, 1)}
    return results
