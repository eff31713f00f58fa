#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# record --when-behind: programs that call faster than the recorder reads wait for it, or lose calls that are counted.
. "$(dirname "$0")/lib.sh"
needs_capture

field() { # key: of what record has printed last
    json_get "$1" <"$WORK/record.json"
}

dense() { # run's name, calls, options of record: a program of calls alone, in little memory
    local name=$1 calls=$2
    shift 2
    "$TRACECTL" --json record -n "$name" --backend inline --ring-size 256K "$@" -- "$PROGRAMS/million" "$calls" \
        >"$WORK/record.json" 2>"$WORK/program.out"
}

state_of() { # run's name
    "$TRACECTL" --json runs | python3 -c 'import json, sys
print(next(run["complete"] for run in json.load(sys.stdin) if run["name"] == sys.argv[1]))' "$1"
}

nothing_is_lost() {
    dense waits 3000000
    same 3000005 "$(field calls)"
    same 0 "$(field lost)"
    same true "$(field complete)"
    same True "$(python3 -c "print($(field waited_seconds) > 0)")"
    same True "$(state_of waits)"
    "$TRACECTL" show waits | grep '^waiting   threads waited .* s in total for the recorder' >/dev/null
}

losses_are_counted() {
    dense loses 3000000 --when-behind lose
    same 3000005 "$(($(field calls) + $(field lost)))"
    (($(field lost) > 0))
    same false "$(field complete)"
    same False "$(state_of loses)"
}

# A program of many threads that counts its own calls.
as_the_program_says() {
    record counted --backend inline --ring-size 256K -- "$PROGRAMS/threads" | sort >"$WORK/said"
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id counted)")"
    q "SELECT f.name || ' ' || count(*) AS line FROM events JOIN functions f USING (function_id)
       WHERE events.run_id = $(run_id counted) AND kind = 'call' AND f.name NOT LIKE '%@plt' AND f.name != '_start'
       GROUP BY f.name" | sort >"$WORK/recorded"
    diff "$WORK/said" "$WORK/recorded"
}

# Handlers interrupt waits, and wait themselves; a forked child shares the buffers.
interrupted_waits() {
    record alarmed --backend inline --ring-size 128K -- "$PROGRAMS/alarmed" >"$WORK/said"
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id alarmed)")"
    q "SELECT f.name || ' ' || count(*) AS line FROM events JOIN functions f USING (function_id)
       WHERE events.run_id = $(run_id alarmed) AND kind = 'call' AND f.name IN ('leaf', 'handled')
       GROUP BY f.name ORDER BY f.name" >"$WORK/recorded"
    diff "$WORK/said" "$WORK/recorded"
}

begin_long() { # run's name: a program that calls for seconds; sets recorder and target when it has its probes
    "$TRACECTL" --json record -n "$1" --backend inline --ring-size 256K -- "$PROGRAMS/million" 100000000 \
        >"$WORK/record.json" 2>"$WORK/long.err" &
    recorder=$!
    until target=$(pgrep -P "$recorder" -x million) && grep 'memfd:tracectl' "/proc/$target/maps" >/dev/null 2>&1; do
        kill -0 "$recorder"
    done
}

has_ended() { # pid
    ! lives "$1"
}

# A recorder that stands still holds no program up: it ends, which it would not in minutes otherwise.
stopped_recorder() {
    begin_long stopped
    kill -STOP "$recorder"
    wait_until 60 has_ended "$target"
    kill -CONT "$recorder"
    wait "$recorder"
    same 100000005 "$(($(field calls) + $(field lost)))"
    (($(field lost) > 0))
    same 0 "$(field exit_status)"
}

killed_recorder() {
    begin_long killed
    kill -KILL "$recorder"
    wait "$recorder" || true
    wait_until 60 has_ended "$target"
}

# What was recorded up to then is complete.
ends_while_they_wait() {
    dense ended 100000000 --duration 300ms
    same 0 "$(field lost)"
    same true "$(field complete)"
}

run_case "with wait nothing is lost" nothing_is_lost
run_case "with lose every loss is counted" losses_are_counted
run_case "threads wait, and their calls are those that the program says" as_the_program_says
run_case "signals interrupt waits, a child is forked, and nothing is lost" interrupted_waits
run_case "a recorder that stands still holds no program up" stopped_recorder
run_case "nor does one that was killed" killed_recorder
run_case "a recording ends while threads wait" ends_while_they_wait
finish
