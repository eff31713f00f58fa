#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# daemon: targets that appear and go, reload, status, metrics, privacy, and what kill -9 leaves behind.
. "$(dirname "$0")/lib.sh"
needs_capture

CONFIG=$WORK/daemon.conf
SOCKET=$WORK/control
ln "$PROGRAMS/busy" "$WORK/served" 2>/dev/null || cp "$PROGRAMS/busy" "$WORK/served"
cp "$WORK/served" "$WORK/other"
rm -f "$STORE"* # the daemon makes its own

configure() { # lines of targets...
    printf '%s\n' "[daemon]" "store = $STORE" "socket = $SOCKET" "scan = 0.2s" "budget = 1000%" "$@" >"$CONFIG"
}

start_daemon() {
    rm -f "$SOCKET"
    spawn "$TRACECTL" daemon -c "$CONFIG" 2>>"$WORK/log"
    daemon=$spawned
    echo "$daemon" >"$WORK/daemon"
    wait_until 10 test -S "$SOCKET"
}

status() { # path into the document
    "$TRACECTL" --json daemon --status -c "$CONFIG" | json_get "$1"
}

# Whether so many recordings have stored calls of a target.
records() { # target, number
    (($("$TRACECTL" --json daemon --status -c "$CONFIG" |
        python3 -c 'import json, sys
print(sum(r["target"] == sys.argv[1] and r["calls"] > 100 for r in json.load(sys.stdin)["recordings"]))' "$1") == $2))
}

logged() { # extended regular expression
    grep -qE "$1" "$WORK/log"
}

serve() { # arguments
    spawn "$WORK/served" 3000 1 "$@" >>"$WORK/served.out"
    served=$spawned
    echo "$served" >"$WORK/served.pid"
}

target_appears() {
    configure "[target served]" "path = $WORK/served" "budget = none"
    start_daemon
    wait_until 5 logged 'level=info event=started .*targets=1'
    same '[]' "$(status recordings)"
    configure "[target served]" "path = $WORK/served"
    kill -HUP "$daemon"
    wait_until 5 logged event=reloaded
    serve secret-argument
    wait_until 40 records served 1
    is_probed "$served"
}

second_by_cgroup() {
    local cgroup daemon
    daemon=$(cat "$WORK/daemon")
    cgroup=$(sed -n 's/^0:://p; t; s/^1:name=systemd://p' /proc/$$/cgroup | head -n 1)
    configure "[target served]" "path = $WORK/served" "[target here]" "cgroup = $cgroup" "name = oth*"
    kill -HUP "$daemon"
    wait_until 5 logged 'event=reloaded targets=2'
    # The first goes on: its definition is the same.
    same 1 "$(grep -c 'event=begun target=served' "$WORK/log")"
    spawn "$WORK/other" 3000 1 >/dev/null
    wait_until 40 records here 1
    kill -TERM "$spawned"
    wait_until 40 logged 'event=ended target=here'
}

bad_reload() {
    local daemon
    daemon=$(cat "$WORK/daemon")
    printf '%s\n' "[target served]" "paht = /x" >>"$CONFIG"
    fails_with 3 "$TRACECTL" daemon --check -c "$CONFIG"
    kill -HUP "$daemon"
    wait_until 5 logged "event=reload-failed why=.*daemon.conf:[0-9]+: "
    lives "$daemon"
    configure "[target served]" "path = $WORK/served"
    records served 1
}

metrics_parse() {
    "$TRACECTL" daemon --metrics -c "$CONFIG" >"$WORK/metrics"
    lacks -vE '^(# (HELP|TYPE) tracectl_[a-z_]+ .+|tracectl_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+)$' \
        "$WORK/metrics"
    grep -q '^tracectl_calls{target="served",pid="'"$(cat "$WORK/served.pid")"'"} [1-9]' "$WORK/metrics"
    grep -q '^tracectl_bad_reloads_total 1$' "$WORK/metrics"
    "$TRACECTL" daemon --status -c "$CONFIG" | grep -qE '^served .* recording '
}

nobody_else_reads() {
    local file
    for file in "$SOCKET" "$STORE" "$STORE-wal"; do
        same 600 "$(stat -c %a "$file")"
    done
    # The socket asks who it is, too, should its mode ever be another.
    chmod 711 "$WORK"
    chmod 644 "$CONFIG"
    cp "$TRACECTL" "$WORK/asker"
    fails_with 3 setpriv --reuid 65534 --regid 65534 --clear-groups "$WORK/asker" daemon --status -c "$CONFIG"
    grep -q 'ermission denied' "$WORK/fails.err"
    chmod 666 "$SOCKET"
    fails_with 3 setpriv --reuid 65534 --regid 65534 --clear-groups "$WORK/asker" daemon --status -c "$CONFIG"
    grep -q 'no answer (run as root' "$WORK/fails.err"
    wait_until 5 logged event=denied
    chmod 600 "$SOCKET"
    lacks -aq secret-argument "$STORE"
    lacks -aq secret-argument "$STORE-wal"
}

daemon_killed() {
    local served
    served=$(cat "$WORK/served.pid")
    kill -KILL "$(cat "$WORK/daemon")"
    text_is_clean "$served"
    lives "$served"
    "$TRACECTL" verify
    (($(q "SELECT count(*) AS n FROM events e JOIN runs r USING (run_id) WHERE r.name = 'served'") > 100))
    start_daemon
    wait_until 40 records served 1
}

recorder_killed() {
    local served
    served=$(cat "$WORK/served.pid")
    kill -KILL "$(status recordings.0.recorder)"
    wait_until 40 logged 'event=recorder-died target=served signal=9'
    text_is_clean "$served"
    "$TRACECTL" verify
    wait_until 40 records served 1
}

target_killed() {
    kill -KILL "$(cat "$WORK/served.pid")"
    wait_until 40 logged "event=ended target=served pid=$(cat "$WORK/served.pid")"
    same "[]" "$(status recordings)"
    serve
    wait_until 40 records served 1
}

ends_cleanly() {
    local daemon served
    daemon=$(cat "$WORK/daemon")
    served=$(cat "$WORK/served.pid")
    kill -TERM "$daemon"
    wait_until 40 logged event=stopped
    text_is_clean "$served"
    [[ ! -e $SOCKET ]]
    "$TRACECTL" verify
    same 1 "$(q "SELECT ended_ns NOTNULL AS ended FROM runs ORDER BY run_id DESC LIMIT 1")"
    same "$WORK/served" "$(q "SELECT command FROM runs ORDER BY run_id DESC LIMIT 1")"
    kill -TERM "$served"
    wait_until 10 grep -q '^unharmed' "$WORK/served.out"
}

# As systemd reads it, where there is one: no word that it does not know, and none that is missing.
unit_is_right() {
    command -v systemd-analyze >/dev/null || return 0
    sed "s|/usr/local/bin/tracectl|$TRACECTL|" "$ROOT/docs/examples/tracectl.service" >"$WORK/tracectl.service"
    systemd-analyze verify --man=no "$WORK/tracectl.service" 2>&1 | tee "$WORK/verify"
    lacks . "$WORK/verify"
}

run_case "a target appears and is recorded" target_appears
run_case "a second target, by control group" second_by_cgroup
run_case "a bad configuration changes nothing" bad_reload
run_case "metrics are Prometheus's" metrics_parse
run_case "nobody else reads, and no arguments are stored" nobody_else_reads
run_case "kill -9 of the daemon: no probe is left, and it begins again" daemon_killed
run_case "kill -9 of a recorder: the daemon goes on" recorder_killed
run_case "kill -9 of the target" target_killed
run_case "SIGTERM ends all recordings cleanly" ends_cleanly
run_case "the systemd unit is right" unit_is_right
finish
