# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Slow-down of real programs under each tracer: CPU time of the program per unit of work, against an untraced run of
the same session; all tracers take turns, medians of the rounds."""
import os
import re
import statistics
import subprocess
import tempfile
import time

from capture_tools import BENCH, Bpftrace, Failure, Tracectl, callgrind, run, timed, uftrace, uftrace_calls

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = 47391


class Command:
    """A program that runs and ends. `work` is the amount of it for a run under each tracer; what a run with an amount
    of 1 takes is start-up and is subtracted; what was seen
    is that of both. A program with `own_seconds` measures itself."""

    def __init__(self, name, command, work, image=None, images="main", launcher=(), own_seconds=None):
        self.name, self.arguments, self.work = name, command, work
        self.launcher = list(launcher)
        self.image = image or command(1)[0]
        self.images, self.own_seconds = images, own_seconds

    def seconds(self, cpu, output):
        return float(re.search(self.own_seconds, output)[1]) if self.own_seconds else cpu

    def measure(self, tracer, execute):
        """`execute` runs a command line and returns (CPU seconds, what was seen, output)."""
        amount = self.work[tracer]
        command = [*self.launcher, *self.arguments(1)]
        start_up, seen_then = (0, {}) if self.own_seconds else execute(command)[:2]
        cpu, seen, output = execute([*self.launcher, *self.arguments(amount)])
        seen = {key: value + seen_then.get(key, 0) for key, value in seen.items()}
        return {"ns_per_work": (self.seconds(cpu, output) - start_up) / (amount - (not self.own_seconds)) * 1e9,
                "seen": seen}

    @staticmethod
    def execute(command):
        cpu, output = timed(command)
        return cpu, {}, output

    def native(self):
        return self.measure("native", self.execute)

    def tracectl(self, functions, options=()):
        tracer = Tracectl(self.images, options)
        try:
            return self.measure("tracectl" if functions else "tracectl all",
                                lambda command: tracer.command(command, functions))
        finally:
            tracer.close()

    def bpftrace(self, functions):
        tracer = Bpftrace(self.image, functions)
        tracer.start()
        try:
            result = self.measure("bpftrace", self.execute)
        finally:
            seen = tracer.stop()
        return {**result, "seen": seen}

    def callgrind(self):
        cpu, output = timed([*self.launcher, *callgrind(), *self.arguments(self.work["callgrind"])])
        start_up = 0 if self.own_seconds else timed([*self.launcher, *callgrind(), *self.arguments(1)])[0]
        return {"ns_per_work": (self.seconds(cpu, output) - start_up) / self.work["callgrind"] * 1e9, "seen": {}}

    def uftrace(self):
        """With its dynamic patching; the CPU time is that of uftrace's own process as well."""
        if self.launcher:
            raise Failure("traces one process only")
        with tempfile.TemporaryDirectory(dir=BENCH) as folder:
            data = os.path.join(folder, "data")
            cpu = timed([*uftrace(data), *self.arguments(self.work["uftrace"])])[0]
            start_up = timed([*uftrace(data + ".1"), *self.arguments(1)])[0]
            calls = uftrace_calls(data)
        if not calls:
            raise Failure("recorded nothing: it needs symbols, or a program that was compiled for it (-pg)")
        return {"ns_per_work": (cpu - start_up) / self.work["uftrace"] * 1e9, "seen": {"calls": calls}}

    def hottest(self, count):
        tracer = Tracectl(self.images)
        try:
            tracer.command([*self.launcher, *self.arguments(self.work["tracectl all"])])
            return tracer.hottest(count)
        finally:
            tracer.close()


def process_cpu_ns(pid):
    """CPU time of all threads of a process so far."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


class Redis:
    """redis-server under redis-benchmark. The unit of work is a request."""

    name, image = "redis-server", "/usr/bin/redis-server"

    def __init__(self, requests):
        self.requests = requests

    def serve(self, prefix=()):
        server = subprocess.Popen([*prefix, self.image, "--port", str(PORT), "--save", "", "--appendonly", "no"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=BENCH)
        end = time.monotonic() + 30
        while subprocess.run(["redis-cli", "-p", str(PORT), "ping"], capture_output=True, check=False,
                             text=True).stdout.strip() != "PONG":
            if time.monotonic() > end or server.poll() is not None:
                server.kill()
                raise Failure("redis-server did not start")
            time.sleep(0.05)
        return server

    def load(self, server, tracer):
        """Both kinds of request, `requests` in all."""
        before, begun = process_cpu_ns(server.pid), time.monotonic()
        run(["redis-benchmark", "-p", str(PORT), "-t", "set,get", "-n", str(self.requests[tracer] // 2), "-c", "20",
             "--csv"])
        wall = time.monotonic() - begun
        cpu = process_cpu_ns(server.pid) - before
        return {"ns_per_work": cpu / self.requests[tracer],
                "requests_per_second": round(self.requests[tracer] / wall), "seen": {}}

    def under(self, tracer, prefix=(), begin=None, end=None):
        server = self.serve(prefix)
        try:
            started = begin(server.pid) if begin else None
            result = self.load(server, tracer)
            if end:
                result["seen"] = end(started)
            return result
        finally:
            server.terminate()
            server.wait(timeout=60)

    def native(self):
        return self.under("native")

    def tracectl(self, functions, options=()):
        tracer = Tracectl(options=options)
        kind = "tracectl" if functions else "tracectl all"
        try:
            return self.under(kind, begin=lambda pid: tracer.attach(pid, functions), end=tracer.detach)
        finally:
            tracer.close()

    def bpftrace(self, functions):
        tracer = Bpftrace(self.image, functions)
        return self.under("bpftrace", begin=lambda pid: tracer.start(), end=lambda started: tracer.stop())

    def callgrind(self):
        return self.under("callgrind", callgrind())

    def uftrace(self):
        raise Failure("cannot attach to a running server")

    def hottest(self, count):
        tracer = Tracectl()
        try:
            self.under("tracectl all", begin=tracer.attach, end=tracer.detach)
            return tracer.hottest(count)
        finally:
            tracer.close()


def build(name, source, compiler="gcc", flags=()):
    path = os.path.join(BENCH, name)
    run([compiler, "-O2", "-g", "-o", path, *flags, os.path.join(HERE, "programs", source)])
    return path


def amounts(native, traced, every, counted, valgrind, instrumented=0):
    return {"native": native, "tracectl": traced, "tracectl all": every, "bpftrace": counted, "callgrind": valgrind,
            "uftrace": instrumented}


def sqlite(rows):
    return ["/usr/bin/sqlite3", ":memory:", f".param set :rows {rows * 10}", f".read {HERE}/programs/workload.sql"]


def programs(scale):
    """Everything that is measured. `scale` divides the work."""
    frames = os.path.join(os.path.dirname(BENCH), "tests/programs/million_frames")
    entries = build("entries", "entries.c", flags=["-fno-shrink-wrap"])
    heat = build("mpi_heat", "mpi_heat.c", "mpicc")
    yield Command("million", lambda n: [frames, str(n)],
                  amounts(20000000 // scale, *[600000 // scale] * 3, 5000000 // scale, 5000000 // scale))
    yield Command("entries", lambda n: [entries, str(n)],
                  amounts(20000000 // scale, *[100000 // scale] * 3, 5000000 // scale, 5000000 // scale))
    yield Command("mpi_heat", lambda n: [heat, str(n), "64"], amounts(4000 // scale, *[20] * 3, 200 // scale),
                  image=heat, launcher=["mpiexec", "-n", "2"], own_seconds=r"seconds (\S+)")
    yield Command("sqlite3", sqlite, amounts(20000, *[200] * 3, 4000, 200),
                  image=library_of("/usr/bin/sqlite3", "libsqlite3"), images="*libsqlite3*")
    yield Command("python3", lambda n: ["/usr/bin/python3.11", "-S", f"{HERE}/programs/workload.py", str(n)],
                  amounts(4000, *[50] * 3, 1000, 50))
    yield Redis(amounts(100000 // scale, 10000 // scale, 2000 // scale, 10000 // scale, 10000 // scale))


def library_of(program, name):
    listing = run(["ldd", program]).stdout
    return next(line.split()[2] for line in listing.splitlines() if name in line)


def measure(program, functions_wanted, rounds):
    """One row: the medians of each tracer, and its slow-down."""
    functions = program.hottest(functions_wanted)
    if not functions:
        raise Failure("no function of it was called")
    arms = {
        "native": program.native,
        "tracectl": lambda: program.tracectl(functions),
        "tracectl calls": lambda: program.tracectl(functions, ["--returns", "none"]),
        "bpftrace": lambda: program.bpftrace(functions),
        "tracectl all": lambda: program.tracectl(()),
        "callgrind": program.callgrind,
        "uftrace": program.uftrace,
    }
    results = {name: [] for name in arms}
    failures = {}
    for _ in range(rounds):
        for name, arm in arms.items():
            if name in failures:
                continue
            try:
                results[name].append(arm())
            except (Failure, subprocess.TimeoutExpired) as failure:
                failures[name] = str(failure)
    row = {"functions": functions, "tools": {}}
    native = statistics.median(one["ns_per_work"] for one in results["native"])
    for name, runs in results.items():
        if name in failures:
            row["tools"][name] = {"not_possible": failures[name]}
            continue
        median = statistics.median(one["ns_per_work"] for one in runs)
        row["tools"][name] = {"ns_per_work": round(median, 1), "slow_down": round(median / native, 2), **runs[-1]["seen"]}
        if "requests_per_second" in runs[-1]:
            row["tools"][name]["requests_per_second"] = runs[-1]["requests_per_second"]
    return row
