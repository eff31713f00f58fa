#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A threaded server that hangs in two ways, and two releases of a program: what diff must say of them in every run.
. "$(dirname "$0")/lib.sh"
needs_capture
REQUESTS=61 # the last one alone: the other workers wait for the next
PATIENCE=3  # seconds without an answer after which a server that is meant to hang does so

# Prints how many answers there were.
record_server() { # NAME, bug, patience
    local socket=$WORK/$1.socket
    spawn "$TRACECTL" -q record -n "$1" --returns probe -- "$PROGRAMS/work_server" "$socket" "$2" >"$WORK/$1.out"
    "$E2E/ask_server" "$socket" "$REQUESTS" "$3"
    wait "$spawned"
}

# The innermost call without a return of each thread, "P.T NAME".
innermost() { # run
    q "SELECT thread || ' ' || replace(name, '@plt', '') AS line FROM open_calls o WHERE run_id = $(run_id "$1")
       AND depth = (SELECT max(depth) FROM open_calls WHERE run_id = o.run_id AND thread = o.thread) ORDER BY thread"
}

diff_with_normal() { # faulty run, filter
    local status=0
    "$TRACECTL" --json diff normal "$1" --filter "$2" --most 0 >"$WORK/diff.json" || status=$?
    same 1 "$status"
    json_get suspects <"$WORK/diff.json"
}

# The threads whose last call came back in the normal run only.
hang() {
    "$E2E/json" get diffs <"$WORK/diff.json" | python3 -c 'import json, sys
print(*sorted(d["thread"] for d in json.load(sys.stdin)
              if d.get("last_call") == {"normal": "returned", "faulty": "open"}))'
}

normal_server() {
    same "$REQUESTS" "$(record_server normal normal 60)"
    same 0 "$(q "SELECT exit_status FROM runs WHERE name = 'normal'")"
    same "0.0 _start" "$(innermost normal)" # main() is left by exit()
}

lock_is_kept() {
    local answers
    answers=$(record_server no_unlock no-unlock "$PATIENCE")
    ((answers < REQUESTS))
    innermost no_unlock
    # The four workers; the one with the bug has unlocked that lock once less than it has taken it.
    same "0.2 0.3 0.4 0.5" "$(innermost no_unlock | sed -n 's/ pthread_mutex_lock$//p' | paste -sd ' ')"
    same 0.3 "$(q "SELECT thread FROM call_counts WHERE run_id = $(run_id no_unlock) AND thread <> '0.1'
        GROUP BY thread HAVING sum(calls * (name LIKE 'pthread_mutex_lock%')) -
        sum(calls * (name LIKE 'pthread_mutex_unlock%')) = 2")"
    diff_with_normal no_unlock pthread
    same "0.0 0.2 0.3 0.4 0.5" "$(hang)"
}

wakeup_is_lost() {
    local waiting
    same "$REQUESTS" "$(record_server one_wakeup one-wakeup "$PATIENCE")"
    innermost one_wakeup
    waiting=$(innermost one_wakeup | sed -n 's/ pthread_cond_wait$//p' | paste -sd ' ')
    same "0.0 pthread_join" "$(innermost one_wakeup | head -n 1)"
    diff_with_normal one_wakeup pthread
    same "0.0 $waiting" "$(hang)"
    (($(wc -w <<<"$waiting") >= 1))
}

releases() {
    local status=0 wanted
    record release_1 -- "$PROGRAMS/release_1"
    record release_1_again -- "$PROGRAMS/release_1"
    record release_2 -- "$PROGRAMS/release_2"
    "$TRACECTL" diff release_1 release_1_again
    "$TRACECTL" --json diff release_1 release_2 >"$WORK/diff.json" || status=$?
    same 1 "$status"
    same 0.0 "$(json_get suspects.0.thread <"$WORK/diff.json")"
    wanted="normal apply_discount normal price_order faulty check_stock faulty order_total"
    same "$wanted" "$("$E2E/one_side" 0.0 <"$WORK/diff.json" | paste -sd ' ')"
    # A function that both have, and the second one calls more often.
    same 4 "$(q "SELECT calls FROM call_counts WHERE run_id = $(run_id release_1) AND name = 'flush_journal'")"
    same 40 "$(q "SELECT calls FROM call_counts WHERE run_id = $(run_id release_2) AND name = 'flush_journal'")"
    status=0
    "$TRACECTL" --json diff release_1 release_2 --custom flush_journal --filter 11.cust.0K10 >"$WORK/diff.json" || status=$?
    same '[{"faulty":40,"loop":"L0","normal":4}]' "$(json_get diffs.0.same_loops <"$WORK/diff.json")"
}

run_case "a server with nothing wrong" normal_server
run_case "a worker leaves without unlocking: all workers stay in the lock" lock_is_kept
run_case "one wake-up for all workers: the others wait on" wakeup_is_lost
run_case "two releases: functions added, removed and renamed, a loop that runs more often" releases
finish
