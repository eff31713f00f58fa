#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# kill -9 of the recorder at random moments: the store stays good and says what is missing, the target goes on and
# carries no probe. KILLS (4) sets how often; KILL_SEED repeats a run.
. "$(dirname "$0")/lib.sh"
needs_capture

RANDOM=${KILL_SEED:-$$}
echo "# KILL_SEED=${KILL_SEED:-$$}"

spawn "$PROGRAMS/busy" 20000 2 >"$WORK/busy.out"
busy=$spawned
wait_until 10 grep -q beat "$WORK/busy.out"

# Sleeps between 0 and `limit` milliseconds.
random_sleep() {
    sleep "$(printf '%d.%03d' $(($1 * RANDOM / 32768 / 1000)) $(($1 * RANDOM / 32768 % 1000)))"
}

beats() {
    wc -l <"$WORK/busy.out"
}

store_is_good() { # name of the run
    local id
    if [[ ! -e $STORE ]]; then
        echo "killed before the store was made"
        return
    fi
    "$TRACECTL" verify
    same ok "$(sqlite3 "$STORE" 'PRAGMA integrity_check')"
    id=$(q "SELECT max(run_id) AS id FROM runs WHERE name = '$1'")
    if [[ -z $id ]]; then
        echo "killed before the run began"
        return
    fi
    same 1 "$(q "SELECT count(*) > 0 AS told FROM losses WHERE run_id = $id AND cause = 'unfinished'")"
    same 1 "$(q "SELECT ended_ns IS NULL AS open FROM runs WHERE run_id = $id")"
    q "SELECT count(*) AS events FROM events WHERE run_id = $id"
    "$TRACECTL" show "$1" >/dev/null
}

kill_while_attached() { # number
    local name="kill$1" recorder before
    spawn "$TRACECTL" -q record -n "$name" -p "$busy" --budget none --flush-interval 0.2
    recorder=$spawned
    random_sleep 2000
    kill -KILL "$recorder"
    wait "$recorder" 2>/dev/null || true
    lives "$busy"
    text_is_clean "$busy"
    before=$(beats)
    sleep 0.4
    (($(beats) > before)) || fail "the target stands still"
    store_is_good "$name"
}

something_was_kept() {
    spawn "$TRACECTL" -q record -n kept -p "$busy" --budget none --flush-interval 0.2
    wait_until 10 is_probed "$busy"
    sleep 1.5
    kill -KILL "$spawned"
    store_is_good kept
    (($(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id kept)") > 1000))
}

target_was_unharmed() {
    kill -TERM "$busy"
    wait_until 15 grep '^unharmed' "$WORK/busy.out"
}

# Processes that belong to session $1, with their states.
session() {
    awk -v session="$1" '{ sub(/.*\) /, ""); if ($4 == session) print FILENAME, $1 }' /proc/[0-9]*/stat 2>/dev/null
}

# A command that executes programs all the time: the recorder dies while one may stand still at its exec.
kill_while_launching() { # number
    local recorder
    rm -f "$WORK/stop" "$WORK/rounds"
    write_launcher "$WORK/launcher" "$WORK/rounds" "$WORK/stop" "$WORK/harmed"
    spawn setsid "$TRACECTL" -q record -n "launch$1" -- sh "$WORK/launcher"
    recorder=$spawned
    wait_until 20 grep -q round "$WORK/rounds"
    random_sleep 1000
    kill -KILL "$recorder"
    wait "$recorder" 2>/dev/null || true
    before=$(wc -l <"$WORK/rounds")
    more_rounds() { (($(wc -l <"$WORK/rounds") > before + 5)); }
    wait_until 15 more_rounds || {
        session "$recorder"
        fail "the command stands still"
    }
    touch "$WORK/stop"
    wait_until 15 grep -q finished "$WORK/rounds"
    [[ ! -e $WORK/harmed ]] || fail "$(sort "$WORK/harmed" | uniq -c)"
    store_is_good "launch$1"
}

for ((i = 1; i <= ${KILLS:-4}; i++)); do
    run_case "kill -9 while recording a process, $i" kill_while_attached $i
done
run_case "what was committed before the kill is there" something_was_kept
run_case "the target was unharmed" target_was_unharmed
run_case "kill -9 of whatever belongs to a recording with inline probes" "$ROOT/tests/stress/kills" "${KILLS:-4}"
for ((i = 1; i <= (${KILLS:-4} + 1) / 2; i++)); do
    run_case "kill -9 while recording a command that executes programs, $i" kill_while_launching $i
done
run_case "breakpoints that the kernel has left behind are taken away" "$ROOT/tests/stress/leaks" 3
finish
