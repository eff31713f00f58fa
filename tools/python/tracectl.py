# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Stores of tracectl in Python.

    import tracectl

    store = tracectl.open("tracectl.db")
    for run in store.runs():
        print(run["run"], run["name"], run["complete"])
    store.top("latest")                         # functions with their calls and times
    store.calls("latest", "0.0")                # the calls of a thread, or of all threads
    store.query("SELECT name, started_ns FROM runs")
    store.diff("good", "bad")                   # what `tracectl diff --json` prints
    store.top("latest").to_pandas()             # a DataFrame, if pandas is installed

Rows are dictionaries in a list. Everything is read by the executable `tracectl` (of $PATH, or $TRACECTL), with its
checks and limits; docs/sql.md describes the tables. Failures raise tracectl.Error with tracectl's own message.
"""
import json
import os
import subprocess

__all__ = ["Error", "Rows", "Store", "open"]


class Error(Exception):
    """tracectl could not do it; the text says what failed, and what to do."""


class Rows(list):
    """A list of dictionaries with the same keys."""

    def to_pandas(self):
        """The same as a pandas.DataFrame. Raises ImportError without pandas."""
        import pandas

        return pandas.DataFrame.from_records(list(self))


class Store:
    """A store, by its path. Nothing stays open between two questions."""

    def __init__(self, path, executable=None):
        self.path = os.fspath(path)
        self._executable = executable or os.environ.get("TRACECTL") or "tracectl"

    def _ask(self, *words):
        """The JSON document that a command prints. Status 1 is an answer, too: a difference was found."""
        command = [self._executable, "-d", self.path, "--json", *words]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except OSError as error:
            raise Error(f"cannot run {self._executable}: {error.strerror} (install tracectl, or set $TRACECTL)") from error
        if done.returncode not in (0, 1):
            raise Error(done.stderr.decode("utf-8", "replace").strip() or f"{command[0]} ended with status {done.returncode}")
        return json.loads(done.stdout)

    def query(self, sql):
        """The rows of one read-only SQL statement."""
        return Rows(self._ask("query", "--", sql))

    def runs(self):
        """The runs of the store, the oldest first."""
        return Rows(self._ask("runs"))

    def show(self, run):
        """All that `tracectl show` prints about a run, as a dictionary."""
        return self._ask("show", "--", str(run))

    def top(self, run="latest"):
        """The functions of a run, the most-called first."""
        return Rows(self._ask("top", "-n", "0", "--", str(run))["functions"])

    def calls(self, run="latest", thread=None):
        """The calls of a run in the order of their threads, or those of one thread ("0.0")."""
        where = f"c.run_id = {int(self.show(run)['run'])}"
        if thread is not None:
            where += " AND t.label = '" + str(thread).replace("'", "''") + "'"
        return self.query(
            "SELECT t.label AS thread, c.seq, c.parent_seq, c.depth, f.name, c.duration_ns, c.duration_min_ns, "
            "c.duration_max_ns FROM calls c JOIN threads t USING (thread_id) JOIN functions f USING (function_id) "
            f"WHERE {where} ORDER BY c.thread_id, c.seq"
        )

    def diff(self, baseline, candidate, *threads):
        """How two runs differ, as a dictionary: "suspects", "diffs" and more."""
        return self._ask("diff", "--", str(baseline), str(candidate), *map(str, threads))


def open(path="tracectl.db", executable=None):
    """The store in a file. The file need not exist before it is asked something."""
    return Store(path, executable)
