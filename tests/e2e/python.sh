#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The Python module: it gives what the commands print, and their errors.
. "$(dirname "$0")/lib.sh"

mkdir "$WORK/traces" "$WORK/other"
"$E2E/u16" make "$WORK/traces" 0.0 main '500*(' a b - - c - ')' -
"$E2E/u16" make "$WORK/other" 0.0 main '400*(' a b - - d - ')' -
"$TRACECTL" -q import --format u16 "$WORK/traces" -n good
"$TRACECTL" -q import --format u16 "$WORK/other" -n bad
export PYTHONPATH=$ROOT/tools/python PYTHONDONTWRITEBYTECODE=1

python() { # statements; `store` is the store
    python3 -c 'import sys, tracectl
store = tracectl.open(sys.argv[1])
exec(sys.argv[2])' "$STORE" "$1"
}

rows() {
    same "['good', 'bad']" "$(python 'print([run["name"] for run in store.runs()])')"
    same "[('a', 500), ('b', 500), ('c', 500), ('main', 1)]" \
        "$(python 'print(sorted((row["name"], row["calls"]) for row in store.top("good")))')"
    same "[{'n': 2}]" "$(python 'print(store.query("SELECT count(*) AS n FROM runs"))')"
    same "good 1" "$(python 'print(store.show("good")["name"], store.show("good")["run"])')"
}

calls() {
    same "1501 [('main', 0), ('a', 1), ('b', 2), ('c', 1)]" "$(python 'calls = store.calls("good", "0.0")
first = calls[0]["depth"]
print(len(calls), [(call["name"], call["depth"] - first) for call in calls[:4]])')"
    same "1501 0" "$(python 'print(len(store.calls("good")), len(store.calls("good", "9.9")))')"
    # A label is a value, never a part of the statement.
    same "0" "$(python "print(len(store.calls('good', \"x' OR '1'='1\")))")"
}

differences() {
    same "$("$TRACECTL" --json diff good bad | json_get suspects)" \
        "$(python 'import json; print(json.dumps(store.diff("good", "bad")))' | json_get suspects)"
}

errors() {
    python 'try:
    store.top("no_such_run")
except tracectl.Error as error:
    print(error)' >"$WORK/error"
    grep -qE '^tracectl: .*no_such_run' "$WORK/error"
    python 'try:
    store.query("DELETE FROM runs")
except tracectl.Error as error:
    print(error)' >"$WORK/error"
    grep -q '^tracectl: ' "$WORK/error"
    same 2 "$(q "SELECT count(*) AS n FROM runs")"
    python 'try:
    tracectl.open(sys.argv[1], "/no/such/tracectl").runs()
except tracectl.Error as error:
    print(error)' | grep -q 'cannot run /no/such/tracectl'
}

# What pandas is given; pandas itself need not be here.
data_frames() {
    mkdir -p "$WORK/modules"
    cat >"$WORK/modules/pandas.py" <<'END'
class DataFrame:
    @staticmethod
    def from_records(rows):
        return type(rows) is list, len(rows), sorted(rows[0])
END
    PYTHONPATH=$WORK/modules:$PYTHONPATH python 'print(store.query("SELECT 1 AS one, 2 AS two").to_pandas())' >"$WORK/frame"
    same "(True, 1, ['one', 'two'])" "$(cat "$WORK/frame")"
}

run_case "runs, top, query, show" rows
run_case "calls" calls
run_case "diff" differences
run_case "errors are tracectl's" errors
run_case "rows as data frames" data_frames
finish
