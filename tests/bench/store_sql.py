# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Size and answers of a store, beside the same events in a plain SQLite table, and in uftrace's own format where it
recorded them. Every answer of the two databases is compared."""
import os
import sqlite3
import statistics
import subprocess
import time

from capture_tools import Failure, last_line

UFTRACE_EVENT = 16  # bytes of a record in a .dat file

PLAIN = """
CREATE TABLE events(thread INTEGER, seq INTEGER, ns INTEGER, kind INTEGER, function INTEGER,
                    PRIMARY KEY(thread, seq)) WITHOUT ROWID;
"""
PLAIN_INDEXES = """
CREATE INDEX by_time ON events(thread, ns);
CREATE INDEX by_function ON events(function, ns);
ANALYZE;
"""


def make_plain(traced):
    """The events of a run as a table, indexed for what is asked: (path, number of events, seconds)."""
    path = traced.path.removesuffix(".db") + ".plain.db"
    if os.path.exists(path):
        os.remove(path)
    begun = time.monotonic()
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + PLAIN)
    db.execute("BEGIN")
    db.executemany("INSERT INTO events VALUES(?, ?, ?, ?, ?)", (
        (int(thread), int(seq), int(ns or 0), kind == "call", int(function or 0)) for thread, seq, ns, kind, function in
        traced.rows("SELECT thread_id, seq, ns, kind, function_id FROM events")))
    db.execute("COMMIT")
    db.executescript(PLAIN_INDEXES)
    count, = db.execute("SELECT count(*) FROM events").fetchone()
    db.close()
    return path, count, time.monotonic() - begun


def choose(path):
    """What is asked about: the thread with the most events, its middle second (or, when it ran for less, its middle
    tenth), the function in the middle by calls, and the middle tenth of the run."""
    db = sqlite3.connect(path)
    thread, first, last = db.execute(
        "SELECT thread, min(ns), max(ns) FROM events GROUP BY thread ORDER BY count(*) DESC LIMIT 1").fetchone()
    functions = db.execute("SELECT function FROM events WHERE kind = 1 GROUP BY function ORDER BY count(*)").fetchall()
    db.close()
    clock = "ns"
    if not last:  # no times were kept: places in the stream instead
        clock, first, last = "seq", 0, sqlite3.connect(path).execute("SELECT max(seq) FROM events").fetchone()[0]
    middle, tenth = (first + last) // 2, max((last - first) // 10, 1)
    second = 10**9 if clock == "ns" and last - first > 2 * 10**9 else tenth
    return {"clock": clock, "thread": thread, "function": functions[len(functions) // 2][0], "from": middle,
            "second": middle + second, "tenth": middle + tenth}


def questions(about):
    """By name: what the store is asked, and what the table is asked. The same rows in the same order."""
    clock = about["clock"]
    window = f"{clock} >= {about['from']} AND {clock} < "
    return {
        "count per function": (
            "SELECT function_id, sum(calls) AS calls FROM call_counts GROUP BY function_id ORDER BY function_id",
            "SELECT function, count(*) FROM events WHERE kind = 1 GROUP BY function ORDER BY function"),
        "a thread's second": (
            f"SELECT count(*) AS n, sum(function_id) AS f FROM events WHERE thread_id = {about['thread']} "
            f"AND {window}{about['second']}",
            f"SELECT count(*), sum(function) FROM events WHERE thread = {about['thread']} "
            f"AND {window}{about['second']}"),
        "a function's calls in a tenth": (
            f"SELECT count(*) AS n, min(seq) AS s FROM events WHERE function_id = {about['function']} "
            f"AND kind = 'call' AND {window}{about['tenth']}",
            f"SELECT count(*), min(seq) FROM events WHERE function = {about['function']} AND kind = 1 "
            f"AND {window}{about['tenth']}"),
    }


def ask(command, rounds):
    """Median milliseconds of a whole command, and what it printed."""
    times = []
    for _ in range(rounds):
        begun = time.monotonic()
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        times.append((time.monotonic() - begun) * 1e3)
        if done.returncode:
            raise Failure(last_line(done.stderr))
    return round(statistics.median(times), 1), done.stdout


def answers(output, header):
    """The rows of CSV in either dialect."""
    rows = [line.strip() for line in output.splitlines()]
    return rows[1:] if header else rows


def compare(traced, rounds, uftrace_data=None):
    """One row: bytes of the store's file, of the table's, of uftrace's records; milliseconds of each question."""
    plain, events, seconds = make_plain(traced)
    row = {"events": events, "store bytes": os.path.getsize(traced.path), "plain bytes": os.path.getsize(plain),
           "uftrace bytes": UFTRACE_EVENT * events, "plain seconds to fill": round(seconds, 1), "questions": {}}
    for name, (ours, theirs) in questions(choose(plain)).items():
        store_ms, store_rows = ask(traced.tracectl("query", "--csv", ours), rounds)
        plain_ms, plain_rows = ask(["sqlite3", "-csv", plain, theirs], rounds)
        if answers(store_rows, True) != answers(plain_rows, False):
            raise Failure(f"{traced.name}: {name}: the store and the table disagree")
        row["questions"][name] = {"store ms": store_ms, "plain ms": plain_ms}
    if uftrace_data:
        row["uftrace bytes"] = sum(entry.stat().st_size for entry in os.scandir(uftrace_data)
                                   if entry.name.endswith(".dat"))
        row["uftrace report ms"], _ = ask(["uftrace", "report", "--no-pager", "--no-event", "-d", uftrace_data], rounds)
    os.remove(plain)
    return row
