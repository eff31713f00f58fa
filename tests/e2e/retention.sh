#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# gc by size, age and number, with the file measured; recover on the command line; two recorders on one store; a copy
# of the file alone.
. "$(dirname "$0")/lib.sh"

mkdir "$WORK/traces"
"$E2E/u16" random "$WORK/traces" 0.0 300000 7

new_store() { # runs...
    rm -f "$STORE"*
    for name in "$@"; do
        "$TRACECTL" -q import --format u16 "$WORK/traces" -n "$name"
    done
}

runs() {
    q "SELECT group_concat(name) AS names FROM (SELECT name FROM runs ORDER BY run_id)"
}

size() {
    stat -c %s "$STORE"
}

by_number() {
    local before
    new_store a b c d
    before=$(size)
    "$TRACECTL" gc --keep-runs 2
    same c,d "$(runs)"
    (($(size) < before * 3 / 4)) || fail "$before bytes before, $(size) after"
    [[ ! -s $STORE-wal ]] || fail "the log has not been emptied"
    "$TRACECTL" verify
}

by_size() {
    local before
    new_store a b c d
    before=$(size)
    same 0 "$("$TRACECTL" --json gc --keep-size 1T | json_get deleted_runs)"
    same "$before" "$(size)"
    "$TRACECTL" --json gc --keep-size $((before * 7 / 10)) >"$WORK/gc.json"
    same "$(size)" "$(json_get bytes_after <"$WORK/gc.json")"
    (($(size) <= before * 7 / 10)) || fail "$before bytes before, $(size) after"
    same d "$(runs | grep -o 'd$')"
    lacks -q '^a' <(runs)
    "$TRACECTL" verify
}

by_age() {
    new_store a b
    sqlite3 "$STORE" "UPDATE runs SET ended_ns = ended_ns - 8 * 86400 * 1000000000 WHERE name = 'a'"
    "$TRACECTL" gc --keep-age 9d
    same a,b "$(runs)"
    "$TRACECTL" gc --keep-age 1w
    same b "$(runs)"
    "$TRACECTL" verify
}

nonsense_is_refused() {
    local words status
    for words in "--keep-size 0" "--keep-size 10X" "--keep-age 3y" "--keep-age -1d" "--keep-runs many" "a"; do
        status=0
        # shellcheck disable=SC2086 # two words
        "$TRACECTL" gc $words 2>"$WORK/err" || status=$?
        cat "$WORK/err"
        same 2 "$status"
    done
    same b "$(runs)"
}

salvage() {
    local segment status=0
    new_store a b
    # A page in the middle of a segment's payload, found by what is in it.
    segment=$(sqlite3 "$STORE" "SELECT hex(substr(data, 30000, 16)) FROM segments WHERE run_id = 1 ORDER BY 1 LIMIT 1")
    python3 - "$STORE" "$segment" <<'SCRIPT'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = data.index(bytes.fromhex(sys.argv[2]))
data[at] ^= 4
open(sys.argv[1], "wb").write(data)
SCRIPT
    "$TRACECTL" verify || status=$?
    same 1 "$status"
    status=0
    "$TRACECTL" --json recover -o "$WORK/new.db" >"$WORK/recover.json" || status=$?
    cat "$WORK/recover.json"
    same 1 "$status"
    same 1 "$(json_get lost_segments <"$WORK/recover.json")"
    "$TRACECTL" -d "$WORK/new.db" verify
    same "2 $(json_get lost_events <"$WORK/recover.json")" "$("$TRACECTL" -d "$WORK/new.db" query --json \
        "SELECT (SELECT count(*) FROM runs) || ' ' || sum(count) AS line FROM losses" | "$E2E/json" rows)"
    fails_with 3 "$TRACECTL" recover -o "$WORK/new.db"
}

# What is in the log is missing in a copy of the file alone, and nothing else; while a run goes on.
copy_of_the_file_alone() {
    rm -f "$STORE"*
    record first -- "$PROGRAMS/million" 10 >/dev/null
    "$PROGRAMS/busy" 20000 2 >"$WORK/busy.out" &
    local busy=$!
    echo "$busy" >>"$WORK/pids"
    spawn "$TRACECTL" -q record -n second -p "$busy" --budget none --flush-interval 0.05
    wait_until 20 has_events second
    cp "$STORE" "$WORK/copy.db"
    "$TRACECTL" -d "$WORK/copy.db" verify
    same 1 "$("$TRACECTL" -d "$WORK/copy.db" query --json "SELECT count(*) AS n FROM runs WHERE name = 'first' AND
        ended_ns NOTNULL" | "$E2E/json" rows)"
    # Nothing may take away the run that is being recorded.
    "$TRACECTL" gc --keep-runs 1
    "$TRACECTL" recover
    same second "$(runs)"
    kill -INT "$spawned"
    wait "$spawned"
    same 1 "$(q "SELECT ended_ns NOTNULL AS ended FROM runs WHERE name = 'second'")"
    "$TRACECTL" verify
    kill "$busy"
}

has_events() { # name
    (($(q "SELECT count(*) AS n FROM events e JOIN runs r USING (run_id) WHERE r.name = '$1'") > 0))
}

# None of those that make a store at the same moment finds half of one.
made_at_once() {
    local pid pids
    for ((round = 0; round < 5; round++)); do
        rm -f "$STORE"*
        pids=()
        for name in a b c d; do
            "$TRACECTL" -q import --format u16 "$WORK/traces" -n "$name" &
            pids+=($!)
        done
        for pid in "${pids[@]}"; do
            wait "$pid"
        done
        same 4 "$(q "SELECT count(*) AS n FROM runs WHERE ended_ns NOTNULL")"
        same 2 "$(sqlite3 "$STORE" 'PRAGMA auto_vacuum')"
    done
    "$TRACECTL" verify
}

two_recorders() {
    local first
    rm -f "$STORE"*
    "$TRACECTL" -q record -n one --flush-interval 0.02 -- "$PROGRAMS/forty" 40 >"$WORK/one" &
    first=$!
    record two --flush-interval 0.02 -- "$PROGRAMS/forty" 40 >"$WORK/two"
    wait "$first"
    cmp "$WORK/one" "$WORK/two"
    same 2 "$(q "SELECT count(*) AS n FROM runs WHERE ended_ns NOTNULL")"
    same "$(counts_by_thread "$(run_id one)" | sort)" "$(counts_by_thread "$(run_id two)" | sort)"
    "$TRACECTL" verify
}

run_case "gc by the number of runs" by_number
run_case "gc by size" by_size
run_case "gc by age" by_age
run_case "gc refuses nonsense" nonsense_is_refused
run_case "a store made by four at once" made_at_once
run_case "a damaged segment is found, and the rest salvaged" salvage
needs_capture
run_case "a copy of the file alone" copy_of_the_file_alone
run_case "two recorders on one store" two_recorders
finish
