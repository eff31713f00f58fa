#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Whatever looks at calls says, in the same line, how complete they are: show and every analysis.
. "$(dirname "$0")/lib.sh"

needs_capture

rm -f "$STORE"
for name in whole other blind; do # cascade wants events of locks
    record "$name" --sync --functions '^(main|row|cell|leaf)$' -- "$PROGRAMS/million" 20 >/dev/null
done
# A budget of 40 functions; 21 calls are recorded, and three times as many were counted and left out.
sqlite3 "$STORE" "INSERT INTO tags(run_id, key, value) VALUES (3, 'budget: functions', '40');
    INSERT INTO blind(run_id, function_id, from_ns, cause, calls_per_second, calls_missed)
    SELECT 3, function_id, 1000000000, 'budget: limited', 10, 63
    FROM functions WHERE name = 'leaf'"
line='1 of 40 functions not recorded all the time, since 1970-01-01T00:00:01.000Z; 25.00 % of all calls recorded'

# What neither looks at calls of runs nor describes them; what looks at goroutines and locks says itself what it misses.
others=' daemon doctor export fleet gc go help import locks merge pull query record recover rm runs serve ship sql verify '

analyses() {
    local name
    for name in $("$TRACECTL" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
        [[ $others == *" $name "* ]] || echo "$name"
    done
}

arguments() { # analysis, run: a line
    case $1 in
    diff | rank) echo "$1 other $2" ;;
    cascade) echo "$1 --sink main other $2" ;;
    slow) echo "$1 $2 leaf" ;;
    report) echo "$1 $2 -o $WORK/page.html" ;;
    *) echo "$1 $2" ;;
    esac
}

# An analysis may find something (1); it must not fail.
ask() { # options, analysis, run
    local status=0
    # shellcheck disable=SC2046,SC2086 # words are wanted
    "$TRACECTL" $1 $(arguments "$2" "$3") >"$WORK/answer" </dev/null || status=$?
    ((status < 2)) || fail "status $status: $2"
    [[ $1 == --json || $2 != report ]] || mv "$WORK/page.html" "$WORK/answer"
}

in_text() { # analysis
    ask -q "$1" blind
    grep -F "$line" "$WORK/answer" || fail "$1 does not say it"
    ask -q "$1" whole
    lacks -E '^gaps|of all calls recorded' "$WORK/answer"
}

in_json() { # analysis
    ask --json "$1" blind
    python3 - "$WORK/answer" "$line" <<'PY'
import json, sys

items = json.load(open(sys.argv[1]))["completeness"]
item = items[-1]
assert item["text"] == sys.argv[2], item
assert (item["run"], item["functions"], item["complete"], item["blind"], item["percent"]) == (3, 40, 39, 1, 25), item
assert item["missed"] == 3 * item["calls"] > 0 and item["since"].startswith("1970-01-01T00:00:01"), item
for whole in items[:-1]:
    assert (whole["run"], whole["text"], whole["blind"], whole["percent"]) == (2, "", 0, 100), whole
PY
}

some_are_known() {
    same 'calls cascade cluster diff jsm lattice nlr rank report show slow stat top' "$(analyses | sort | paste -sd ' ')"
}

run_case "the analyses are found" some_are_known
for analysis in $(analyses); do
    run_case "$analysis: text" in_text "$analysis"
    run_case "$analysis: JSON" in_json "$analysis"
done
finish
