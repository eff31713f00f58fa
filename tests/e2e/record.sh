#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Recording a command: exact counts for every function and thread, the report, names, tags, exit statuses, choice of
# functions. FORTY_RUNS (3) sets how often the exact counts are taken.
. "$(dirname "$0")/lib.sh"
needs_capture

"$PROGRAMS/forty" --expect | sort >"$WORK/expected"
"$PROGRAMS/forty" >"$WORK/unprobed"
total=$(awk '{ sum += $3 } END { print sum }' "$WORK/expected")
only='^(main|work|f[0-3][0-9])$'

forty_is_exact() { # name, options of record...
    local name=$1 id
    shift
    record "$name" "$@" -- "$PROGRAMS/forty" >"$WORK/probed"
    cmp "$WORK/unprobed" "$WORK/probed"
    id=$(run_id "$name")
    counts_by_thread "$id" | grep -E ' (main|work|f[0-3][0-9]) ' | sort >"$WORK/counted"
    diff "$WORK/expected" "$WORK/counted"
    q "SELECT t.label || ' ' || f.name || ' ' || sum(sf.calls) AS line FROM segment_functions sf
       JOIN segments s USING (segment_id) JOIN threads t USING (thread_id) JOIN functions f USING (function_id)
       WHERE s.run_id = $id GROUP BY t.label, f.name" | grep -E ' (main|work|f[0-3][0-9]) ' | sort >"$WORK/catalog"
    diff "$WORK/expected" "$WORK/catalog"
    same 0 "$(q "SELECT count(*) AS n FROM losses WHERE run_id = $id")"
}

# On the threads that work: the main thread also runs start code, part of which never returns.
balance() { # name of a run
    q "SELECT kind, count(*) AS n FROM events WHERE run_id = $(run_id "$1") GROUP BY kind"
    same 0 "$(q "SELECT count(*) AS n FROM (SELECT thread_id, sum(kind = 'call') AS calls, sum(kind = 'return') AS returns
        FROM events JOIN threads t USING (thread_id) WHERE events.run_id = $(run_id "$1") AND t.label <> '0.0'
        GROUP BY thread_id) WHERE calls <> returns")"
    same 0 "$(q "SELECT count(*) AS n FROM calls JOIN functions f USING (function_id) WHERE run_id = $(run_id "$1")
        AND (f.name GLOB 'f[0-3][0-9]' OR f.name IN ('main', 'work')) AND state <> 'returned'")"
}

# Whether a thread's last calls returned is not known then: 'unknown', two at most on each; all others returned.
inferred_balance() { # name of a run
    q "SELECT state, count(*) AS n FROM calls WHERE run_id = $(run_id "$1") GROUP BY state"
    same 0 "$(q "SELECT count(*) AS n FROM (SELECT thread_id, sum(state = 'open') AS open, sum(state = 'unknown') AS unknown
        FROM calls JOIN threads t USING (thread_id) WHERE calls.run_id = $(run_id "$1") AND t.label <> '0.0'
        GROUP BY thread_id) WHERE open > 0 OR unknown > 2")"
}

sequence_has_no_gap() {
    same 0 "$(q "SELECT count(*) AS n FROM (SELECT thread_id, count(*) AS n, min(seq) AS low, max(seq) AS high
        FROM events WHERE run_id = $(run_id forty1) GROUP BY thread_id) WHERE low <> 0 OR high <> n - 1")"
}

report_is_right() {
    local id returns
    "$TRACECTL" --json record -n report --backend uprobe --functions "$only" -- "$PROGRAMS/forty" >"$WORK/report.json" 2>"$WORK/target.out"
    cmp "$WORK/unprobed" "$WORK/target.out"
    id=$(json_get run <"$WORK/report.json")
    same "$(run_id report)" "$id"
    same report "$(json_get name <"$WORK/report.json")"
    same 0 "$(json_get exit_status <"$WORK/report.json")"
    same "$total" "$(json_get calls <"$WORK/report.json")"
    # Whether the two innermost calls of a thread have returned when it ends is not known.
    returns=$(json_get returns <"$WORK/report.json")
    ((returns <= total && returns >= total - 2 * 9))
    same $((total + returns)) "$(json_get events <"$WORK/report.json")"
    same 9 "$(json_get threads <"$WORK/report.json")"
    same 0 "$(json_get lost <"$WORK/report.json")"
    same 0 "$(json_get muted_functions <"$WORK/report.json")"
    same 0 "$(json_get functions.inline <"$WORK/report.json")"
    (($(json_get functions.uprobe <"$WORK/report.json") >= 40))
    "$TRACECTL" --json -d "$WORK/auto.db" record --functions "$only" -- "$PROGRAMS/forty" 3 >"$WORK/auto.json" \
        2>/dev/null
    same "$(json_get functions.uprobe <"$WORK/report.json")" "$(json_get functions.inline <"$WORK/auto.json")"
    same "$(json_get functions.none <"$WORK/report.json")" "$(json_get functions.none <"$WORK/auto.json")"
    same $((2 * (total + returns))) "$(json_get raw_bytes <"$WORK/report.json")"
    (($(json_get stored_bytes <"$WORK/report.json") > 0))
    (($(json_get catalog_bytes <"$WORK/report.json") > 0))
    json_get wall_seconds <"$WORK/report.json"
}

statuses_are_kept() {
    local status=0
    record status -- "$PROGRAMS/odd_even_sort" nonsense || fail "the command's status became ours"
    same 2 "$(q "SELECT exit_status FROM runs WHERE name = 'status'")"
    record status2 --exit-status -- "$PROGRAMS/odd_even_sort" nonsense || status=$?
    same 2 "$status"
}

signal_is_kept() {
    record killed -- timeout -s KILL --foreground 1 "$PROGRAMS/busy" 1000 >/dev/null || true
    same 137 "$(q "SELECT exit_status FROM runs WHERE name = 'killed'")"
}

tags_are_kept() {
    record tagged --tag colour=blue --tag size=3 -- "$PROGRAMS/million" 10
    same "colour=blue size=3" "$(q "SELECT key || '=' || value AS tag FROM tags WHERE run_id = $(run_id tagged)
        AND key NOT IN ('ring bytes', 'waited ns') AND key NOT LIKE 'backend:%' ORDER BY key" | paste -sd ' ')"
}

functions_are_chosen() {
    record chosen --functions '^f0' --exclude '^f0[5-9]$' -- "$PROGRAMS/forty"
    same "f00 f01 f02 f03 f04" "$(q "SELECT DISTINCT f.name FROM events JOIN functions f USING (function_id)
        WHERE run_id = $(run_id chosen) AND f.name GLOB 'f[0-9]*' ORDER BY 1" | paste -sd ' ')"
}

stripped_program() { # names are lost, the calls are not
    local status=0 calls
    record stripped -- "$PROGRAMS/million_stripped" 3000 2>"$WORK/err" >"$WORK/out" || status=$?
    cat "$WORK/err"
    ((status == 0)) || { # a refusal is fine when it says so
        fails_with 3 "$TRACECTL" record -n stripped2 -- "$PROGRAMS/million_stripped" 3000
        return
    }
    calls=$(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id stripped) AND kind = 'call'")
    ((calls >= 3000)) || fail "only $calls calls"
}

static_program() {
    record static -- "$PROGRAMS/static_hello" >"$WORK/out"
    diff <("$PROGRAMS/static_hello") "$WORK/out"
    same 3 "$(q "SELECT count(*) AS n FROM events JOIN functions f USING (function_id)
        WHERE run_id = $(run_id static) AND f.name = 'greet' AND kind = 'call'")"
}

self_counting() { # program: prints "NAME COUNT" of its functions
    "$TRACECTL" -q record -n "$1" -- "$PROGRAMS/$1" | sort >"$WORK/own"
    [[ -s $WORK/own ]] || fail "the program printed nothing: status $(q "SELECT exit_status FROM runs WHERE name = '$1'")"
    q "SELECT f.name || ' ' || count(*) AS line FROM events JOIN functions f USING (function_id)
       WHERE run_id = $(run_id "$1") AND kind = 'call' GROUP BY f.name" | sort >"$WORK/counted"
    # What could not be probed must be told, and only that may be missing.
    q "SELECT f.name FROM blind JOIN functions f USING (function_id) WHERE run_id = $(run_id "$1")" |
        sort >"$WORK/blind"
    join -v 1 "$WORK/own" "$WORK/blind" >"$WORK/wanted"
    grep -q . "$WORK/wanted"
    same "$(cat "$WORK/wanted")" "$(join "$WORK/wanted" "$WORK/counted" -o 2.1,2.2)"
}

times_are_kept() { # none, anchor or full
    record "time_$1" --time "$1" -- "$PROGRAMS/million" 2000
    case $1 in
    none) same 0 "$(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id time_none) AND ns > 0")" ;;
    full)
        same 0 "$(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id time_full)
            AND (ns = 0 OR kind = 'call' AND ns_error > 0)")"
        same 0 "$(q "SELECT count(*) AS n FROM calls WHERE run_id = $(run_id time_full) AND state = 'returned'
            AND duration_min_ns < 0")"
        ;;
    anchor)
        same 0 "$(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id time_anchor) AND ns = 0")"
        ;;
    esac
    same 0 "$(q "SELECT count(*) AS n FROM (SELECT ns - lag(ns) OVER (PARTITION BY thread_id ORDER BY seq) AS step
        FROM events WHERE run_id = $(run_id "time_$1")) WHERE step < 0")"
}

for ((i = 1; i <= ${FORTY_RUNS:-3}; i++)); do
    # Where each event has a time, top says how long functions took; what cannot be is not said.
times_of_functions() {
    record timed --time full --returns probe -- "$PROGRAMS/million" 2000 >/dev/null
    record untimed -- "$PROGRAMS/million" 2000 >/dev/null
    "$TRACECTL" top untimed | grep TIME && fail "times that were not recorded"
    "$TRACECTL" top timed | grep -E '^ *CALLS +SHARE +TIME +SELF +P50 +P99 +MAX +THREADS +FUNCTION$' >/dev/null
    "$TRACECTL" --json top timed -n 0 >"$WORK/timed.json"
    python3 - "$WORK/timed.json" <<'PY'
import json, sys

functions = {function["name"]: function for function in json.load(open(sys.argv[1]))["functions"]}
main, row, cell, leaf = (functions[name] for name in ("main", "row", "cell", "leaf"))
assert main["total_ns"] >= row["total_ns"] >= cell["total_ns"] >= leaf["total_ns"] > 0
assert leaf["self_ns"] == leaf["total_ns"]
assert cell["self_ns"] == cell["total_ns"] - leaf["total_ns"], (cell, leaf)
assert row["self_ns"] == row["total_ns"] - cell["total_ns"], (row, cell)
assert all(functions[name]["exact"] for name in ("row", "cell", "leaf"))
for row in functions.values():
    if row["exact"]:
        assert row["min_ns"] <= row["p50_ns"] <= row["p90_ns"] <= row["p99_ns"] <= row["max_ns"] <= row["total_ns"], row
PY
    functions_by_time
    # An inferred return lies between two events: a range then, and no number that is none.
    record ranged --time full -- "$PROGRAMS/million" 2000 >/dev/null
    "$TRACECTL" top ranged | grep -E '[0-9] to [0-9.]+ [mun]?s ' >/dev/null
    same 0 "$(q "SELECT count(*) FROM calls WHERE run_id = $(run_id ranged) AND state = 'returned'
        AND (duration_ns IS NOT NULL AND duration_min_ns <> duration_max_ns OR duration_min_ns > duration_max_ns)")"
    "$TRACECTL" --json top ranged -n 0 >"$WORK/ranged.json"
    python3 - "$WORK/ranged.json" <<'PY'
import json, sys

functions = {function["name"]: function for function in json.load(open(sys.argv[1]))["functions"]}
row, leaf = functions["row"], functions["leaf"]
assert leaf["total_ns"] is None and not leaf["exact"] and 0 <= leaf["min_ns"] < leaf["max_ns"], leaf
assert row["min_ns"] >= leaf["min_ns"] and row["self_max_ns"] <= row["max_ns"], (row, leaf)
assert all(leaf[key] is None for key in ("total_ns", "self_ns", "p50_ns", "p90_ns", "p99_ns")), leaf
PY
}

# The run "timed", whose durations are exact: ordered by time, and what SQL says of one function.
functions_by_time() {
    local sort id
    id=$(run_id timed)
    for sort in calls total self p99 max; do
        "$TRACECTL" --json top timed -n 3 --sort "$sort" | python3 -c '
import json, sys

key = {"calls": "calls", "total": "total_ns", "self": "self_ns", "p99": "p99_ns", "max": "max_ns"}[sys.argv[1]]
values = [row[key] for row in json.load(sys.stdin)["functions"] if row[key] is not None]
assert values and values == sorted(values, reverse=True), values' "$sort"
    done
    "$TRACECTL" --json top timed leaf >"$WORK/leaf.json"
    same "$(q "SELECT count(*) || ' ' || CAST(round(median(duration_ns)) AS INTEGER) || ' ' ||
            CAST(round(percentile(duration_ns, 99)) AS INTEGER) || ' ' || max(duration_ns) AS line
            FROM calls WHERE run_id = $id AND name = 'leaf'")" "$(python3 -c '
import json, sys

(row,) = json.load(open(sys.argv[1]))["functions"]
assert row["function"] == "leaf" and row["unplaced"] == 0
assert sum(step["calls"] for step in row["histogram"]) == row["calls"]
print(row["returned"], row["p50_ns"], row["p99_ns"], row["max_ns"])' "$WORK/leaf.json")"
    "$TRACECTL" top timed leaf | grep -E '^ +p99 +[0-9.]+ [num]s$' >/dev/null
    ("$TRACECTL" top timed no_such 2>&1 || true) | grep "no calls of a function 'no_such'" >/dev/null
    ("$TRACECTL" top timed --sort size 2>&1 || true) | grep -- "--sort must be calls, total, self, p99 or max" >/dev/null
}

run_case "40 functions on 8 threads are counted exactly, run $i" forty_is_exact "forty$i"
done
run_case "what may have returned unseen is unknown, all else has returned" inferred_balance forty1
run_case "seq has no gap" sequence_has_no_gap
run_case "counts are exact with return probes" forty_is_exact probed --returns probe
run_case "calls and returns balance with return probes" balance probed
run_case "record --json reports the run" report_is_right
run_case "the command's exit status is stored, and handed on when asked" statuses_are_kept
run_case "a command killed by a signal has status 128 + signal" signal_is_kept
run_case "tags are stored" tags_are_kept
run_case "--functions and --exclude choose" functions_are_chosen
run_case "a stripped program" stripped_program
run_case "a static program" static_program
run_case "threads that come and go are counted exactly" self_counting threads
run_case "coroutines on stacks of their own are counted exactly" self_counting contexts
run_case "a tight program is counted exactly" self_counting million
for time in none anchor full; do
    run_case "--time $time" times_are_kept $time
done
run_case "times of functions" times_of_functions
finish
