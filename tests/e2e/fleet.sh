#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# fleet, ship, pull: a PostgreSQL server of the test's own; what comes back is what was shipped, once, whoever is killed.
. "$(dirname "$0")/lib.sh"
DATA=$ROOT/tests/data
BIN=$(echo /usr/lib/postgresql/*/bin | tr ' ' '\n' | sort -V | tail -n 1)

# A server that is reached by a socket in its folder. PostgreSQL refuses to run as root.
server=$WORK/server
mkdir "$server"
chmod 711 "$WORK"
chown postgres "$server"
as_postgres() {
    (cd "$server" && setpriv --reuid=postgres --regid=postgres --init-groups -- env LC_ALL=C.UTF-8 "$@")
}
as_postgres "$BIN/initdb" -D "$server/data" -E UTF8 -A trust >"$WORK/initdb.out" 2>&1
start_server() {
    as_postgres "$BIN/pg_ctl" -D "$server/data" -l "$server/log" -w \
        -o "-c listen_addresses='' -c unix_socket_directories='$server' -c fsync=off" start >/dev/null
}
stop_server() { # mode
    as_postgres "$BIN/pg_ctl" -D "$server/data" -m "$1" -w stop >/dev/null
}
end_server() {
    stop_server immediate 2>/dev/null || true
    cleanup
}
trap end_server EXIT
start_server
as_postgres "$BIN/createdb" -h "$server" fleet
export TRACECTL_FLEET="postgresql:///fleet?host=$server&user=postgres"

gunzip <"$DATA/reference-1.db.gz" >"$WORK/reference.db"
"$TRACECTL" -q -d "$WORK/reference.db" recover

fq() { # SQL; rows with | between the columns
    as_postgres "$BIN/psql" -h "$server" -XAt -d fleet -c "$1"
}

init() {
    fails_with 3 "$TRACECTL" fleet runs
    grep -q 'create it with tracectl fleet init' "$WORK/fails.err"
    "$TRACECTL" fleet init
    "$TRACECTL" fleet init
    same '[]' "$("$TRACECTL" --json fleet runs | tr -d ' \n')"
    fails_with 3 "$TRACECTL" fleet init -t "postgresql://u:secret@localhost/x"
    grep -q 'a password in it' "$WORK/fails.err"
    fails_with 3 "$TRACECTL" fleet init -t "postgresql:///fleet?host=$WORK/nowhere"
    TRACECTL_FLEET='' fails_with 3 "$TRACECTL" fleet runs
}

exports() { # store
    local run
    for run in $(TRACECTL_DB=$1 q "SELECT run_id FROM runs ORDER BY started_ns, name"); do
        "$TRACECTL" -d "$1" export "$run" --format csv | cksum
        "$TRACECTL" -d "$1" export "$run" --format folded | cksum
        "$TRACECTL" -d "$1" query --csv "SELECT seq, ns, goroutine, object, other, value FROM go_events
            WHERE run_id = $run ORDER BY process_id, seq" | cksum
        "$TRACECTL" -d "$1" query --csv "SELECT seq, ns, object, other, result FROM sync_events
            WHERE run_id = $run ORDER BY process_id, seq" | cksum
        "$TRACECTL" -d "$1" query --csv "SELECT hex(data) FROM segments WHERE run_id = $run ORDER BY 1" | cksum
    done
}

there_and_back() {
    local run
    "$TRACECTL" --json -d "$WORK/reference.db" ship >"$WORK/ship.json"
    same "10 0 0" "$(for key in shipped present refused; do json_get "$key" <"$WORK/ship.json"; done | paste -sd ' ')"
    for run in $(fq "SELECT run_id FROM tracectl.runs ORDER BY run_id"); do
        "$TRACECTL" -q pull "$run" -o "$STORE"
    done
    "$TRACECTL" verify
    exports "$WORK/reference.db" >"$WORK/at_home"
    exports "$STORE" >"$WORK/pulled"
    diff "$WORK/at_home" "$WORK/pulled"
    (($(wc -l <"$WORK/at_home") == 50)) || fail "not ten runs were exported"
    process_events_agree "$STORE" 400
    "$TRACECTL" -q fleet verify
}

once() {
    "$TRACECTL" --json -d "$WORK/reference.db" ship >"$WORK/ship.json"
    same "0 10" "$(for key in shipped present; do json_get "$key" <"$WORK/ship.json"; done | paste -sd ' ')"
    # a store with the same runs, such as a copy, or one that they were pulled into
    "$TRACECTL" --json ship >"$WORK/ship.json"
    same "0 10" "$(for key in shipped present; do json_get "$key" <"$WORK/ship.json"; done | paste -sd ' ')"
    "$TRACECTL" pull latest | grep -q 'is in the store already'
}

# The database itself knows what the stores know.
sql() {
    same "$(q "SELECT sum(event_count) FROM segments")" "$(fq "SELECT sum(event_count) FROM tracectl.segments")"
    same "$(q "SELECT name, sum(calls) FROM call_counts GROUP BY 1 ORDER BY 1" | paste -sd ' ')" \
        "$(fq "SELECT name, sum(calls) FROM tracectl.run_functions JOIN tracectl.functions USING (function_id)
            WHERE calls > 0 GROUP BY 1 ORDER BY name COLLATE \"C\"" | paste -sd ' ')"
    same "$(q "SELECT count(*) FROM functions")" "$(fq "SELECT count(*) FROM tracectl.functions")"
    "$TRACECTL" --json fleet top threads >"$WORK/top.json"
    same "$(q "SELECT sum(calls) FROM call_counts WHERE run_id = $(run_id threads) GROUP BY name ORDER BY 1 DESC LIMIT 1")" \
        "$(json_get 0.calls <"$WORK/top.json")"
    same 10 "$("$TRACECTL" --json fleet query 'SELECT count(*) AS n FROM tracectl.runs' | json_get 0.n)"
    fails_with 3 "$TRACECTL" fleet query "DELETE FROM tracectl.runs"
    fails_with 3 "$TRACECTL" fleet query "SELECT 1; COMMIT"
    same 10 "$(fq "SELECT count(*) FROM tracectl.runs")"
    "$TRACECTL" fleet runs | grep -q ' threads '
}

diff_equals() {
    local status=0
    "$TRACECTL" --json diff normal faulty >"$WORK/local.json" || status=$?
    same 1 "$status"
    "$TRACECTL" --json fleet diff normal faulty >"$WORK/fleet.json" || true
    same "$(json_get diffs <"$WORK/local.json")" "$(json_get diffs <"$WORK/fleet.json")"
    same "$(json_get suspects <"$WORK/local.json")" "$(json_get suspects <"$WORK/fleet.json")"
}

# Names are any bytes.
any_bytes() {
    mkdir "$WORK/bytes"
    "$E2E/u16" make "$WORK/bytes" 0.0 main work - -
    "$TRACECTL" -q -d "$WORK/bytes.db" import --format u16 "$WORK/bytes" -n bytes
    sqlite3 "$WORK/bytes.db" "UPDATE threads SET name = CAST(x'ff41c3a9f48fbc81ed a080c0af' AS TEXT)" 2>/dev/null ||
        sqlite3 "$WORK/bytes.db" "UPDATE threads SET name = CAST(x'ff41c3a9f48fbc81eda080c0af' AS TEXT)"
    "$TRACECTL" -q -d "$WORK/bytes.db" ship
    "$TRACECTL" -q pull bytes -o "$WORK/back.db"
    same FF41C3A9F48FBC81EDA080C0AF "$(sqlite3 "$WORK/back.db" "SELECT hex(name) FROM threads")"
}

damaged() {
    cp "$WORK/bytes.db" "$WORK/damaged.db"
    sqlite3 "$WORK/damaged.db" "UPDATE runs SET started_ns = 5; UPDATE segments SET data = zeroblob(length(data))"
    local status=0
    "$TRACECTL" -d "$WORK/damaged.db" ship >"$WORK/ship.out" 2>"$WORK/ship.err" || status=$?
    same 1 "$status"
    grep -q 'run 1 is not shipped: .*checksum is wrong' "$WORK/ship.err"
    same 0 "$(fq "SELECT count(*) FROM tracectl.runs WHERE started_ns = 5")"
    # and one that is damaged in the fleet
    fq "UPDATE tracectl.segments SET data = data || '\\x00' WHERE run_id = (SELECT run_id FROM tracectl.runs WHERE name = 'bytes')"
    status=0
    "$TRACECTL" fleet verify bytes >"$WORK/verify.out" || status=$?
    same 1 "$status"
    fails_with 3 "$TRACECTL" pull bytes -o "$WORK/none.db"
    fq "DELETE FROM tracectl.runs WHERE name = 'bytes'"
}

# Shippers and the server are killed; in the end each run is there once.
killed() {
    local round store
    for ((store = 0; store < 3; store++)); do
        cp "$WORK/reference.db" "$WORK/host$store.db"
        sqlite3 "$WORK/host$store.db" "UPDATE runs SET host = 'host$store'"
    done
    for ((round = 0; round < 4; round++)); do
        for ((store = 0; store < 3; store++)); do
            "$TRACECTL" -q -d "$WORK/host$store.db" ship >>"$WORK/ship.out" 2>&1 &
            shippers[store]=$!
        done
        sleep "0.$((1 + round))"
        kill -KILL "${shippers[@]}" 2>/dev/null || true
        wait "${shippers[@]}" || true
        if ((round % 2)); then
            stop_server immediate
            start_server
        fi
    done
    for ((store = 0; store < 3; store++)); do
        "$TRACECTL" -q -d "$WORK/host$store.db" ship
    done
    same "host0|10 host1|10 host2|10" "$(fq "SELECT host, count(*) FROM tracectl.runs WHERE host LIKE 'host_' GROUP BY 1 ORDER BY 1" |
        paste -sd ' ')"
    same "$(($(q "SELECT sum(event_count) FROM segments") * 3))" "$(fq "SELECT sum(event_count) FROM tracectl.segments
        JOIN tracectl.runs USING (run_id) WHERE host LIKE 'host_'")"
    same 0 "$(fq "SELECT count(*) FROM tracectl.runs r WHERE events <> (SELECT coalesce(sum(event_count), 0) FROM tracectl.segments s
        WHERE s.run_id = r.run_id)")"
}

followed() {
    local shipper
    "$TRACECTL" -q -d "$WORK/follow.db" import --format u16 "$WORK/bytes" -n first
    "$TRACECTL" -q -d "$WORK/follow.db" ship --follow >"$WORK/follow.out" 2>"$WORK/follow.err" &
    shipper=$!
    wait_until 60 is_shipped first
    stop_server immediate
    "$TRACECTL" -q -d "$WORK/follow.db" import --format u16 "$WORK/bytes" -n second
    wait_until 60 grep -q 'trying again' "$WORK/follow.err" || fail "$(cat "$WORK/follow.err")"
    start_server
    wait_until 60 is_shipped second
    kill -TERM "$shipper"
    wait "$shipper"
}

is_shipped() { # name
    [[ $(fq "SELECT count(*) FROM tracectl.runs WHERE name = '$1'") == 1 ]]
}

collected() {
    same 0 "$("$TRACECTL" --json fleet gc --keep-age 100000h | json_get deleted_runs)"
    "$TRACECTL" -q fleet gc --keep-age 1s
    same "0|0|0" "$(fq "SELECT (SELECT count(*) FROM tracectl.runs), (SELECT count(*) FROM tracectl.segments),
        (SELECT count(*) FROM tracectl.functions)")"
}

run_case "a fleet is created once" init
run_case "pulled runs are what was shipped" there_and_back
run_case "a run is shipped once" once
run_case "SQL over the fleet equals the store" sql
run_case "fleet diff equals the local one" diff_equals
run_case "names of any bytes" any_bytes
run_case "damaged runs are reported, by ship, verify and pull" damaged
run_case "shippers and the server are killed: each run is there once" killed
run_case "ship --follow waits for a server that is away" followed
run_case "gc deletes old runs" collected
finish
