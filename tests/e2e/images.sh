#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Which images and functions are probed, by which sites, and where calls come from.
. "$(dirname "$0")/lib.sh"
needs_capture

calls_of() { # run, function...
    q "SELECT coalesce(sum(calls), 0) AS n FROM call_counts WHERE run_id = $(run_id "$1") AND name = '$2'"
}

nothing_lost() {
    same 0 "$(q "SELECT count(*) AS n FROM losses WHERE run_id = $(run_id "$1")")"
}

libraries() { # run, options...
    local run=$1
    shift
    "$TRACECTL" record -n "$run" "$@" -- "$PROGRAMS/call_lines" >"$WORK/$run.out"
    nothing_lost "$run"
    same 41 "$(calls_of "$run" cbrt)"
}

main_only() {
    "$TRACECTL" record -n main -- "$PROGRAMS/call_lines" >/dev/null
    same 41 "$(calls_of main called)"
    same 0 "$(calls_of main cbrt)"
    same 1 "$(q "SELECT count(DISTINCT i.path) AS n FROM call_counts c JOIN functions f USING (function_id)
        JOIN images i USING (image_id) WHERE c.run_id = $(run_id main)")"
}

one_library() {
    libraries maths --images '*libm.so*'
    same 0 "$(calls_of maths called)"
}

all_libraries() {
    libraries all --images all
    same 41 "$(calls_of all called)"
    same 7 "$(calls_of all crypt)" # loaded by dlopen
    same library "$(q "SELECT DISTINCT kind FROM images WHERE path LIKE '%libm.so%' OR path LIKE '%libm-%'")"
}

# Children that inherit a library which others map, too: all of them, all of its calls.
children_of_libraries() {
    "$TRACECTL" record -n forked --images 'main,libc.so.6' -- "$PROGRAMS/forks" >"$WORK/forked.out"
    "$PROGRAMS/forks" >"$WORK/plain.out"
    cmp "$WORK/forked.out" "$WORK/plain.out"
}

# The kernel ties probes of one process to its main thread, whose place another one takes when it executes a program.
programs_of_threads() { # run, options...
    local run=$1
    shift
    "$TRACECTL" record -n "$run" "$@" -- "$WORK/births" >/dev/null
    nothing_lost "$run"
    same 55 "$(calls_of "$run" work_executed)"
}

program_that_others_map() {
    local holder
    cp "$PROGRAMS/births" "$WORK/births"
    spawn python3 -c 'import mmap, sys, time
with open(sys.argv[1], "rb") as file:
    held = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    time.sleep(600)' "$WORK/births"
    holder=$spawned
    wait_until 60 grep -q "$WORK/births" "/proc/$holder/maps"
    programs_of_threads mapped
    kill -KILL "$holder"
}

libraries_of_threads_programs() {
    cp "$PROGRAMS/births" "$WORK/births"
    programs_of_threads libraries --images all
    same 1 "$(q "SELECT sum(calls) AS n FROM call_counts WHERE run_id = $(run_id libraries) AND name = 'exit'
        AND thread = '5.1'")"
}

lines_of_calls() {
    "$TRACECTL" record -n lines --call-sites -- "$PROGRAMS/call_lines" >"$WORK/lines.out"
    q "SELECT line || ' ' || count(*) AS n FROM event_sites WHERE run_id = $(run_id lines) AND name = 'called'
        AND caller = 'calls' AND file LIKE '%call_lines.c' GROUP BY line ORDER BY line" >"$WORK/lines.got"
    diff "$WORK/lines.got" "$WORK/lines.out"
}

sources() {
    "$TRACECTL" record -n source --source 'programs/call_lines.c' -- "$PROGRAMS/call_lines" >/dev/null
    same "called,calls,main" "$(q "SELECT group_concat(name, ',') AS n FROM (SELECT DISTINCT name FROM call_counts
        WHERE run_id = $(run_id source) ORDER BY name)")"
    fails_with 3 "$TRACECTL" record --source 'no/such/*' -- "$PROGRAMS/call_lines"
}

stripped() {
    local address
    "$TRACECTL" record -n named -- "$PROGRAMS/million" 100 >/dev/null
    "$TRACECTL" record -n stripped -- "$PROGRAMS/million_stripped" 100 >/dev/null
    address=$(nm "$PROGRAMS/million" | awk '$3 == "leaf" { sub(/^0+/, "", $1); print $1 }')
    same "$(calls_of named leaf)" "$(calls_of stripped "million_stripped+0x$address")"
}

# The same calls in every mode.
mode_of_returns() { # mode
    "$TRACECTL" record -n "forty-$1" --returns "$1" -- "$PROGRAMS/forty" >"$WORK/forty.out"
    q "SELECT name || ' ' || sum(calls) AS n FROM call_counts WHERE run_id = $(run_id "forty-$1") GROUP BY name
        ORDER BY name" >"$WORK/forty-$1.got"
    [[ -s $WORK/forty-$1.got ]]
    diff "$WORK/forty-auto.got" "$WORK/forty-$1.got"
    nothing_lost "forty-$1"
}

no_returns_at_all() {
    same none "$(q "SELECT DISTINCT returns FROM threads WHERE run_id = $(run_id forty-none)")"
    same 0 "$(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id forty-none) AND kind = 'return'")"
}

dry_run() {
    rm -f "$WORK/made"
    "$TRACECTL" --json record --dry-run -- "$PROGRAMS/million" 100 >"$WORK/plan.json"
    same "$PROGRAMS/million" "$(realpath "$(json_get 0.image <"$WORK/plan.json")")"
    # Each function is in the plan: probed, or with the reason why not.
    python3 - "$WORK/plan.json" <<'PY'
import json, sys
(image,) = json.load(open(sys.argv[1]))
names = {probe["function"] for probe in image["plan"]}
assert {"main", "leaf"} <= names, names
assert image["seen"] == len({probe["address"] for probe in image["plan"]}), image["seen"]
assert image["wanted"] == image["seen"] + len(image["not_probed"])
assert all(probe["class"] in ("inline", "emulated", "single-stepped") and probe["cost_ns"] > 0 for probe in image["plan"])
assert all(refused["reason"] for refused in image["not_probed"])
PY
    "$TRACECTL" -q record --dry-run --images all -- touch "$WORK/made" >"$WORK/plan"
    grep -q 'libc.so.6: ' "$WORK/plan"
    [[ ! -e $WORK/made ]]
}

process_tree() {
    spawn bash -c "'$PROGRAMS/busy' & '$PROGRAMS/busy' & wait"
    local parent=$spawned children
    wait_until 10 bash -c "[[ \$(pgrep -c -P $parent) == 2 ]]"
    children=$(pgrep -P "$parent" | sort -n | paste -sd,)
    "$TRACECTL" record -n tree --duration 0.5 -p "$parent" --budget none >/dev/null
    same "$children" "$(q "SELECT group_concat(pid) AS n FROM (SELECT DISTINCT pid FROM processes
        WHERE run_id = $(run_id tree) AND exe LIKE '%busy' ORDER BY pid)")"
    "$TRACECTL" record -n two --duration 0.5 -p "$children" --budget none >/dev/null
    same 2 "$(q "SELECT count(*) AS n FROM processes WHERE run_id = $(run_id two)")"
    pkill -KILL -P "$parent"
}

# A library that comes and goes: one that has gone when it is opened is no reason to record nothing.
library_comes_and_goes() {
    "$PROGRAMS/reloads" >"$WORK/reloads.out" &
    local target=$!
    echo "$target" >>"$WORK/pids"
    wait_until 60 grep -q ready "$WORK/reloads.out"
    for i in 1 2 3; do
        "$TRACECTL" record -n "reloads$i" --images 'main,*libcrypt*' --duration 0.1 -p "$target" >/dev/null
    done
    kill -KILL "$target"
    (($(q "SELECT coalesce(sum(calls), 0) AS n FROM call_counts WHERE name = 'crypt'") > 0))
}

run_case "the program alone" main_only
run_case "one library" one_library
run_case "all libraries, dlopen'ed ones too" all_libraries
run_case "children of a process with probes of its own" children_of_libraries
run_case "programs that threads execute, which others map" program_that_others_map
run_case "programs that threads execute, and their libraries" libraries_of_threads_programs
run_case "lines that calls come from" lines_of_calls
run_case "source files" sources
run_case "a stripped program" stripped
for mode in auto infer probe none sites; do
    run_case "--returns $mode" mode_of_returns "$mode"
done
run_case "calls only" no_returns_at_all
run_case "--dry-run" dry_run
run_case "process trees, several processes" process_tree
run_case "a library that comes and goes" library_comes_and_goes
run_case "nothing is damaged" "$TRACECTL" verify
finish
