# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The rows of `make bench-always-on`: each arm of a service beside the untraced one."""
import statistics

COLUMNS = {"requests_per_second": "requests/s", "loss": "loss %", "worst_second": "worst s %", "p99_ms": "p99 ms",
           "cpu_us": "CPU us/req", "growth": "growth %", "own_cpu": "tracer %", "memory_mb": "tracer MB",
           "mb_per_hour": "MB/hour", "estimate": "estimate %", "complete": "complete", "within": "within"}
SLACK = 1  # percentage points beside the budget


def median_of(runs, key):
    values = [run[key] for run in runs if run.get(key) is not None]
    return statistics.median(values) if values and not isinstance(values[0], str) else (values or [None])[-1]


def within(arm, row):
    """Whether an arm with a budget keeps to it."""
    budget = arm.partition(":")[2]
    if not budget or budget == "none":
        return None
    return "yes" if max(row["loss"], row["growth"]) <= float(budget) + SLACK else "no"


def percent_less(value, base):
    return 100 * (1 - value / base)


def row_of(arm, runs):
    """Each run beside what was measured without tracing before and behind it."""
    row = {key: median_of(runs, key) for key in ("p99_ms", "cpu_us", "own_cpu", "estimate", "complete", "bytes",
                                                 "worst_estimate", "lost", "calls")}
    own = {"rate": statistics.mean(second for run in runs for second in run["seconds"]), "cpu_us": row["cpu_us"]}
    pairs = [(run, run.get("beside", own)) for run in runs]
    row["requests_per_second"] = own["rate"]
    row["loss"] = statistics.mean(percent_less(statistics.mean(run["seconds"]), base["rate"]) for run, base in pairs)
    row["worst_second"] = max(percent_less(min(run["seconds"]), base["rate"]) for run, base in pairs)
    row["growth"] = statistics.mean(100 * (run["cpu_us"] / base["cpu_us"] - 1) for run, base in pairs)
    row["memory_mb"] = max((run["memory"] / 1e6 for run in runs if "memory" in run), default=None)
    row["mb_per_hour"] = median_of([{"mb": run["bytes"] / len(run["seconds"]) * 3600 / 1e6} for run in runs
                                    if "bytes" in run], "mb")
    row["within"] = within(arm, row)
    return row


def summarise(results):
    """`results`: the runs of each arm of a service."""
    return {arm: row_of(arm, runs) for arm, runs in results.items() if runs}


def cell(value):
    if isinstance(value, (int, float)):
        return f"{value:>12.4g}"
    text = "-" if value is None else value.split(" functions")[0].replace(" of ", "/")
    return f"{text:>12}"


def show(service, table, notes):
    print(f"\n{service}")
    print(f"{'':<12}" + "".join(f"{title:>12}" for title in COLUMNS.values()))
    for arm, row in table.items():
        print(f"{arm:<12}" + "".join(cell(row[key]) for key in COLUMNS))
    for arm, reason in notes.items():
        print(f"{arm:<12}  {reason[:100]}")
