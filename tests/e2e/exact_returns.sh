#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# record --returns exact: inline probes see the returns that uprobes on every return instruction see.
. "$(dirname "$0")/lib.sh"
needs_capture

# The calls of a run with their depth and how they ended, a line for each thread.
calls_of() { # run's name
    q "SELECT t.label || ' ' || f.name || ':' || c.depth || ':' || c.state AS line FROM calls c
       JOIN threads t USING (thread_id) JOIN functions f USING (function_id)
       WHERE c.run_id = $(run_id "$1") ORDER BY c.thread_id, c.seq" |
        awk '{ calls[$1] = calls[$1] " " $2 } END { for (label in calls) print calls[label] }' | sort
}

# Functions with the number of calls whose duration is exact.
exact_of() { # run's name
    q "SELECT f.name || ' ' || count(duration_ns) AS line FROM calls c JOIN functions f USING (function_id)
       WHERE c.run_id = $(run_id "$1") GROUP BY f.name ORDER BY f.name"
}

record_both() { # program
    record "u_$1" --backend uprobe --returns sites --time full -- "$PROGRAMS/$1" >"$WORK/u.out"
    record "i_$1" --backend auto --returns exact --time full -- "$PROGRAMS/$1" >"$WORK/i.out"
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id "i_$1")")"
}

same_as_uprobes() { # program
    record_both "$1"
    cmp "$WORK/u.out" "$WORK/i.out"
    calls_of "u_$1" >"$WORK/u.calls"
    calls_of "i_$1" >"$WORK/i.calls"
    (($(wc -c <"$WORK/u.calls") > 200))
    cmp "$WORK/u.calls" "$WORK/i.calls"
    exact_of "u_$1" >"$WORK/u.exact"
    exact_of "i_$1" >"$WORK/i.exact"
    diff "$WORK/u.exact" "$WORK/i.exact"
}

# No call took longer than the one that it is inside.
durations_nest() { # program
    local run
    run=$(run_id "i_$1")
    q "SELECT thread_id, seq, coalesce(parent_seq, -1) AS parent, coalesce(duration_ns, -1) AS took FROM calls
       WHERE run_id = $run" >"$WORK/took"
    awk -F'|' '{ took[$1 " " $2] = $4; parent[$1 " " $2] = $1 " " $3; exact += $4 >= 0 }
               END {
                   for (call in took)
                       if (parent[call] in took && took[parent[call]] >= 0 && took[call] > took[parent[call]])
                           exit 1
                   exit exact <= 20
               }' "$WORK/took"
    same 0 "$(q "SELECT count(*) FROM calls WHERE run_id = $run AND duration_ns IS NOT NULL
                 AND (duration_ns <> duration_min_ns OR duration_ns <> duration_max_ns)")"
}

# Times of ticks make no durations.
no_durations_from_ticks() {
    record ticks --backend auto --returns exact -- "$PROGRAMS/recursion" >/dev/null
    same 0 "$(q "SELECT count(duration_ns) FROM calls WHERE run_id = $(run_id ticks)")"
    calls_of ticks >"$WORK/ticks.calls"
    calls_of i_recursion >"$WORK/full.calls"
    cmp "$WORK/ticks.calls" "$WORK/full.calls"
}

dry_run() {
    "$TRACECTL" --json record --dry-run --backend auto --returns exact -- "$PROGRAMS/threads" >"$WORK/plan.json"
    python3 - "$WORK/plan.json" <<'PY'
import json, sys
image = json.load(open(sys.argv[1]))[0]
exact = image["exact_returns"]
rows = [row["returns"] for row in image["plan"] if row["backend"] == "inline"]
assert exact["exact"] == rows.count("exact") > 5, exact
assert exact["inferred"] == rows.count("inferred") == sum(exact["because"].values()), exact
PY
    "$TRACECTL" record --dry-run --backend auto --returns exact -- "$PROGRAMS/threads" >"$WORK/plan"
    grep 'exact returns of [1-9]' "$WORK/plan" >/dev/null
}

# Patched while it runs, and as before afterwards: the program checks what it has computed.
a_running_process() {
    local run
    spawn "$PROGRAMS/busy" 2000 2 >"$WORK/busy.out"
    until grep beat "$WORK/busy.out" >/dev/null; do :; done
    for run in first second; do
        record "$run" --backend auto --returns exact --time full --budget none --duration 1 -p "$spawned"
        q "SELECT value FROM tags WHERE run_id = $(run_id "$run") AND key LIKE 'backend:%'" |
            grep 'exact returns of [1-9]' >/dev/null
        (($(q "SELECT count(*) FROM calls WHERE run_id = $(run_id "$run") AND duration_ns IS NOT NULL") > 100))
    done
    kill "$spawned"
    until tail -n 1 "$WORK/busy.out" | grep -E 'harmed' >/dev/null; do :; done
    grep unharmed "$WORK/busy.out" >/dev/null
}

for program in recursion tail_calls longjmp exceptions signals; do
    run_case "$program: as uprobes see it" same_as_uprobes $program
done
for program in recursion longjmp exceptions signals; do
    run_case "$program: durations nest" durations_nest $program
done
run_case "threads" record_both threads
run_case "threads: durations nest" durations_nest threads
run_case "no durations from ticks" no_durations_from_ticks
run_case "--dry-run" dry_run
run_case "-p" a_running_process
finish
