# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The services of `make bench-always-on`, each with the load that keeps it busy: requests of every second, and the p99
latency. A service starts once and runs through all measurements."""
import base64
import glob
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time

import inline_programs
from capture_tools import BENCH, Failure, run

HERE = os.path.dirname(os.path.abspath(__file__))
WARM_UP = 1  # seconds of load before anybody attaches


class Service:
    """Mixed into a Server of inline_programs."""

    needs = ()  # programs

    def missing(self):
        return [name for name in self.needs if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]

    def start(self):
        self.folder = tempfile.mkdtemp(dir=BENCH)
        os.chmod(self.folder, 0o755)
        self.prepare(self.folder)
        self.process = subprocess.Popen([*self.user, *self.command(self.folder)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_until(self.is_ready)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def pids(self):
        return inline_programs.descendants(self.process.pid)

    def drive(self, seconds, at_second):
        """Loads the service for so many seconds; at_second(N) is called when N of them are over, from WARM_UP on.
        Returns (the requests of each second from there on, p99 in milliseconds)."""
        client = self.begin_load(WARM_UP + seconds)
        begun, counts = time.monotonic(), []
        try:
            for second in range(WARM_UP + seconds + 1):
                time.sleep(max(0, begun + second - time.monotonic()))
                counts.append(self.answered())
                if second >= WARM_UP:
                    at_second(second - WARM_UP)
            return self.end_load(client, counts)
        finally:
            if client.poll() is None:
                client.kill()
                client.wait()

    def answered(self):
        """How many requests the server has answered so far, where the load generator does not say it."""

    def differences(self, counts):
        counts = counts[WARM_UP:]
        return [after - before for before, after in zip(counts, counts[1:])]


class Redis(Service, inline_programs.Redis):
    needs = ("redis-server", "redis-benchmark")

    def begin_load(self, seconds):
        return subprocess.Popen(["redis-benchmark", "-p", str(self.port), "-c", "50", "-t", "set", "-r", "10000", "-n",
                                 "1000000000", "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answered(self):
        with socket.create_connection(("localhost", self.port)) as link:
            link.sendall(b"INFO stats\r\n")
            text = link.recv(65536).decode()
        return int(text.split("total_commands_processed:")[1].split()[0])

    def end_load(self, client, counts):
        client.kill()
        client.wait()
        done = run(["redis-benchmark", "-p", str(self.port), "-c", "4", "-t", "get", "-n", "20000", "--csv"])
        lines = [line.replace('"', "").split(",") for line in done.stdout.splitlines() if line]
        return self.differences(counts), float(dict(zip(lines[0], lines[-1]))["p99_latency_ms"])


class Nginx(Service, inline_programs.Nginx):
    needs = ("nginx", "wrk", "curl")

    def prepare(self, folder):
        super().prepare(folder)
        path = os.path.join(folder, "nginx.conf")
        with open(path, encoding="ascii") as file:
            text = file.read()
        with open(path, "w", encoding="ascii") as file:
            file.write(text.replace("keepalive_requests", "location = /status { stub_status; } keepalive_requests"))

    def begin_load(self, seconds):
        return subprocess.Popen(["wrk", "-t1", "-c200", f"-d{seconds}s", "--latency", f"http://localhost:{self.port}/"],
                                stdout=subprocess.PIPE, text=True)

    def answered(self):
        with socket.create_connection(("localhost", self.port)) as link:
            link.sendall(b"GET /status HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: link.recv(4096), b"")).decode()
        return int(re.search(r"\n\s*\d+ \d+ (\d+)", text)[1])

    def end_load(self, client, counts):
        number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", client.communicate(timeout=60)[0]).groups()
        return self.differences(counts), float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


class Postgres(Service, inline_programs.Postgres):
    """Without autovacuum: once a minute that takes a third of the requests for some seconds, traced or not."""

    needs = ("pgbench", "runuser")

    def command(self, folder):
        return [*super().command(folder), "-c", "autovacuum=off"]

    def begin_load(self, seconds):
        return subprocess.Popen(self.client("-S", "-n", "-c", "16", "-T", str(seconds), "-P", "1", "--log",
                                            "--log-prefix", "latency", "postgres"), stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def end_load(self, client, counts):
        progress = client.communicate(timeout=60)[1]
        seconds = [float(tps) for tps in re.findall(r"^progress: .*?([\d.]+) tps", progress, re.M)]
        times = []
        for path in glob.glob(os.path.join(self.folder, "latency*")):
            with open(path, encoding="ascii") as file:
                times += [int(line.split()[2]) for line in file]
            os.remove(path)
        times.sort()
        return seconds[WARM_UP:len(counts) - 1], times[len(times) * 99 // 100] / 1000


class Etcd(Service, inline_programs.Server):
    """Nine keys are read for one that is written, by way of its JSON gateway."""

    needs = ("etcd", "gcc")
    port = 47494

    def prepare(self, folder):
        self.load_program = inline_programs.build("http_load", flags=["-D_GNU_SOURCE"])

    def command(self, folder):
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.port, self.port + 1))
        return ["/usr/bin/etcd", "--data-dir", f"{folder}/data", "--listen-client-urls", client, "--advertise-client-urls",
                client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster",
                f"default={peer}", "--log-level", "error", "--logger", "zap"]

    def post(self, seconds):
        key, value = (base64.b64encode(text).decode() for text in (b"key", b"v" * 100))
        read = ["/v3/kv/range", f'{{"key":"{key}","serializable":true}}']
        return [self.load_program, str(self.port), "20", str(seconds), "/v3/kv/put",
                f'{{"key":"{key}","value":"{value}"}}', *(read * 9)]

    def is_ready(self):
        return subprocess.run(self.post(1), capture_output=True, check=False).returncode == 0

    def begin_load(self, seconds):
        return subprocess.Popen(self.post(seconds), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end_load(self, client, counts):
        output, errors = client.communicate(timeout=60)
        if client.returncode:
            raise Failure(errors.strip() or "the load generator failed")
        seconds = [int(count) for count in re.findall(r"^second (\d+)", output, re.M)]
        return seconds[WARM_UP:], int(re.search(r"^p99 (\d+)", output, re.M)[1]) / 1000


def services():
    return [Redis("redis-server", {}), Nginx("nginx", {}), Postgres("postgres", {}), Etcd("etcd", {})]
