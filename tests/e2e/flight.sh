#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# record --flight: the last seconds are kept, each trigger makes a run of them, what is kept is bounded, and kill -9
# of the recorder loses none of it.
. "$(dirname "$0")/lib.sh"
needs_capture
rm -f "$STORE"*

WINDOW=0.02 # minutes: 1.2 s

# A run that begins in the middle: intact, and said to be.
is_flight() { # run, part of its trigger
    local id
    id=$(run_id "$1")
    "$TRACECTL" verify
    "$TRACECTL" show "$1" | grep -E "^flight: trigger  .*$2" >/dev/null
    same 1 "$(q "SELECT count(*) AS n FROM runs WHERE run_id = $id AND ended_ns NOTNULL")"
}

begins_in_the_middle() { # run
    local id
    id=$(run_id "$1")
    "$TRACECTL" show "$1" | grep 'nothing was kept from before' >/dev/null
    (($(q "SELECT sum(count) AS n FROM losses WHERE run_id = $id AND cause LIKE 'before the window%'") > 1000))
}

# The bound is loose: a busy machine flushes late.
at_the_end() {
    record kept --flight "$WINDOW" -- "$PROGRAMS/incident" 300
    is_flight kept 'end: the recording has ended'
    begins_in_the_middle kept
    # 30,000 requests, of which the last 1.5 s are there.
    local id calls
    id=$(run_id kept)
    # What was open when the window began is there, and what is missing around it is counted.
    same 1 "$(q "SELECT count(*) AS n FROM events e JOIN functions f USING (function_id) WHERE run_id = $id
        AND kind = 'call' AND f.name = 'serve' AND depth > 0")"
    calls=$(q "SELECT sum(calls) AS n FROM call_counts WHERE run_id = $id AND name = 'request'")
    ((calls > 100 && calls < 30000))
    same "" "$(find "$WORK" -name '*-flight-*')"
}

crash() {
    record crash --flight "$WINDOW" --flight-on crash -- "$PROGRAMS/incident" 250 crash
    is_flight crash 'crash: process [0-9]* died by SIGSEGV'
    begins_in_the_middle crash
    "$TRACECTL" calls crash 0.0 | grep -E '^ *crash \(' >/dev/null
    same 139 "$(q "SELECT exit_status AS n FROM runs WHERE name = 'crash'")"
}

exit_status() {
    record quiet --flight "$WINDOW" --flight-on exit:nonzero -- "$PROGRAMS/incident" 5
    same 0 "$(q "SELECT count(*) AS n FROM runs WHERE name = 'quiet'")"
    record three --flight "$WINDOW" --flight-on exit:3 -- "$PROGRAMS/incident" 5 exit
    is_flight three 'exit: process [0-9]* ended with status 3'
}

# Waits until the program has been recorded for a while, so that the window is full.
running() { # name, kind, record's options...
    local name=$1 kind=$2
    shift 2
    spawn "$PROGRAMS/incident" 0 "$kind"
    target=$spawned
    spawn "$TRACECTL" --json record -n "$name" -p "$target" --budget none --flight "$WINDOW" "$@" >"$WORK/$name.json" \
        2>"$WORK/$name.err"
    recorder=$spawned
    wait_until 40 window_is_full
}

window_is_full() {
    local window
    window=$(find "$WORK" -name '*-flight-*' ! -name '*-wal' ! -name '*-shm' | head -n 1)
    [[ -n $window ]] && (($("$TRACECTL" -d "$window" query --csv \
        "SELECT count(*) FROM tags WHERE key = 'window: from'" 2>/dev/null | tail -n 1) == 1))
}

committed() { # name
    (($(q "SELECT count(*) AS n FROM runs WHERE name = '$1' AND ended_ns NOTNULL" 2>/dev/null || echo 0) == 1))
}

stop() { # name
    kill -INT "$recorder"
    wait "$recorder" || true
    kill -KILL "$target" 2>/dev/null || true
    cat "$WORK/$1.err"
}

slow_call() {
    running slow slow --flight-on 'slow:^request$:150ms'
    kill -USR2 "$target"
    wait_until 20 committed slow
    stop slow
    is_flight slow 'slow: request took [3-9][0-9][0-9]'
    begins_in_the_middle slow
    local id
    id=$(run_id slow)
    (($(q "SELECT max(duration_max_ns) / 1000000 AS ms FROM calls c JOIN functions f USING (function_id)
        WHERE run_id = $id AND f.name = 'request'") >= 290))
    same slow "$(json_get name <"$WORK/slow.json")"
    same "$id" "$(json_get flight.commits.0.run <"$WORK/slow.json")"
}

called() {
    running rare rare --flight-on 'call:^rare$'
    kill -USR2 "$target"
    wait_until 20 committed rare
    stop rare
    is_flight rare 'call: rare in thread 0.0'
    local id
    id=$(run_id rare)
    same 1 "$(q "SELECT sum(calls) AS n FROM call_counts WHERE run_id = $id AND name = 'rare'")"
}

# SIGUSR1 any time, with the recording going on: two runs that overlap.
asked_for() {
    running asked none --flight-on exit:nonzero
    kill -USR1 "$recorder"
    wait_until 20 committed asked
    kill -USR1 "$recorder"
    wait_until 20 committed asked.2
    kill -0 "$recorder"
    stop asked
    is_flight asked 'asked for'
    is_flight asked.2 'asked for'
    begins_in_the_middle asked.2
    same 2 "$("$E2E/json" get flight.commits <"$WORK/asked.json" | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))')"
    same 0 "$(q "SELECT count(*) AS n FROM losses WHERE cause LIKE 'ring full%'")"
}

child_crashes() {
    running child child --flight-on crash
    kill -USR2 "$target"
    wait_until 20 committed child
    kill -0 "$target"
    stop child
    is_flight child 'crash: process [0-9]* died by SIGSEGV'
}

# The window stays as large as it is, and within its limit, which is said.
bounded() {
    running bounded none --flight-on exit:nonzero --flight-size 4K --time full
    local most=0 size window
    window=$(find "$WORK" -name '*-flight-*' ! -name '*-wal' ! -name '*-shm')
    for _ in $(seq 8); do
        sleep 0.5
        size=$(stat -c %s "$window")
        ((size > most)) && most=$size
    done
    echo "$most bytes"
    ((most < 8 << 20))
    kill -USR1 "$recorder"
    wait_until 20 committed bounded
    stop bounded
    is_flight bounded 'asked for'
    "$TRACECTL" show bounded | grep 'shorter than asked for' >/dev/null
    same true "$(json_get flight.cut <"$WORK/bounded.json")"
}

killed() {
    running killed none --flight-on exit:nonzero
    kill -KILL "$recorder"
    wait "$recorder" || true
    kill -KILL "$target"
    same 0 "$(q "SELECT count(*) AS n FROM runs WHERE name = 'killed'")"
    "$TRACECTL" recover
    is_flight killed 'recovered'
    begins_in_the_middle killed
    same 1 "$(q "SELECT count(*) AS n FROM losses JOIN runs USING (run_id) WHERE name = 'killed' AND cause = 'unfinished'")"
    same "" "$(find "$WORK" -name '*-flight-*')"
}

# Analyses read such runs as others, and call unknown what is not there.
analysed() {
    local format
    "$TRACECTL" calls crash >/dev/null
    "$TRACECTL" top crash >/dev/null
    "$TRACECTL" nlr crash | grep 'before the window' >/dev/null
    for format in chrome folded csv json dot; do
        "$TRACECTL" export crash --format "$format" -o "$WORK/exported.$format"
    done
    "$TRACECTL" --json diff kept crash >"$WORK/diff.json" || true
    json_get unknown <"$WORK/diff.json" | grep 'before the window' >/dev/null
}

usage_error() { # arguments...
    local status=0
    "$TRACECTL" "$@" >/dev/null 2>"$WORK/usage.err" || status=$?
    cat "$WORK/usage.err"
    ((status == 2))
}

wrong_options() {
    usage_error record --flight-on crash -- true
    usage_error record --flight 0 -- true
    usage_error record --flight 1 --flight-on sometimes -- true
    usage_error record --flight 1 --flight-on 'slow:main' -- true
    usage_error record --flight 1 --flight-on 'call:(' -- true
    usage_error record --flight 1 --go -- true
}

state_is() { # state
    "$TRACECTL" --json daemon --status -c "$WORK/daemon.conf" | grep -q "\"state\": \"$1\""
}

daemon() {
    cp "$PROGRAMS/incident" "$WORK/served"
    chmod 600 "$STORE"*
    printf '%s\n' "[daemon]" "store = $STORE" "socket = $WORK/control" "scan = 0.2s" "budget = 1000%" \
        "[target served]" "path = $WORK/served" "flight = 1s" "flight-on = crash slow:^request\$:150ms" >"$WORK/daemon.conf"
    spawn "$TRACECTL" daemon -c "$WORK/daemon.conf" 2>"$WORK/log"
    local daemon=$spawned
    spawn "$WORK/served" 0 crash
    target=$spawned
    wait_until 40 state_is flight
    wait_until 40 window_is_full
    fails_with 3 "$TRACECTL" daemon --commit nobody -c "$WORK/daemon.conf"
    "$TRACECTL" daemon --commit served -c "$WORK/daemon.conf" | grep '^commit requested from 1 flight recorder of target served'
    wait_until 20 committed served
    kill -USR2 "$target"
    wait_until 20 committed served.2
    is_flight served 'asked for'
    is_flight served.2 'crash: process [0-9]* died by SIGSEGV'
    grep 'event=committed target=served run=' "$WORK/log"
    kill -TERM "$daemon"
    wait "$daemon"
    same "" "$(find "$WORK" -name '*-flight-*')"
}

run_case "the last seconds are a run when the recording ends" at_the_end
run_case "a crash is a trigger" crash
run_case "an exit status is a trigger" exit_status
run_case "a call that takes too long is a trigger" slow_call
run_case "a call is a trigger" called
run_case "SIGUSR1 makes runs, and the recording goes on" asked_for
run_case "the crash of a child is a trigger" child_crashes
run_case "the window is bounded" bounded
run_case "kill -9 leaves a window that recover makes a run of" killed
run_case "the daemon's flight recorders make runs" daemon
run_case "analyses read the runs" analysed
run_case "wrong options are refused" wrong_options
finish
