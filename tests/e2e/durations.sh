#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Times in every view: exact where both ends of a call have one, else ranges or unknown, and never a bound in place of a
# time. The same program is recorded with its returns inferred ("ranged") and with each of them recorded ("exact").
. "$(dirname "$0")/lib.sh"

MILLION=$PROGRAMS/million

recorded() {
    "$TRACECTL" -q record -n ranged --time full -- "$MILLION" 2000 >/dev/null
    "$TRACECTL" -q record -n exact --time full --returns probe -- "$MILLION" 2000 >/dev/null
}

# A leaf's return is inferred from the next event: none of its durations is known.
sql_is_honest() {
    local ranged exact
    ranged=$(run_id ranged) exact=$(run_id exact)
    same 0 "$(q "SELECT count(*) FROM calls WHERE run_id = $ranged AND duration_ns NOTNULL")"
    same 0 "$(q "SELECT count(*) FROM calls WHERE run_id = $ranged AND state = 'returned'
        AND NOT (duration_min_ns >= 0 AND duration_max_ns > duration_min_ns)")"
    same 0 "$(q "SELECT count(*) FROM calls WHERE run_id = $exact AND state = 'returned' AND name = 'leaf'
        AND NOT (duration_ns = duration_min_ns AND duration_ns = duration_max_ns)")"
    same 0 "$(q "SELECT count(*) FROM calls c JOIN functions f USING (function_id)
        WHERE c.name IS NOT coalesce(f.demangled, f.name)")"
    same "" "$(q "SELECT median(duration_ns) FROM calls WHERE run_id = $ranged")"
}

# Of top: JSON has null for what is no time, and its bounds hold the truth of SQL.
top_is_honest() {
    local sort
    for sort in calls total self p99 max; do
        "$TRACECTL" --json top ranged -n 0 --sort "$sort" >"$WORK/top.json"
        python3 - "$WORK/top.json" <<'PY'
import json, sys

TIMES = ("total_ns", "self_ns", "p50_ns", "p90_ns", "p99_ns")
rows = json.load(open(sys.argv[1]))["functions"]
assert {"main", "row", "cell", "leaf"} <= {row["function"] for row in rows}
for row in rows:
    assert not row["exact"] and all(row[key] is None for key in TIMES), row
    if row["name"] in ("row", "cell", "leaf"):
        assert 0 <= row["min_ns"] < row["max_ns"] and row["min_ns"] == row["total_min_ns"], row
        assert row["self_min_ns"] <= row["self_max_ns"] <= row["max_ns"], row
PY
    done
    same 0 "$("$TRACECTL" top ranged -n 0 | awk '$NF ~ /^(main|row|cell|leaf)$/ && !/ to | over | \? / { n++ } END { print n + 0 }')"
    same 7 "$("$TRACECTL" top ranged leaf | grep -cE '^  (total|self|shortest|p50|p90|p99|longest) .* to ')"
    same 0 "$("$TRACECTL" top exact leaf | grep -cE '^  .*( to |over|\?)' || true)"
}

# The slowest calls: those of SQL, with callers and callees, and no bound in place of a time.
slow_is_honest() {
    "$TRACECTL" --json slow exact row -n 3 --depth 2 >"$WORK/exact.json"
    "$TRACECTL" --json slow ranged cell -n 5 >"$WORK/ranged.json"
    same "$(q "SELECT duration_ns FROM calls WHERE run_id = $(run_id exact) AND name = 'row' AND state = 'returned'
            ORDER BY 1 DESC LIMIT 3")" \
        "$(python3 -c 'import json, sys; print(*(c["duration_ns"] for c in json.load(sys.stdin)["calls"]), sep="\n")' <"$WORK/exact.json")"
    python3 - "$WORK/exact.json" "$WORK/ranged.json" <<'PY'
import json, sys

exact, ranged = (json.load(open(path)) for path in sys.argv[1:])
for call in exact["calls"]:
    tree = call["tree"]
    assert call["callers"][0] == "main" and call["losses"] == 0, call
    assert tree["function"] == "row" and tree["calls"] == 1 and tree["total_ns"] == call["duration_ns"], call
    (cell,) = tree["callees"]
    assert tree["total_ns"] == tree["self_ns"] + cell["total_ns"], call
    assert [below["function"] for below in cell["callees"]] == ["leaf"] and not cell["callees"][0]["callees"], call
assert len(ranged["calls"]) == 5 < ranged["returned"]
for call in ranged["calls"]:
    assert call["duration_ns"] is None and call["duration_min_ns"] < call["duration_max_ns"], call
    assert call["tree"]["total_ns"] is None and call["callers"][0] == "row", call
PY
    same 5 "$("$TRACECTL" slow ranged cell | grep -cE '^[1-5]\. .* to .*, thread 0\.0, ')"
    same 5 "$("$TRACECTL" slow ranged cell | grep -c '^   called by row < main')"
    same 0 "$("$TRACECTL" slow ranged cell | awk '/^ / && $NF ~ /^(cell|leaf)$/ && !/ to | over | \? / { n++ } END { print n + 0 }')"
    fails_with 3 "$TRACECTL" slow exact no_such_function
}

# Lines of `calls`: all of SQL's, with ranges, and only what the filters leave.
calls_are_honest() {
    local id
    id=$(run_id ranged)
    "$TRACECTL" calls ranged 0.0 --durations >"$WORK/list"
    same "$(q "SELECT count(*) FROM calls WHERE run_id = $id")" "$(($(wc -l <"$WORK/list") - 1))"
    same 0 "$(awk '$NF ~ /^(main|row|cell|leaf)$/ && !/ to | over | \? / { n++ } END { print n + 0 }' "$WORK/list")"
    "$TRACECTL" --json calls ranged --function leaf >"$WORK/leaf.json"
    "$TRACECTL" --json calls exact --function leaf --min-time 1us --depth 5 >"$WORK/exact.json"
    python3 - "$WORK/leaf.json" "$WORK/exact.json" <<'PY'
import json, sys

ranged, exact = ([call for thread in json.load(open(path))["threads"] for call in thread["calls"]] for path in sys.argv[1:])
assert len(ranged) == 1360 and {call["name"] for call in ranged + exact} == {"leaf"}
assert all(call["duration_ns"] is None and call["duration_min_ns"] < call["duration_max_ns"] for call in ranged)
assert all(call["duration_ns"] >= 1000 for call in exact) and all(call["depth"] < 5 for call in exact)
assert [call["start_ns"] for call in ranged] == sorted(call["start_ns"] for call in ranged)
PY
    same "$(q "SELECT count(*) FROM calls c JOIN runs r USING (run_id) WHERE run_id = $id AND depth < 3
            AND c.ns BETWEEN r.started_ns + 1000 AND r.started_ns + 60000000000")" \
        "$(($("$TRACECTL" calls ranged 0.0 --depth 3 --from 1us --to 60s | wc -l) - 1))"
}

# A time in an export is a place, and says so; csv and json have the interval of each event.
exports_are_honest() {
    "$TRACECTL" -q export --format json ranged -o "$WORK/ranged.json"
    python3 - "$WORK/ranged.json" <<'PY'
import json, sys

events = [event for thread in json.load(open(sys.argv[1]))["threads"] for event in thread["events"]]
returns = [event for event in events if event["kind"] == "return"]
assert returns and all(event["ns_error"] > 0 for event in returns)
PY
}

# Ranges that overlap are no change; a bound stands in no place of a time.
diff_is_honest() {
    "$TRACECTL" -q record -n again --time full -- "$MILLION" 2000 >/dev/null
    "$TRACECTL" -q record -n longer --time full -- "$MILLION" 4000 >/dev/null
    ("$TRACECTL" --json diff --functions ranged again || true) >"$WORK/same.json"
    ("$TRACECTL" --json diff --functions ranged longer || true) >"$WORK/more.json"
    python3 - "$WORK/same.json" "$WORK/more.json" <<'PY'
import json, sys

same, more = ({row["function"]: row for row in json.load(open(path))["functions"]} for path in sys.argv[1:])
for rows in (same, more):
    for side in [row[side] for row in rows.values() for side in ("normal", "faulty") if row[side]["calls"]]:
        assert side["total_ns"] is side["self_ns"] is side["p99_ns"] is None, side
assert same["leaf"]["normal"]["calls"] == same["leaf"]["faulty"]["calls"] == 1360, same["leaf"]
assert more["leaf"]["change"] > 0 and more["leaf"]["faulty"]["calls"] > 1360, more["leaf"]
PY
    ("$TRACECTL" diff --functions ranged longer || true) >"$WORK/more"
    grep -E '^ *1,360 -> [0-9,]+ .* to .* -> .* to .*  leaf$' "$WORK/more" >/dev/null
    (($(wc -l <"$WORK/more") <= 40))
}

# Functions that changed lead the comparison of two runs, with ranges as ranges; the threads follow.
diff_leads_with_times() {
    ("$TRACECTL" diff ranged longer || true) >"$WORK/lead"
    ("$TRACECTL" --json diff ranged longer || true) >"$WORK/lead.json"
    sed -n 1p "$WORK/lead" | grep -E '^[0-9]+ of [0-9]+ functions changed in calls or times'
    sed -n 2p "$WORK/lead" | grep -E '^ *CALLS +TIME +SELF +P99 +FUNCTION$'
    grep -E '^ *1,360 -> [0-9,]+ .* to .* -> .* to .*  leaf$' "$WORK/lead"
    grep -E '^1 of 1 thread differs' "$WORK/lead"
    (($(grep -n '^1 of 1 thread differs' "$WORK/lead" | cut -d: -f1) <= 17)) || fail "the table is too long"
    python3 - "$WORK/lead.json" <<'PY'
import json, sys

lead = json.load(open(sys.argv[1]))
assert lead["timed"] and {"row", "cell", "leaf"} <= {function["function"] for function in lead["functions"]}, lead
assert all(function["change"] > 0 for function in lead["functions"])
assert all(function["faulty"]["total_ns"] is None for function in lead["functions"] if function["function"] == "leaf")
PY
}

run_case "two runs are recorded" recorded
run_case "sql: a range is no duration" sql_is_honest
run_case "top: ranges are null, and written as ranges" top_is_honest
run_case "calls: ranges are written as ranges, and filters" calls_are_honest
run_case "slow: the slowest calls, with their callers and callees" slow_is_honest
run_case "diff: ranges are compared as ranges" diff_is_honest
run_case "diff: functions that changed come first" diff_leads_with_times
run_case "export: events have their intervals" exports_are_honest
finish
