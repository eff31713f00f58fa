# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tracers that are compared: how each is started on a command or a process, and how many calls it saw."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
O = os.path.abspath(os.environ.get("O", os.path.join(ROOT, "build")))
TRACECTL = os.path.join(O, "tracectl")
BENCH = os.path.join(O, "bench")
TIMED = os.path.join(BENCH, "timed")
READY_SECONDS = 60  # bpftrace attaches one probe after the other


class Failure(Exception):
    """A tool could not do it, in the words of its last line."""


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


def run(command, timeout=300, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, check=False, text=True, errors="replace", **options)
    if done.returncode:
        raise Failure(last_line(done.stderr or done.stdout))
    return done


def timed(command, prefix=(), **options):
    """Runs a command below `prefix` (a tracer); returns (CPU seconds, output)."""
    with tempfile.NamedTemporaryFile(dir=BENCH) as times:
        done = run([*prefix, TIMED, times.name, *command], **options)
        fields = times.read().split()
    if len(fields) != 2:
        raise Failure("the command did not end")
    return float(fields[1]), done.stdout + done.stderr


def choice(functions):
    """record's options for these functions, not for the stubs of the same name: bpftrace does not see those."""
    if not functions:
        return []
    return ["--functions", "^(" + "|".join(map(re.escape, functions)) + ")$", "--exclude", "@plt$"]


class Tracectl:
    """A store in a folder of its own, removed at the end."""

    def __init__(self, images="main", options=()):
        self.folder = tempfile.mkdtemp(dir=BENCH)
        self.store = os.path.join(self.folder, "store.db")
        self.options = ["--images", images, *options]

    def close(self):
        shutil.rmtree(self.folder)

    def record(self, functions):
        return [TRACECTL, "-d", self.store, "--json", "record", "--budget", "none", *self.options, *choice(functions)]

    def command(self, command, functions=()):
        cpu, output = timed(command, [*self.record(functions), "--"])
        report = json.loads(output[output.index("{\n"):output.rindex("}") + 1])
        return cpu, {"calls": report["calls"], "returns": report["returns"], "lost": report["lost"],
                     "stored_bytes": report["stored_bytes"]}, output

    def hottest(self, count):
        """The names of the most called functions of the last run: those that every tool can name."""
        done = run([TRACECTL, "-d", self.store, "--json", "query",
                    "SELECT name FROM call_counts WHERE run_id = (SELECT max(run_id) FROM runs) "
                    "GROUP BY name ORDER BY sum(calls) DESC"])
        document = json.loads(done.stdout)
        rows = document["rows"] if isinstance(document, dict) else document
        names = [row["name"] if isinstance(row, dict) else row[0] for row in rows]
        return [name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name) and name != "_start"][:count]

    def attach(self, pid, functions=()):
        process = subprocess.Popen([*self.record(functions), "-p", str(pid)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)
        if process.poll() is not None:
            raise Failure(last_line(process.stderr.read()))
        return process

    def detach(self, process):
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        if process.returncode:
            raise Failure(last_line(errors))
        report = json.loads(output)
        return {"calls": report["calls"], "returns": report["returns"], "lost": report["lost"],
                "stored_bytes": report["stored_bytes"]}


class Bpftrace:
    """Counts the hits of each function. One perf event a probe: detaching takes 0.1 s each."""

    def __init__(self, path, functions):
        self.path = os.path.realpath(path)
        self.functions = list(functions)
        self.process = None

    def start(self):
        if not shutil.which("bpftrace"):
            raise Failure("bpftrace is not installed")
        points = ",".join(f"uprobe:{self.path}:{name}" for name in self.functions)
        script = points + ' { @[probe] = count(); } interval:ms:200 { printf("attached\\n"); }'
        self.process = subprocess.Popen(["bpftrace", "-e", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, "BPFTRACE_MAX_PROBES": "100000"})
        end = time.monotonic() + READY_SECONDS
        for line in self.process.stdout:
            if line.startswith("attached"):
                return
            if time.monotonic() > end:
                break
        self.process.kill()
        raise Failure(last_line(self.process.communicate()[1]))

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        output, _ = self.process.communicate(timeout=300)
        return {"calls": sum(int(count) for count in re.findall(r"^@\[.*\]: (\d+)$", output, re.M))}


def callgrind():
    return ["valgrind", "--quiet", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--trace-children=no"]


def uftrace(folder):
    return ["uftrace", "record", "-d", folder, "-P", ".", "--no-libcall"]


def uftrace_calls(folder):
    done = run(["uftrace", "report", "-d", folder, "-f", "call", "--no-pager"])
    return sum(int(line.split()[0]) for line in done.stdout.splitlines() if re.match(r"\s+\d+\s+\S", line))
