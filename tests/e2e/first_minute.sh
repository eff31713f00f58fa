#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What somebody sees who tries tracectl on a service: progress, what was excluded, stacks without an order.
. "$(dirname "$0")/lib.sh"
needs_capture

start_busy() {
    spawn "$PROGRAMS/busy" 1000 >"$WORK/busy.out"
    busy=$spawned
    wait_until 10 grep -q beat "$WORK/busy.out"
}

# What a command prints on a terminal, each part on a line of its own.
on_terminal() { # command, arguments...
    local words
    printf -v words '%q ' "$@"
    TERM=vt100 script -qec "$words" /dev/null </dev/null | tr '\r' '\n' | sed 's/\x1b\[K//g'
}

# The first thing is a line that says what is being done; the line is gone when the result is printed.
progress_of_a_service() {
    start_busy
    on_terminal "$TRACECTL" record -n service -p "$busy" --duration 0.7 >"$WORK/seen"
    cat "$WORK/seen"
    same 'tracectl: loading the recorder into the kernel' "$(grep -m 1 . "$WORK/seen")"
    grep -q "^tracectl: reading the program's functions" "$WORK/seen"
    grep -q '^tracectl: recording' "$WORK/seen"
    grep -q "^tracectl: run [0-9]* 'service': " "$WORK/seen"
    kill "$busy"
}

# Between the first instruction of a command and its last, the terminal is the command's.
progress_of_a_command() {
    on_terminal "$TRACECTL" record -n command -- "$PROGRAMS/million" 10 >"$WORK/seen"
    same 'tracectl: loading the recorder into the kernel' "$(grep -m 1 . "$WORK/seen")"
    lacks '^tracectl: recording' "$WORK/seen"
}

silent_otherwise() {
    start_busy
    same "" "$(on_terminal "$TRACECTL" -q record -p "$busy" --duration 0.1)"
    "$TRACECTL" record -n quiet -p "$busy" --duration 0.1 2>"$WORK/seen"
    lacks recording "$WORK/seen"
    "$TRACECTL" -v record -n steps -p "$busy" --duration 0.1 2>"$WORK/seen"
    grep -qE '^tracectl: [0-9.]+ s: placing probes$' "$WORK/seen"
    grep -qE '^tracectl: [0-9.]+ s: recording$' "$WORK/seen"
    lacks "$(printf '\033')" "$WORK/seen"
    kill "$busy"
}

# A function that was excluded all the time, and one for half a second, lead by their rates.
excluded_lead() {
    mkdir "$WORK/traces"
    "$E2E/u16" make "$WORK/traces" 0.0 main '500*(' often - rare - ')' -
    "$TRACECTL" -q -d "$WORK/made.db" import --format u16 "$WORK/traces" -n made
    sqlite3 "$WORK/made.db" "UPDATE runs SET ended_ns = started_ns + 2000000000;
        INSERT INTO blind SELECT 1, function_id, started_ns, NULL, 'budget: no probe', 1000, NULL FROM functions, runs
            WHERE functions.name = 'rare';
        INSERT INTO blind SELECT 1, function_id, started_ns, started_ns + 500000000, 'budget: no probe', 10000, NULL
            FROM functions, runs WHERE functions.name = 'main'"
    "$TRACECTL" -d "$WORK/made.db" top made | tee "$WORK/top"
    same '1 ? 1 main (not recorded: ~5,000 calls more, ~10,000/s)' "$(sed -n 2p "$WORK/top" | tr -s ' ' | sed 's/^ //')"
    same '500 ? 1 rare (not recorded: ~2,000 calls more, ~1,000/s)' "$(sed -n 3p "$WORK/top" | tr -s ' ' | sed 's/^ //')"
    grep -qE '^ *500 .* often$' "$WORK/top"
    "$TRACECTL" -d "$WORK/made.db" --json top made >"$WORK/top.json"
    same 5000.0 "$(json_get functions.0.missed_calls <"$WORK/top.json")"
    same false "$("$TRACECTL" -d "$WORK/made.db" --json runs | json_get 0.complete)"
}

# Threads with different tasks are not behind each other; what they do is shown.
stacks_of_a_service() {
    spawn sh -c 'sleep 100 & sleep 100 & sleep 100; wait'
    all_sleep() { (($("$TRACECTL" stat -C -p "$spawned" | tee "$WORK/stat" | grep -c '(sleep) pid [0-9]') > 0)); }
    wait_until 20 all_sleep
    cat "$WORK/stat"
    same 'no order: the processes are not ranks of one job' "$(head -n 1 "$WORK/stat")"
    grep -q '^    .*nanosleep' "$WORK/stat"
    same "" "$("$TRACECTL" --json stat -C -p "$spawned" | json_get behind)"
}

# The go command itself is not what somebody wants to check.
go_test_is_refused() {
    ln -s /bin/true "$WORK/go"
    local status=0
    "$TRACECTL" go check -- "$WORK/go" test -run Leak ./pool 2>"$WORK/why" || status=$?
    same 2 "$status"
    cat "$WORK/why"
    grep -q "use go test -exec 'tracectl go check --' -run Leak ./pool" "$WORK/why"
    status=0
    "$TRACECTL" go explore -- "$WORK/go" run 2>"$WORK/why" || status=$?
    same 2 "$status"
    grep -q "use go run -exec 'tracectl go explore --' \." "$WORK/why"
}

run_case "progress of a service's recording" progress_of_a_service
run_case "progress of a command's" progress_of_a_command
run_case "silent with -q, and where no terminal is; steps with -v" silent_otherwise
run_case "what was excluded leads the list of functions" excluded_lead
run_case "the stacks of a service" stacks_of_a_service
run_case "go check -- go test names the command to use" go_test_is_refused
finish
