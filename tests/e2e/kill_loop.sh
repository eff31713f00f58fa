#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# kill -9 of recorders, 200 times, at random moments and under load: each time the store opens and verifies, holds all
# that was committed and says what is missing; the target goes on, and nothing is left in it. Every fifth time the
# store is recovered, every tenth it is cleaned up. KILLS (200) sets how often; KILL_SEED repeats a run.
. "$(dirname "$0")/lib.sh"
needs_capture

lanes=5
kills=$((${KILLS:-200} / lanes))
seed=${KILL_SEED:-$$}
echo "# KILL_SEED=$seed"

# Sleeps between 0 and `limit` milliseconds.
random_sleep() {
    local milliseconds=$(($1 * RANDOM / 32768))
    sleep "$(printf '%d.%03d' $((milliseconds / 1000)) $((milliseconds % 1000)))"
}

# One value. Without `q`, whose interpreter starts more slowly than tracectl.
value() {
    "$TRACECTL" query --csv "$1" | tail -n +2 | tr -d '"\r'
}

# Of the newest run: its number, what it has, and when that was committed. Nothing before there is a run.
newest() {
    value "SELECT r.run_id || ' ' || (SELECT count(*) FROM events e WHERE e.run_id = r.run_id) ||
        ' ' || l.ns AS value FROM runs r JOIN losses l ON l.run_id = r.run_id AND l.cause = 'unfinished'
        ORDER BY r.run_id DESC LIMIT 1"
}

# What was seen before the kill must be there after it, as part of a run that says that it has no end.
holds() { # run, events, ns: seen; run, events, ns: now
    (($4 > $1)) && return 0
    ((${4:-0} == $1 && $5 >= $2 && $6 >= $3)) || fail "was: run $1, $2 events at $3; is: run $4, $5 events at $6"
}

check_store() { # what newest said before the kill
    local now
    [[ -e $TRACECTL_DB ]] || return 0
    "$TRACECTL" verify
    now=$(newest)
    # shellcheck disable=SC2086 # both are three words, or nothing
    [[ -z $1 ]] || holds $1 $now
    same 0 "$(value "SELECT count(*) AS value FROM runs r WHERE NOT EXISTS
        (SELECT 1 FROM losses l WHERE l.run_id = r.run_id AND l.cause = 'unfinished')")"
}

# A recovered store has the same events, no journal, and an end for each run.
recover_store() {
    local before after
    before=$(newest)
    "$TRACECTL" recover
    "$TRACECTL" verify
    after=$(newest)
    same "$before" "$after"
    same "0 0" "$(value "SELECT (SELECT count(*) FROM journal) || ' ' ||
        (SELECT count(*) FROM runs WHERE ended_ns IS NULL) AS value")"
}

goes_on() { # pid, file that it adds to
    local before
    before=$(stat -c %s "$2")
    lives "$1" || fail "process $1 is gone"
    wait_until 15 file_grows "$2" "$before" || fail "process $1 stands still: $(grep State "/proc/$1/status")"
}

file_grows() { # file, size
    (($(stat -c %s "$1") > $2))
}

has_run() { # name
    [[ -s $TRACECTL_DB ]] && same "$1" "$(value "SELECT name AS value FROM runs ORDER BY run_id DESC LIMIT 1")"
}

# Starts a recorder, and kills it.
kill_one() { # number of the kill, the recorder's targets...
    local number=$1 recorder seen=
    shift
    "$TRACECTL" -q record -n "kill$number" --flush-interval 0.02 "$@" >/dev/null 2>&1 &
    recorder=$!
    echo "$recorder" >>"$WORK/pids"
    if ((RANDOM % 4)); then # the others die as they start
        wait_until 20 has_run "kill$number"
    fi
    random_sleep 600
    if [[ -s $TRACECTL_DB ]] && ((RANDOM % 2)); then # the look takes time: half of the kills come at once
        seen=$(newest)
    fi
    kill -KILL "$recorder"
    wait "$recorder" 2>/dev/null || true
    check_store "$seen"
    ((number % 5)) || [[ ! -s $TRACECTL_DB ]] || recover_store
    ((number % 10)) || [[ ! -s $TRACECTL_DB ]] || "$TRACECTL" gc --keep-runs 3
}

attach_lane() { # number
    local busy
    "$PROGRAMS/busy" 30000 2 >"$WORK/busy$1" &
    busy=$!
    echo "$busy" >>"$WORK/pids"
    wait_until 10 grep -q beat "$WORK/busy$1"
    for ((i = 1; i <= kills; i++)); do
        kill_one "$i" -p "$busy"
        goes_on "$busy" "$WORK/busy$1"
        ((i % 10)) || text_is_clean "$busy"
    done
    text_is_clean "$busy"
    kill -TERM "$busy"
    wait_until 15 grep '^unharmed' "$WORK/busy$1"
}

# The command executes programs all the time: the recorder dies while one may stand still at its exec.
launch_lane() { # number
    local rounds=$WORK/rounds$1 stop=$WORK/stop$1
    write_launcher "$WORK/launcher$1" "$rounds" "$stop" "$WORK/harmed$1"
    for ((i = 1; i <= kills; i++)); do
        rm -f "$rounds" "$stop"
        kill_one "$i" -- sh "$WORK/launcher$1"
        if [[ -e $rounds ]]; then # it was killed after the command had begun
            goes_on_until_told "$rounds" "$stop"
        fi
        touch "$stop"
        [[ ! -e $WORK/harmed$1 ]] || fail "$(sort "$WORK/harmed$1" | uniq -c)"
    done
}

goes_on_until_told() { # file that it adds to, file that stops it
    local before
    before=$(stat -c %s "$1")
    wait_until 15 file_grows "$1" "$before" || fail "the command stands still"
    touch "$2"
    wait_until 15 grep -q finished "$1"
}

lane() { # number, function
    set -e
    RANDOM=$((seed + $1))
    export TRACECTL_DB=$WORK/lane$1.db
    "$2" "$1"
    echo "all done"
}

# The last line tells whether all of a lane was done.
lane_is_done() { # number
    tail -n 40 "$WORK/lane$1.out"
    same "all done" "$(tail -n 1 "$WORK/lane$1.out")"
}

none_is_stopped() {
    grep -lsE '^State:[[:space:]]*T' /proc/[0-9]*/task/[0-9]*/status >"$WORK/stopped" || true
    while read -r status; do
        exe=$(readlink "${status%/task/*}/exe" || true)
        [[ $exe != "$PROGRAMS"/* ]] || fail "stopped: $status $exe"
    done <"$WORK/stopped"
}

for ((n = 1; n <= lanes; n++)); do
    kind=attach_lane
    ((n < lanes)) || kind=launch_lane
    (lane "$n" "$kind") >"$WORK/lane$n.out" 2>&1 &
    lane_pids[n]=$!
done
for ((n = 1; n <= lanes; n++)); do
    wait "${lane_pids[n]}" || true
done
for ((n = 1; n <= lanes; n++)); do
    run_case "$kills kills, lane $n" lane_is_done "$n"
done
run_case "nobody is left stopped" none_is_stopped
finish
