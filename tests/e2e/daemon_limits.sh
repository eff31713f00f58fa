#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The daemon's runs are rotated, no more recordings are made than allowed, and the store stays below its limit.
. "$(dirname "$0")/lib.sh"
needs_capture

CONFIG=$WORK/daemon.conf
LIMIT=$((2 * 1024 * 1024))
cp "$PROGRAMS/busy" "$WORK/served"
rm -f "$STORE"*

# A store that is nearly full, of older runs.
mkdir "$WORK/traces"
"$E2E/u16" random "$WORK/traces" 0.0 300000 7
older=0
until [[ -e $STORE ]] && (($(stat -c %s "$STORE") > LIMIT * 3 / 4)); do
    older=$((older + 1))
    "$TRACECTL" -q import --format u16 "$WORK/traces" -n "older.$older"
done
chmod 600 "$STORE"*

store_bytes() {
    local file blocks total=0
    for file in "$STORE" "$STORE-wal" "$STORE-shm"; do
        blocks=$(stat -c %b "$file" 2>/dev/null || echo 0) # it may go at any time
        total=$((total + blocks * 512))
    done
    echo "$total"
}

printf '%s\n' "[daemon]" "store = $STORE" "socket = $WORK/control" "scan = 0.1s" "rotate = 0.6s" "max-recordings = 1" \
    "store-limit = 2M" "[target served]" "path = $WORK/served" "budget = none" >"$CONFIG"
spawn "$WORK/served" 30000 1 >"$WORK/first.out"
first=$spawned
spawn "$WORK/served" 30000 1 >"$WORK/second.out"
second=$spawned
spawn "$TRACECTL" daemon -c "$CONFIG" 2>"$WORK/log"
daemon=$spawned

finished_runs() {
    q "SELECT count(*) AS n FROM runs WHERE name = 'served' AND ended_ns NOTNULL"
}

rotates() {
    local bytes most=0
    until (($(finished_runs) >= 3)); do
        bytes=$(store_bytes)
        most=$((bytes > most ? bytes : most))
        ((SECONDS < 180)) || fail "$(cat "$WORK/log")"
    done
    echo "$most" >"$WORK/most"
    # One after the other, each of about the time that it may take, and all with calls.
    same 0 "$(q "SELECT count(*) AS n FROM runs a JOIN runs b ON a.run_id < b.run_id AND a.ended_ns > b.started_ns
        WHERE a.name = 'served' AND b.name = 'served'")"
    same 0 "$(q "SELECT count(*) AS n FROM runs r WHERE name = 'served' AND ended_ns NOTNULL
        AND (SELECT count(*) FROM events e WHERE e.run_id = r.run_id) < 1000")"
    lacks -E 'event=(failed|recorder-died)' "$WORK/log"
}

one_at_once() {
    grep -q 'level=warning event=left-out target=served user=root' "$WORK/log"
    (($("$TRACECTL" daemon --metrics -c "$CONFIG" | sed -n 's/^tracectl_refused_total //p') >= 1))
    (($("$TRACECTL" --json daemon --status -c "$CONFIG" |
        python3 -c 'import json, sys; print(len(json.load(sys.stdin)["recordings"]))') <= 1))
}

store_is_limited() {
    local most
    most=$(cat "$WORK/most")
    ((most <= LIMIT)) || fail "$most bytes of $LIMIT"
    # It is the older runs that made room, the oldest one first, and the daemon stopped nobody for it.
    same 0 "$(q "SELECT count(*) AS n FROM runs WHERE name = 'older.1'")"
    lacks store-limit "$WORK/log"
    "$TRACECTL" verify
}

nothing_is_left() {
    local pid
    kill -TERM "$daemon"
    wait_until 40 grep -q event=stopped "$WORK/log"
    for pid in "$first" "$second"; do
        text_is_clean "$pid"
        kill -TERM "$pid"
    done
    wait_until 10 grep -q '^unharmed' "$WORK/first.out"
    wait_until 10 grep -q '^unharmed' "$WORK/second.out"
    "$TRACECTL" verify
}

run_case "runs are rotated" rotates
run_case "one recording at once" one_at_once
run_case "the store stays below its limit" store_is_limited
run_case "nothing is left" nothing_is_left
finish
