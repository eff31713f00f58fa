# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What every case of the harm matrix does: run a target, record it, look at both."""
import csv
import functools
import io
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import truth

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TRACECTL = os.path.realpath(os.environ.get("TRACECTL", ROOT / "build/tracectl"))
PROGRAMS = os.path.realpath(os.environ.get("HARM_PROGRAMS", ROOT / "build/tests/harm"))
TEXT_EQUALS_FILE = ROOT / "tests/e2e/text_equals_file"
LIMIT = 180  # seconds for one command: only a hang takes that long, on the busiest machine too


class Failure(Exception):
    """A case failed; the text says what differed."""


class Skip(Exception):
    """This machine does not allow the case; the text says why."""


def check(good, text):
    if not good:
        raise Failure(text)


def same(what, wanted, got):
    check(wanted == got, f"{what}: wanted {wanted!r}, got {got!r}")


def program(name):
    return os.path.join(PROGRAMS, name)


def shell_status(status):
    return 128 - status if status < 0 else status


class Case:
    """A directory and a store of its own; every process started here is ended with it."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="tracectl-harm."))
        self.directory.chmod(0o755)
        self.environment = {
            **os.environ, "TRACECTL_DB": str(self.directory / "store.db"), "LC_ALL": "C", "NO_COLOR": "1",
        }
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, *command, **more):
        """Runs a command to its end: (status as a shell tells it, standard output, standard error)."""
        more.setdefault("env", self.environment)
        try:
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace",
                                  timeout=LIMIT, stdin=subprocess.DEVNULL, umask=0, check=False, **more)
        except subprocess.TimeoutExpired as hung:
            raise Failure(f"ran into the limit of {LIMIT} s: {' '.join(map(str, hung.cmd))}") from hung
        return shell_status(done.returncode), done.stdout, done.stderr

    def spawn(self, *command, **more):
        """Starts a command in the background."""
        more.setdefault("env", self.environment)
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   stdin=subprocess.DEVNULL, **more)
        self.started.append(process)
        return process

    def spawn_ready(self, *command, **more):
        """Starts a target in the background and waits for its first line, "ready"."""
        process = self.spawn(*command, **more)
        same("the target's first line", "ready\n", process.stdout.readline())
        return process

    def spawn_recorder(self, *arguments):
        return self.spawn(TRACECTL, "-q", "record", "-n", "run", *arguments)

    def record(self, *arguments, **more):
        """Records; fails unless tracectl itself ends well. The command's status and output."""
        status, out, err = self.run(TRACECTL, "-q", "record", "-n", "run", *arguments, **more)
        check(status == 0, f"tracectl record {' '.join(map(str, arguments))}: status {status}\n{out}{err}")
        return self.value("SELECT coalesce(exit_status, -1) FROM runs ORDER BY run_id DESC LIMIT 1"), out, err

    def query(self, sql):
        status, out, err = self.run(TRACECTL, "query", "--csv", sql)
        check(status == 0, f"query: status {status}: {err}")
        return list(csv.reader(io.StringIO(out)))[1:]

    def value(self, sql):
        rows = self.query(sql)
        return int(rows[0][0]) if rows else None

    def has_events(self):
        """Whether a recording that may still be under way has stored any."""
        status, out, _ = self.run(TRACECTL, "query", "--csv", "SELECT count(*) FROM events")
        return status == 0 and int(out.split()[1]) > 0

    def streams(self, known, images=None):
        """The streams of all recordings of this case (see truth.py)."""
        rows = self.query("""SELECT c.thread_id, c.seq, coalesce(c.parent_seq, -1), f.address, i.path FROM calls c
            JOIN functions f USING (function_id) JOIN images i USING (image_id) ORDER BY c.thread_id, c.seq""")
        numbers = ((*map(int, row[:4]), row[4]) for row in rows)
        return truth.recorded_streams(numbers, images or {}, known)

    def blind(self, images=None):
        """Names of functions that the recordings say they did not observe."""
        rows = self.query("SELECT DISTINCT f.address, i.path FROM blind JOIN functions f USING (function_id) "
                          "JOIN images i USING (image_id)")
        return {truth.name_at(image, int(address), images or {}) for address, image in rows}

    def losses(self):
        return self.query("SELECT cause, sum(coalesce(count, 1)) FROM losses GROUP BY cause")

    def nothing_is_stopped(self):
        """No process of the recordings of this case is left stopped."""
        for pid, in self.query("SELECT pid FROM processes"):
            check(state_of(pid) not in "Tt", f"process {pid} is left stopped")


@functools.lru_cache(maxsize=None)
def truth_of(command, status=0):
    """What a command that runs an instrumented build says that it called."""
    with tempfile.TemporaryDirectory(prefix="tracectl-harm.") as directory:
        os.chmod(directory, 0o777)  # targets give up their privileges
        with Case() as case:
            case.environment["HARM_TRUTH"] = f"{directory}/log"
            got, out, err = case.run(*command)
        check(got == status, f"the instrumented build ends with {got}: {out}{err}")
        return truth.Truth(f"{directory}/log")


def state_of(pid):
    """R, S, T ..., X if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f"waited in vain: {what}")
        time.sleep(0.02)


def text_difference(pid):
    done = subprocess.run([TEXT_EQUALS_FILE, str(pid)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def text_is_clean(pid):
    """Probes are taken away asynchronously; in the end none is left."""
    try:
        wait_for("the code equals its file", lambda: not text_difference(pid))
    except Failure as failure:
        raise Failure(f"{failure}\n{text_difference(pid)}") from failure


def is_probed(pid):
    return "differ" in text_difference(pid)


def ends_unharmed(process):
    """Ends a target that repeats its work, and checks what it says of itself."""
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 0 and "unharmed" in out, f"target ended with {process.returncode}: {out}{err}")
