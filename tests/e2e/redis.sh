#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# record -p on redis-server under load: no error reply, no lost connection, full speed afterwards.
. "$(dirname "$0")/lib.sh"
needs_capture

port=16379

cd "$WORK"
spawn redis-server --port "$port" --save "" --daemonize no --logfile "$WORK/redis.log"
server=$spawned

answers() {
    [[ $(redis-cli -p "$port" ping 2>/dev/null) == PONG ]]
}

# Requests a second of a short benchmark.
speed() {
    redis-benchmark -p "$port" -t set,get -n 40000 -c 10 --csv 2>/dev/null | tr -d '"' |
        awk -F, '$1 == "GET" || $1 == "SET" { sum += $2; n++ } END { if (n != 2) exit 1; printf "%d\n", sum / n }'
}

attach_under_load() {
    local load status=0
    redis-cli -p "$port" set before kept >/dev/null
    speed >"$WORK/speed.before"
    # The load gives up at the first error reply or lost connection.
    spawn redis-benchmark -p "$port" -t set,get -n 60000 -c 10 -q >"$WORK/load.out" 2>&1
    load=$spawned
    sleep 0.3
    "$TRACECTL" -q record -n redis -p "$server" --duration 2
    wait "$load" || status=$?
    tr '\r' '\n' <"$WORK/load.out" | tail -n 6
    same 0 "$status"
    lacks -iE 'error|refused|reset' "$WORK/load.out"
    same kept "$(redis-cli -p "$port" get before)"
    same 0 "$(redis-cli -p "$port" info stats | tr -d '\r' | awk -F: '/^total_error_replies/ { print $2 }')"
    text_is_clean "$server"
}

full_speed_afterwards() {
    local before after
    before=$(cat "$WORK/speed.before")
    after=$(speed)
    echo "$before requests a second before, $after after"
    ((after * 10 > before * 6)) || { # once more: other processes may have been in the way
        after=$(speed)
        ((after * 10 > before * 6))
    }
}

store_answers() {
    "$TRACECTL" query "SELECT name, sum(calls) AS calls FROM call_counts WHERE run_id = $(run_id redis) GROUP BY name
        ORDER BY calls DESC LIMIT 10"
    (($(q "SELECT count(*) AS n FROM (SELECT DISTINCT function_id FROM segment_functions JOIN segments
        USING (segment_id) WHERE run_id = $(run_id redis))") > 20))
    "$TRACECTL" verify
}

run_case "redis starts" wait_until 10 answers
run_case "attach and detach under load" attach_under_load
run_case "full speed afterwards" full_speed_afterwards
run_case "the store answers" store_answers
finish
