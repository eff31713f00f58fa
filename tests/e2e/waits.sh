#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Targets that never answer: memory and programs that a user's program serves. Nothing waits for them; what else is
# recorded is recorded, and nothing is left in it.
. "$(dirname "$0")/lib.sh"
needs_capture

# How many seconds a command may take that has nothing to wait for, on a machine however busy. One that waits for what
# never comes takes longer than any limit.
LIMIT=120

start_served() { # arguments; the process that does not answer is in $hostile
    mkdir -p "$WORK/mounted"
    chmod 755 "$WORK" "$WORK/mounted"
    : >"$WORK/served.out"
    "$PROGRAMS/served" "$@" >"$WORK/served.out" 2>&1 &
    served=$!
    echo "$served" >>"$WORK/pids"
    wait_until 60 grep -q '^ready ' "$WORK/served.out"
    hostile=$(awk '/^ready /{ print $2 }' "$WORK/served.out")
    echo "$hostile" >>"$WORK/pids"
    [[ -d /proc/$hostile ]] || fail "$(cat "$WORK/served.out")"
    "$PROGRAMS/busy" >/dev/null &
    innocent=$!
    echo "$innocent" >>"$WORK/pids"
}

end_served() {
    kill -KILL "$hostile" "$served" "$innocent" 2>/dev/null || true
}

calls_of_innocent() { # run
    q "SELECT coalesce(sum(calls), 0) AS n FROM call_counts c JOIN threads t ON t.run_id = c.run_id AND
        t.label = c.thread JOIN processes p USING (process_id) WHERE c.run_id = $(run_id "$1") AND p.pid = $innocent"
}

recorded_beside() { # run, arguments of served
    local run=$1
    shift
    start_served "$@"
    timeout "$LIMIT" "$TRACECTL" record -n "$run" --budget none --duration 0.5 -p "$innocent,$hostile" 2>"$WORK/err"
    (($(calls_of_innocent "$run") > 0)) || fail "nothing of the other process is recorded: $(cat "$WORK/err")"
    wait_until 60 "$E2E/text_equals_file" "$innocent"
    end_served
}

sampled() { # arguments of served
    start_served "$@"
    timeout "$LIMIT" "$TRACECTL" stat -p "$hostile" --samples 2 >"$WORK/stat.out" 2>&1 || (($? != 124))
    end_served
}

program_is_named() {
    recorded_beside program program "$WORK/mounted" "$PROGRAMS/million"
    grep -q 'is not recorded: .*serves its file system' "$WORK/err" || fail "$(cat "$WORK/err")"
}

# Who gives a memory file our name neither keeps others from being recorded nor is touched.
our_name() {
    local impostor
    start_served impostor
    impostor=$hostile
    "$PROGRAMS/served" plain >"$WORK/plain.out" &
    echo "$!" >>"$WORK/pids"
    wait_until 60 grep -q '^ready ' "$WORK/plain.out"
    innocent=$(awk '/^ready /{ print $2 }' "$WORK/plain.out")
    "$TRACECTL" record -n name --backend inline --no-follow --budget none --duration 0.5 -p "$innocent"
    (($(calls_of_innocent name) > 0))
    # It is recorded itself, too.
    innocent=$impostor
    "$TRACECTL" record -n impostor --backend inline --budget none --duration 0.5 -p "$impostor"
    (($(calls_of_innocent impostor) > 0))
    end_served
}

run_case "a memory file of our name" our_name
run_case "a stack in a file that a user serves" recorded_beside stack stack "$WORK/mounted"
run_case "a stack in a file that a user serves, sampled" sampled stack "$WORK/mounted"
run_case "a stack in memory with a user's fault handler" recorded_beside uffd uffd
run_case "a stack in memory with a user's fault handler, sampled" sampled uffd
run_case "a program that a user serves is named, and not waited for" program_is_named
finish
