# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The programs of `make bench-inline`, and how each tool runs them. A run gives the CPU time of the program, and what
the tool says it has seen; a tracer's own CPU time is kept apart."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

from capture_programs import process_cpu_ns
from capture_tools import BENCH, TIMED, TRACECTL, Bpftrace, Failure, callgrind, last_line, run, timed, uftrace_calls

HERE = os.path.dirname(os.path.abspath(__file__))
BACKENDS = ("inline", "uprobe")
SECONDS_MAX = 120  # of one run


def record(folder, backend, arguments):
    return [TRACECTL, "-d", os.path.join(folder, "store.db"), "--json", "record", "--budget", "none", "--backend", backend,
            *arguments]


def seen(report):
    """Of record's report. A loss of unknown size would be no share: it shows as such."""
    return {"calls": report["calls"], "lost": report["lost"], "bytes": report["stored_bytes"]}


def report_in(output):
    return json.loads(output[output.index("{\n"):output.rindex("}") + 1])


class Folder:
    """A folder for a store, removed at the end; others may enter it (PostgreSQL runs as somebody else)."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(dir=BENCH)
        os.chmod(self.path, 0o755)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


class Command:
    """A program that runs and ends. `arguments` makes its command line for an amount of work; `work` says how much each
    tool gets. What a run with the amount `idle` takes is start-up, and is subtracted."""

    unit = "a round"

    def __init__(self, name, arguments, work, instrumented=None, idle=1):
        self.name, self.arguments, self.work, self.idle = name, arguments, work, idle
        self.instrumented = instrumented  # makes the command line of the build for uftrace

    def per_work(self, tool, execute):
        """`execute` runs a command line: (CPU seconds, what was seen)."""
        amount = self.work[tool]
        start_up = execute(self.idle)[0]
        cpu, result = execute(amount)
        return {"ns_per_work": (cpu - start_up) / (amount - self.idle) * 1e9, "amount": amount, **result}

    def native(self):
        return self.per_work("native", lambda amount: (timed(self.arguments(amount))[0], {}))

    def traced(self, backend, amount):
        """The collector's CPU time is what is left of that of record and all its children."""
        with Folder() as folder, tempfile.NamedTemporaryFile(dir=BENCH) as times, tempfile.TemporaryFile() as output:
            command = record(folder, backend, ["--", TIMED, times.name, *self.arguments(amount)])
            process = subprocess.Popen(["timeout", str(SECONDS_MAX), *command], stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read().decode(errors="replace")
            if status:
                raise Failure(last_line(text))
            wall, cpu = map(float, times.read().split())
            own = usage.ru_utime + usage.ru_stime - cpu
            return cpu, {**seen(report_in(text)), "collector": own / wall}

    def with_backend(self, backend):
        return self.per_work(backend, lambda amount: self.traced(backend, amount))

    def callgrind(self):
        return self.per_work("callgrind", lambda amount: (timed([*callgrind(), *self.arguments(amount)])[0], {}))

    def uftrace(self):
        if not self.instrumented:
            raise Failure("the program was not compiled for it")

        def execute(amount):
            with Folder() as folder:
                data = os.path.join(folder, "data")
                cpu = timed(["uftrace", "record", "--no-libcall", "-d", data, *self.instrumented(amount)])[0]
                return cpu, {"calls": uftrace_calls(data), "bytes": size_of(data)}

        return self.per_work("uftrace", execute)

    def bpftrace(self):
        raise Failure("attaches to functions that are named, and takes 0.1 s to leave each")


class Counted(Command):
    """One whose functions have names: bpftrace counts their calls."""

    def __init__(self, *arguments, functions=(), **options):
        super().__init__(*arguments, **options)
        self.functions = functions

    def bpftrace(self):
        tracer = Bpftrace(self.arguments(1)[0], self.functions)
        tracer.start()
        result = self.per_work("bpftrace", lambda amount: (timed(self.arguments(amount))[0], {}))
        return {**result, **tracer.stop()}


def size_of(folder):
    return sum(os.path.getsize(path) for path in glob.glob(os.path.join(folder, "*")))


# ------------------------------------------------------------------------------------------------ servers

def descendants(pid):
    """`pid` and all processes below it."""
    found = [pid]
    for one in found:
        for path in glob.glob(f"/proc/{one}/task/*/children"):
            try:
                with open(path, encoding="ascii") as file:
                    found += map(int, file.read().split())
            except (FileNotFoundError, ProcessLookupError): # it has just ended
                pass
    return found


def cpu_ns(pids):
    """CPU time of these processes and of those that they have waited for (PostgreSQL has one for each client)."""
    total = 0
    for pid in pids:
        try:
            total += process_cpu_ns(pid)
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            total += (int(fields[13]) + int(fields[14])) * 1000000000 // os.sysconf("SC_CLK_TCK")
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total


def free_port():
    with socket.create_server(("localhost", 0)) as server:
        return server.getsockname()[1]


class Server:
    """A server under its load generator. A tracer is attached to it while it runs; the load begins then."""

    unit = "a request"
    user = ()  # what begins the command line, so that the server runs as somebody else

    def __init__(self, name, work):
        self.name, self.work, self.port = name, work, free_port()

    def prepare(self, folder):
        pass

    def wait_until(self, ready):
        end = time.monotonic() + 30
        while not ready():
            if time.monotonic() > end:
                raise Failure(f"{self.name} did not start")
            time.sleep(0.05)

    def loaded(self, server, tool):
        before, begun = cpu_ns(descendants(server.pid)), time.monotonic()
        p99 = self.load(self.work[tool])
        wall = time.monotonic() - begun
        return {"ns_per_work": (cpu_ns(descendants(server.pid)) - before) / self.work[tool], "amount": self.work[tool],
                "p99_ms": p99, "wall": wall}

    def under(self, tool, prefix=(), traced=None):
        with Folder() as folder:
            self.prepare(folder)
            server = subprocess.Popen([*self.user, *prefix, *self.command(folder)], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                self.wait_until(self.is_ready)
                self.load(self.work[tool] // 10 + 100)
                return traced(server, folder) if traced else self.loaded(server, tool)
            finally:
                server.terminate()
                server.wait(timeout=60)

    def native(self):
        return self.under("native")

    def with_backend(self, backend):
        def traced(server, folder):
            tracer = subprocess.Popen(record(folder, backend, ["-p", str(server.pid)]), stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
            time.sleep(2)
            if tracer.poll() is not None:
                raise Failure(last_line(tracer.stderr.read()))
            before = cpu_ns(descendants(tracer.pid))
            result = self.loaded(server, backend)
            result["collector"] = (cpu_ns(descendants(tracer.pid)) - before) / 1e9 / result["wall"]
            tracer.send_signal(signal.SIGINT)
            output, errors = tracer.communicate(timeout=120)
            if tracer.returncode:
                raise Failure(last_line(errors))
            return {**result, **seen(report_in(output))}

        return self.under(backend, traced=traced)

    def callgrind(self):
        return self.under("callgrind", callgrind())

    def uftrace(self):
        raise Failure("the program was not compiled for it")

    def bpftrace(self):
        raise Failure("the program's functions have no names")


class Redis(Server):
    def command(self, folder):
        return ["/usr/bin/redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"]

    def is_ready(self):
        return subprocess.run(["redis-cli", "-p", str(self.port), "ping"], capture_output=True, check=False,
                              text=True).stdout.strip() == "PONG"

    def load(self, requests):
        done = run(["redis-benchmark", "-p", str(self.port), "-t", "set,get", "-n", str(requests // 2), "-c", "20",
                    "--csv"])
        rows = [[field.strip('"') for field in line.split(",")] for line in done.stdout.splitlines()]
        return statistics.mean(float(row[rows[0].index("p99_latency_ms")]) for row in rows[1:])


class Nginx(Server):
    def prepare(self, folder):
        with open(os.path.join(folder, "index.html"), "w", encoding="ascii") as file:
            file.write("x" * 600)
        with open(os.path.join(folder, "nginx.conf"), "w", encoding="ascii") as file:
            file.write(f"daemon off; worker_processes 1; user root; pid {folder}/pid; error_log {folder}/error;\n"
                       f"events {{}} http {{ access_log off; server {{ listen {self.port}; root {folder};\n"
                       f"keepalive_requests 1000000; }} client_body_temp_path {folder}; proxy_temp_path {folder};\n"
                       f"fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder}; }}\n")

    def command(self, folder):
        return ["/usr/sbin/nginx", "-e", f"{folder}/error", "-c", f"{folder}/nginx.conf"]

    def is_ready(self):
        return subprocess.run(["curl", "-s", "-o", "/dev/null", f"http://localhost:{self.port}/"],
                              check=False).returncode == 0

    def loaded(self, server, tool):
        result = super().loaded(server, tool)
        result["ns_per_work"] *= self.work[tool] / self.served  # wrk is told seconds
        result["amount"] = self.served
        return result

    def load(self, requests):
        seconds = max(1, requests // 20000)
        done = run(["wrk", "-t1", "-c20", f"-d{seconds}s", "--latency", f"http://localhost:{self.port}/"])
        self.served = int(re.search(r"(\d+) requests in", done.stdout)[1])
        number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", done.stdout).groups()
        return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


class Postgres(Server):
    user = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups")
    programs = max(glob.glob("/usr/lib/postgresql/*/bin"), default="/usr/lib/postgresql/15/bin")

    def as_user(self, *command):
        return ["runuser", "-u", "postgres", "--", *command]

    def prepare(self, folder):
        self.folder = folder
        run(["chown", "postgres", folder])
        run(self.as_user(f"{self.programs}/initdb", "-D", f"{folder}/data", "--no-sync"))

    def command(self, folder):
        return [f"{self.programs}/postgres", "-D", f"{folder}/data", "-p", str(self.port), "-k", folder, "-c",
                "fsync=off"]

    def client(self, *options):
        return self.as_user("env", "-C", self.folder, "pgbench", "-h", self.folder, "-p", str(self.port), *options)

    def is_ready(self):
        if subprocess.run(self.as_user(f"{self.programs}/pg_isready", "-q", "-h", self.folder, "-p", str(self.port)),
                          check=False).returncode:
            return False
        run(self.client("-i", "-q", "postgres"))
        return True

    def load(self, requests):
        run(self.client("-S", "-c", "4", "-t", str(requests // 4), "--log", "--log-prefix", "latency", "postgres"))
        times = []
        for path in glob.glob(os.path.join(self.folder, "latency*")):
            with open(path, encoding="ascii") as file:
                times += [int(line.split()[2]) for line in file]
            os.remove(path)
        times.sort()
        return times[len(times) * 99 // 100] / 1000


# ------------------------------------------------------------------------------------------------ all

def build(source, libraries=(), flags=(), name=None):
    path = os.path.join(BENCH, name or source)
    run(["gcc", "-O2", "-g", *flags, "-o", path, os.path.join(HERE, f"programs/{source}.c"), *libraries, "-lm"])
    return path


def amounts(native, uprobe, callgrind, uftrace=0, bpftrace=0):
    return {"native": native, "inline": native, "uprobe": uprobe, "callgrind": callgrind, "uftrace": uftrace,
            "bpftrace": bpftrace or uprobe}


def programs(scale):
    """`scale` divides the work."""
    plain, instrumented = build("kernels"), build("kernels", flags=["-pg"], name="kernels_pg")
    kernels = {
        "stencil": (amounts(16000 // scale, 4000 // scale, 1000 // scale, 8000 // scale), ["relax_row", "main"]),
        "sparse": (amounts(80000 // scale, 1000 // scale, 4000 // scale, 20000 // scale),
                   ["row_product", "dot", "add"]),
        "pairs": (amounts(4000 // scale, 20 // scale + 2, 100 // scale, 400 // scale), ["attract", "main"]),
        "tree": (amounts(10000 // scale, 50 // scale + 2, 200 // scale, 500 // scale), ["leaves", "main"]),
    }
    for name, (work, functions) in kernels.items():
        yield Counted(name, lambda n, name=name: [plain, name, str(n)], work, functions=functions,
                      instrumented=lambda n, name=name: [instrumented, name, str(n)])
    sqlite = build("sqlite_script", ["-l:libsqlite3.a", "-lz", "-ldl"])
    yield Command("sqlite3", lambda rows: [sqlite, f"{HERE}/programs/workload.sql", str(rows * 10)],
                  amounts(40000 // scale, 100, 4000 // scale))
    yield Command("python3", lambda n: ["/usr/bin/python3.11", "-S", f"{HERE}/programs/workload.py", str(n)],
                  amounts(20000 // scale, 100, 1000))
    yield Redis("redis-server", amounts(600000 // scale, 5000, 20000))
    yield Nginx("nginx", amounts(200000 // scale, 20000, 20000))
    yield Postgres("postgres", amounts(80000 // scale, 2000, 2000))


def summarise(native, runs):
    """The medians of a tool's runs."""
    def median(key):
        return statistics.median(one[key] for one in runs)

    last = runs[-1]
    result = {"ns_per_work": round(median("ns_per_work"), 1),
              "slow_down": round(median("ns_per_work") / statistics.median(one["ns_per_work"] for one in native), 3)}
    if "p99_ms" in last:
        result["p99_ms"] = round(median("p99_ms"), 3)
        result["p99_ratio"] = round(median("p99_ms") / statistics.median(one["p99_ms"] for one in native), 2)
    if "calls" in last:
        result["calls"] = last["calls"]
        per_work = result["ns_per_work"] - statistics.median(one["ns_per_work"] for one in native)
        result["ns_per_call"] = round(per_work * last["amount"] / max(1, last["calls"] + last.get("lost", 0)), 2)
    if "lost" in last:
        result["lost"] = last["lost"]
        result["captured"] = round(last["calls"] / max(1, last["calls"] + last["lost"]), 5)
    if "collector" in last:
        result["collector"] = round(median("collector"), 3)
    if "bytes" in last:
        result["bytes_per_call"] = round(last["bytes"] / max(1, last["calls"]), 3)
    return result


def measure(program, rounds, tools):
    """One row. `tools`: beside the native run; empty: all."""
    arms = {"native": program.native}
    arms.update({backend: lambda backend=backend: program.with_backend(backend) for backend in BACKENDS})
    arms.update({"uftrace": program.uftrace, "callgrind": program.callgrind, "bpftrace": program.bpftrace})
    arms = {name: arm for name, arm in arms.items() if name == "native" or not tools or name in tools}
    results, failures = {name: [] for name in arms}, {}
    for number in range(rounds):
        for name, arm in arms.items():
            slow = name not in ("native", "inline")  # a ratio of many needs no fine measurement
            if name in failures or (slow and number > 0):
                continue
            try:
                results[name].append(arm())
            except (Failure, subprocess.TimeoutExpired) as failure:
                failures[name] = str(failure)
    if "native" in failures:
        raise Failure(failures["native"])
    return {"unit": program.unit,
            "tools": {name: {"not_possible": failures[name]} if name in failures else summarise(results["native"], runs)
                      for name, runs in results.items()}}
