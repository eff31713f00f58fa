# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is attached to a service in `make bench-always-on`: nothing, tracectl with a backend and a budget, bpftrace, perf.
Each has begin(), which does not wait, and end(), which says what was recorded."""
import json
import os
import shutil
import signal
import subprocess

from capture_tools import TRACECTL, Bpftrace, Failure, last_line, run
from inline_programs import cpu_ns, descendants

BPFTRACE_FUNCTIONS = 100


class Nothing:
    process = None

    def begin(self, _):
        pass

    def end(self):
        return {}


def peak_memory(pid):
    """The most that a process has had in memory, in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmHWM"].split()[0]) * 1024


class Process:
    """Something that runs beside the service until SIGINT."""

    process = None

    def begin(self, service):
        self.process = subprocess.Popen(self.command(service), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)

    def usage(self):
        """CPU time so far, and memory."""
        if self.process.poll() is not None:
            raise Failure(last_line(self.process.stderr.read()))
        return {"own_cpu_ns": cpu_ns(descendants(self.process.pid)), "memory": peak_memory(self.process.pid)}

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        output, errors = self.process.communicate(timeout=300)
        if self.process.returncode not in (0, -signal.SIGINT):
            raise Failure(last_line(errors))
        return output

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Recording(Process):
    """tracectl. Recordings of an arm share a store, so that each begins with the plan of the one before."""

    def __init__(self, folder, backend, budget):
        self.store = os.path.join(folder, f"{backend}-{budget}.db")
        self.options = ["--backend", backend, "--budget", budget]

    def command(self, service):
        return [TRACECTL, "-q", "-d", self.store, "--json", "record", "-n", "bench", *self.options, "-p",
                str(service.process.pid)]

    def end(self):
        output = self.interrupt()
        if not output.strip():
            raise Failure("it was interrupted before it had begun")
        report = json.loads(output)
        shown = json.loads(run([TRACECTL, "-d", self.store, "--json", "show", str(report["run"])]).stdout)
        tags = {tag["key"]: tag["value"] for tag in shown["tags"]}
        return {"bytes": report["stored_bytes"], "calls": report["calls"], "lost": report["lost"],
                "complete": self.completeness(report["run"]), "tags": tags,
                "estimate": self.percent(tags.get("budget: share")),
                "worst_estimate": self.percent(tags.get("budget: share in the worst second"))}

    def completeness(self, number):
        shown = run([TRACECTL, "-d", self.store, "show", str(number)]).stdout.splitlines()
        lines = [line for line in shown if line.startswith("complete")]
        return lines[0].split(None, 1)[1] if lines else "all"

    @staticmethod
    def percent(text):
        return float(text.split()[0]) if text else None


class Counting(Process, Bpftrace):
    """bpftrace counts a hundred functions, of all that have an address of their own every so many."""

    def __init__(self, folder):
        Bpftrace.__init__(self, "/nowhere", [])
        self.folder = folder

    def addresses(self, program):
        plans = json.loads(run([TRACECTL, "--json", "record", "--dry-run", "--functions", ".", "--", program]).stdout)
        places = sorted({probe["address"] for probe in plans[0]["plan"] if probe["kind"] == "entry"})
        return places[::max(1, len(places) // BPFTRACE_FUNCTIONS)][:BPFTRACE_FUNCTIONS]

    def command(self, service):
        program = os.path.realpath(f"/proc/{service.process.pid}/exe")
        points = ",".join(f"uprobe:{program}:{address:#x}" for address in self.addresses(program))
        return ["bpftrace", "--unsafe", "-p", str(service.process.pid), "-e", points + " { @[probe] = count(); }"]

    def begin(self, service):
        if not shutil.which("bpftrace"):
            raise Failure("bpftrace is not installed")
        super().begin(service)

    def end(self):
        return self.stop()


class Sampling(Process):
    """perf takes a sample 99 times a second."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "perf.data")

    def command(self, service):
        return ["perf", "record", "-q", "-F", "99", "-o", self.path, "-p", ",".join(map(str, service.pids()))]

    def begin(self, service):
        if not shutil.which("perf"):
            raise Failure("perf is not installed")
        super().begin(service)

    def end(self):
        self.interrupt()
        return {"bytes": os.path.getsize(self.path)}


def arm(name, folder):
    """'untraced', 'bpftrace', 'perf' or BACKEND:BUDGET."""
    simple = {"untraced": lambda _: Nothing(), "bpftrace": Counting, "perf": Sampling}
    if name in simple:
        return simple[name](folder)
    backend, budget = name.split(":")
    return Recording(folder, backend, budget)
