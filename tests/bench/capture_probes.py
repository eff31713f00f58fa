# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Costs of single probes, times of attaching and detaching many, and losses."""
import json
import os
import re
import signal
import statistics
import subprocess
import time

from capture_tools import BENCH, O, ROOT, TRACECTL, Failure, Tracectl, last_line, run


def probe_costs(rounds):
    """Medians of several runs of doctor: ns a hit, of the recorder's programs and of an empty one."""
    samples = []
    for _ in range(rounds):
        done = subprocess.run([TRACECTL, "--json", "doctor"], stdout=subprocess.PIPE, check=False, cwd=BENCH)
        samples.append(json.loads(done.stdout))
    costs = {}
    for name in samples[0]["probe_cost_ns"]:
        pairs = [(sample["probe_cost_ns"][name], sample["empty_probe_cost_ns"][name]) for sample in samples]
        pairs = [pair for pair in pairs if None not in pair]
        if not pairs:
            continue
        costs[name] = {
            "recorded_ns": round(statistics.median(pair[0] for pair in pairs)),
            "empty_ns": round(statistics.median(pair[1] for pair in pairs)),
            "ratio": round(statistics.median(pair[0] / pair[1] for pair in pairs), 2),
        }
    return costs


def many_functions(count):
    """A program that sleeps and has `count` functions, each 16 bytes long and beginning with a push."""
    path = os.path.join(BENCH, f"functions_{count}")
    with open(path + ".s", "w", encoding="ascii") as file:
        for number in range(count):
            file.write(f".globl many_{number}\n.type many_{number}, @function\n.balign 16\nmany_{number}:\n"
                       f"push %rbp\npop %rbp\nret\n.size many_{number}, . - many_{number}\n")
        file.write('.section .note.GNU-stack,"",@progbits\n')
    with open(path + "_main.c", "w", encoding="ascii") as file:
        file.write("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    run(["gcc", "-o", path, path + "_main.c", path + ".s"])
    return path


class Text:
    """The functions of a running many_functions(), as they stand in its memory."""

    def __init__(self, pid, path, count):
        first = next(line.split()[0] for line in run(["nm", path]).stdout.splitlines() if line.endswith(" many_0"))
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
            base = next(int(line.split("-")[0], 16) for line in maps if path in line)
        self.memory = open(f"/proc/{pid}/mem", "rb", buffering=0)  # closed with the object
        self.start, self.size = base + int(first, 16), count * 16

    def probed(self):
        return os.pread(self.memory.fileno(), self.size, self.start)[::16].count(0xCC)

    def wait_for(self, count, seconds=60):
        end = time.monotonic() + seconds
        while self.probed() != count:
            if time.monotonic() > end:
                raise Failure(f"{self.probed()} probes instead of {count}")
            time.sleep(0.002)
        return time.monotonic()


def attach_times(count, rounds):
    """Seconds from the start of tracectl until every probe is there, and from Ctrl-C until the last one is gone."""
    path = many_functions(count)
    attached, detached, ended = [], [], []
    for _ in range(rounds):
        target = subprocess.Popen([path])
        tracer = Tracectl()
        try:
            time.sleep(0.2)
            text = Text(target.pid, path, count)
            begun = time.monotonic()
            recorder = subprocess.Popen([*tracer.record(()), "-p", str(target.pid), "--functions", "^many_"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            attached.append(text.wait_for(count) - begun)
            time.sleep(0.3)
            begun = time.monotonic()
            recorder.send_signal(signal.SIGINT)
            detached.append(text.wait_for(0) - begun)
            _, errors = recorder.communicate(timeout=60)
            ended.append(time.monotonic() - begun)
            if recorder.returncode:
                raise Failure(last_line(errors))
        finally:
            target.kill()
            target.wait()
            tracer.close()
    return {"functions": count, "attach_seconds": round(statistics.median(attached), 3),
            "detach_seconds": round(statistics.median(detached), 3),
            "end_seconds": round(statistics.median(ended), 3)}


def rate(calls_per_second, threads, seconds):
    """Calls a second from several threads, recorded with the default ring."""
    program = os.path.join(BENCH, "busy")  # without optimisation functions begin with a push
    run(["gcc", "-O0", "-pthread", "-D_GNU_SOURCE", "-o", program, os.path.join(ROOT, "tests/programs/busy.c")])
    target = subprocess.Popen([program, str(calls_per_second), str(threads)],
                              stdout=subprocess.PIPE, text=True)
    tracer = Tracectl()
    try:
        time.sleep(0.3)
        done = run([*tracer.record(()), "-p", str(target.pid), "--duration", str(seconds), "--no-returns"])
        report = json.loads(done.stdout)
        return {"wanted_per_second": calls_per_second or "as fast as it goes", "threads": threads,
                "calls_per_second": round(report["calls"] / seconds), "calls": report["calls"],
                "lost": report["lost"]}
    finally:
        target.terminate()
        target.communicate()
        tracer.close()


def small_ring(calls):
    """With a ring that is too small on purpose: what is missing, and what is said to be lost."""
    program = os.path.join(O, "tests/programs/million")
    tracer = Tracectl(options=["--no-returns", "--ring-size", "4K"])
    try:
        _, seen, output = tracer.command([program, str(calls)], ["row", "cell", "leaf"])
    finally:
        tracer.close()
    made = sum(int(count) for count in re.findall(r"^(?:row|cell|leaf) (\d+)$", output, re.M))
    return {"calls_made": made, "calls_recorded": seen["calls"], "missing": made - seen["calls"],
            "lost_reported": seen["lost"]}
