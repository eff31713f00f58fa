#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One user's processes do not take all places of the daemon, and `user` chooses whose are recorded.
. "$(dirname "$0")/lib.sh"
needs_capture

CONFIG=$WORK/daemon.conf
chmod 755 "$WORK"
cp "$PROGRAMS/busy" "$WORK/served"
rm -f "$STORE"*

configure() { # lines for the target
    printf '%s\n' "[daemon]" "store = $STORE" "socket = $WORK/control" "scan = 0.2s" "max-recordings = 2" "cpu-limit = 900%" \
        "[target served]" "path = $WORK/served" "budget = none" "functions = ^main$" "$@" >"$CONFIG"
}

status_says() { # Python expression over the document d
    "$TRACECTL" --json daemon --status -c "$CONFIG" |
        python3 -c 'import json, sys; d = json.load(sys.stdin); sys.exit(not ('"$1"'))'
}

configure
for _ in 1 2 3 4; do
    spawn setpriv --reuid=65534 --regid=65534 --clear-groups "$WORK/served" 100000 1 >/dev/null
done
spawn "$TRACECTL" daemon -c "$CONFIG" 2>"$WORK/log"
daemon=$spawned

shares() {
    wait_until 60 status_says "len(d['recordings']) == 2 and d['left_out'] and d['left_out'][0]['uid'] == 65534"
    wait_until 60 grep -q 'event=left-out target=served user=\(nobody\|65534\)' "$WORK/log"
    "$TRACECTL" daemon --status -c "$CONFIG" | grep 'not recorded, .*user 65534'
    "$WORK/served" 100000 1 >/dev/null &
    echo $! | tee -a "$WORK/pids" >"$WORK/own"
    wait_until 90 status_says "any(r['pid'] == $(cat "$WORK/own") and r['state'] == 'recording' for r in d['recordings'])"
    grep 'event=place-taken .*for=root' "$WORK/log"
}

chooses() {
    configure "user = root"
    kill -HUP "$daemon"
    wait_until 90 status_says "[r['pid'] for r in d['recordings']] == [$(cat "$WORK/own")] and not d['left_out']"
}

run_case "a user with all places gives one to another, and is named" shares
run_case "only the processes of a user" chooses
kill -TERM "$daemon"
wait "$daemon" || true
finish
