#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# top -p and top -c: what runs is counted, nothing is stored, and nothing is left behind.
. "$(dirname "$0")/lib.sh"
needs_capture

export TMPDIR=$WORK
rm -f "$STORE"

start_busy() {
    spawn "$PROGRAMS/busy" "$@" >"$WORK/busy.out"
    wait_until 10 grep -q beat "$WORK/busy.out"
}

end_busy() { # pid
    text_is_clean "$1"
    kill -TERM "$1"
    wait "$1" || fail "busy ended with status $?"
    grep -q '^unharmed' "$WORK/busy.out"
}

nothing_is_left() {
    [[ ! -e $STORE ]]
    same "" "$(find "$WORK" -name 'tracectl-top*')"
}

# Ends a top that was started with spawn.
end_top() { # pid
    kill -INT "$1"
    wait "$1" || fail "top ended with status $?"
}

# Three functions are called equally often. What looks hot in the beginning is counted a little later.
counts() {
    local busy
    start_busy 1000
    busy=$spawned
    spawn "$TRACECTL" --json top -p "$busy" --delay 0.5 --functions '^(both|plus_one|plus_two)$' >"$WORK/top.json"
    all_counted() { tail -n 1 "$WORK/top.json" | grep -qE '"functions":3,.*"out":0'; }
    wait_until 30 all_counted
    sleep 1.2
    end_top "$spawned"
    python3 - "$WORK/top.json" "$busy" <<'PY'
import json, sys

look = [json.loads(line) for line in open(sys.argv[1])][-1]
assert look["title"] == f"pid {sys.argv[2]}"
assert look["budget"]["percent"] == 5 and look["budget"]["functions"] == 3 and look["budget"]["out"] == 0, look
rates = {function["name"]: function["calls_per_second"] for function in look["functions"]}
assert sorted(rates) == ["both", "plus_one", "plus_two"], rates
assert all(function["state"] == "traced" for function in look["functions"]), look
assert min(rates.values()) > 20 and max(rates.values()) < 1.5 * min(rates.values()), rates
assert abs(sum(function["percent"] for function in look["functions"]) - 100) < 0.01
assert abs(sum(rates.values()) - look["calls_per_second"]) < 0.01
PY
    end_busy "$busy"
    nothing_is_left
}

# What is too hot has no probe, and its share is not known. It leads the list once its rate has been measured, which takes
# longer where others fill the processors.
too_hot() {
    local busy
    start_busy 0
    busy=$spawned
    spawn "$TRACECTL" --json top -p "$busy" --delay 0.5 -n 2 >"$WORK/top.json"
    leads() {
        tail -n 1 "$WORK/top.json" | python3 -c '
import json, sys

look = json.loads(sys.stdin.read() or "{}")
assert look and look["budget"]["out"] >= 1, look
assert len(look["functions"]) == 2
hottest = look["functions"][0]
assert hottest["state"] == "out" and hottest["percent"] is None and hottest["calls_per_second"] > 1000, hottest
' 2>"$WORK/why"
    }
    wait_until 60 leads || fail "$(tail -n 1 "$WORK/why")"
    end_top "$spawned"
    end_busy "$busy"
}

text() {
    local busy
    start_busy 1000
    busy=$spawned
    spawn "$TRACECTL" top -p "$busy" --batch --delay 0.3 -n 1 --functions '^both$' >"$WORK/top.out"
    wait_until 30 grep -qE '^ *[0-9,]+ +100\.0% +traced +busy +both$' "$WORK/top.out"
    end_top "$spawned"
    grep -q "^tracectl top - ..:..:.. pid $busy: [0-9,]* calls/s counted$" "$WORK/top.out"
    grep -q '^budget 5 %, .* 1 of 1 functions counted$' "$WORK/top.out"
    end_busy "$busy"
}

# A screen, until somebody presses q.
screen() {
    start_busy 1000
    { sleep 5 && printf q && sleep 2; } |
        TERM=vt100 timeout 20 script -qec "$TRACECTL top -p $spawned --delay 0.3" /dev/null >"$WORK/screen" || fail "status $?"
    grep -q 'calls/s counted' "$WORK/screen"
    grep -q 'plus_one' "$WORK/screen"
    end_busy "$spawned"
    nothing_is_left
}

# It ends with the process, by Ctrl-C, and says what is wrong.
ends() {
    local top status=0
    start_busy 1000
    "$TRACECTL" top -p "$spawned" --batch --delay 0.2 >"$WORK/top.out" &
    top=$!
    wait_until 10 grep -q both "$WORK/top.out"
    kill -KILL "$spawned"
    wait "$top"
    rm "$WORK/top.out"
    start_busy 1000
    "$TRACECTL" top -p "$spawned" --batch --delay 0.2 >"$WORK/top.out" &
    top=$!
    wait_until 10 grep -q both "$WORK/top.out"
    kill -TERM "$top"
    wait "$top"
    end_busy "$spawned"
    "$TRACECTL" top -p 4194303 --batch 2>"$WORK/err" || status=$?
    same 3 "$status"
    grep -q 'no such process' "$WORK/err"
    nothing_is_left
}

bad_usage() {
    local arguments status
    for arguments in "" "-p 1 --delay 0" "-p 1 --iterations 0" "-p 1 --budget none" "-p 1 -c file" \
        "-p 1 --functions ("; do
        status=0
        # shellcheck disable=SC2086
        "$TRACECTL" top $arguments >/dev/null 2>&1 || status=$?
        same 2 "$status"
    done
}

of_a_daemon() {
    local busy daemon
    start_busy 1000
    busy=$spawned
    cat >"$WORK/tracectl.conf" <<EOF
[daemon]
store = $WORK/daemon.db
socket = $WORK/control
scan = 0.2s
[target busy]
path = $(realpath "$PROGRAMS/busy")
EOF
    spawn "$TRACECTL" daemon -c "$WORK/tracectl.conf" 2>"$WORK/log"
    daemon=$spawned
    wait_until 10 test -S "$WORK/control"
    sees_it() {
        "$TRACECTL" --json top -c "$WORK/tracectl.conf" --iterations 1 --delay 0.2 >"$WORK/top.json"
        grep -q '"name":"both","image":"busy","state":"traced"' "$WORK/top.json"
    }
    wait_until 30 sees_it
    "$TRACECTL" top -c "$WORK/tracectl.conf" --iterations 1 --delay 0.2 | grep -E 'traced +busy +both$' >/dev/null
    kill -TERM "$daemon"
    wait "$daemon"
    end_busy "$busy"
}

run_case "calls are counted" counts
run_case "what is too hot is said to be" too_hot
run_case "text" text
run_case "a screen" screen
run_case "the end" ends
run_case "bad usage" bad_usage
run_case "what a daemon records" of_a_daemon
finish
