#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# record -p on a running process: begins and ends without a trace in the process.
. "$(dirname "$0")/lib.sh"
needs_capture

start_busy() { # arguments of busy
    spawn "$PROGRAMS/busy" "$@" >"$WORK/busy.out"
    wait_until 10 grep -q beat "$WORK/busy.out"
    # The children of a bash script ignore SIGINT; busy does not care.
}

end_busy() { # pid: ends it and checks what it says
    kill -TERM "$1"
    wait "$1" || fail "busy ended with status $?"
    tail -n 1 "$WORK/busy.out"
    grep -q '^unharmed' "$WORK/busy.out"
}

for_a_while() {
    local pid id
    start_busy 3000 2
    pid=$spawned
    text_is_clean "$pid"
    "$TRACECTL" -q record -n a_while -p "$pid" --budget none --duration 1
    text_is_clean "$pid"
    end_busy "$pid"
    id=$(run_id a_while)
    q "SELECT t.label, f.name, count(*) AS n FROM events JOIN functions f USING (function_id) JOIN threads t
       USING (thread_id) WHERE events.run_id = $id AND kind = 'call' GROUP BY 1, 2"
    # Two threads of 3000 calls a second each: about 6000, a third of them of each function.
    (($(q "SELECT count(*) AS n FROM events WHERE run_id = $id AND kind = 'call'") > 1500))
    same "both plus_one plus_two" "$(q "SELECT DISTINCT f.name FROM events JOIN functions f USING (function_id)
        WHERE run_id = $id AND f.name NOT LIKE '%@plt' ORDER BY 1" | paste -sd ' ')"
    same 1 "$(q "SELECT max(n) - min(n) <= 4 AS close FROM (SELECT count(*) AS n FROM events
        JOIN functions f USING (function_id) WHERE run_id = $id AND kind = 'call' AND f.name NOT LIKE '%@plt'
        GROUP BY function_id)")"
    # plus_one and plus_two are called by both, once each.
    same 0 "$(q "SELECT count(*) AS n FROM calls c JOIN functions f USING (function_id) LEFT JOIN calls p
        ON p.run_id = c.run_id AND p.thread_id = c.thread_id AND p.seq = c.parent_seq LEFT JOIN functions g
        ON g.function_id = p.function_id WHERE c.run_id = $id AND f.name LIKE 'plus%' AND c.seq > 10
        AND g.name IS NOT 'both'")"
}

until_interrupted() { # signal
    local pid recorder status=0
    start_busy 1000
    pid=$spawned
    spawn "$TRACECTL" -q record -n "until_$1" -p "$pid" --budget none
    recorder=$spawned
    wait_until 10 is_probed "$pid"
    sleep 0.5
    kill "-$1" "$recorder"
    wait "$recorder" || status=$?
    same 0 "$status"
    text_is_clean "$pid"
    end_busy "$pid"
    same 0 "$(q "SELECT count(*) AS n FROM losses WHERE run_id = $(run_id "until_$1")")"
    (($(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id "until_$1")") > 100))
}

target_ends_first() {
    local pid recorder
    start_busy 1000
    pid=$spawned
    spawn "$TRACECTL" -q record -n ends_first -p "$pid" --budget none
    recorder=$spawned
    wait_until 10 is_probed "$pid"
    end_busy "$pid"
    wait "$recorder"
    same 1 "$(q "SELECT ended_ns IS NOT NULL AS ended FROM runs WHERE name = 'ends_first'")"
}

two_at_once() { # two recorders, two targets, one store
    local first second recorder
    start_busy 2000
    first=$spawned
    spawn "$PROGRAMS/busy" 2000 >"$WORK/busy2.out"
    second=$spawned
    spawn "$TRACECTL" -q record -n one -p "$first" --budget none --duration 2
    recorder=$spawned
    "$TRACECTL" -q record -n two -p "$second" --budget none --duration 2
    wait "$recorder"
    kill -TERM "$second"
    wait "$second"
    end_busy "$first"
    grep -q '^unharmed' "$WORK/busy2.out"
    same "one two" "$(q "SELECT r.name FROM runs r WHERE r.name IN ('one', 'two') AND (SELECT count(*) FROM events e
        WHERE e.run_id = r.run_id) > 500 ORDER BY 1" | paste -sd ' ')"
    "$TRACECTL" verify
}

several_pids() {
    local first second
    start_busy 1000
    first=$spawned
    spawn "$PROGRAMS/busy" 1000 >"$WORK/busy2.out"
    second=$spawned
    wait_until 10 grep -q beat "$WORK/busy2.out"
    "$TRACECTL" -q record -n several -p "$first,$second" --budget none --duration 1
    kill -TERM "$second"
    wait "$second"
    end_busy "$first"
    same 2 "$(q "SELECT count(DISTINCT t.process_id) AS n FROM events e JOIN threads t USING (thread_id)
        WHERE e.run_id = $(run_id several)")"
}

readable_while_recording() { # a reader sees what is committed, and does not disturb
    local pid recorder
    start_busy 2000
    pid=$spawned
    spawn "$TRACECTL" -q record -n live -p "$pid" --budget none --flush-interval 0.2
    recorder=$spawned
    has_events() {
        (($(q "SELECT count(*) AS n FROM events e JOIN runs r USING (run_id) WHERE r.name = 'live'") > 200))
    }
    wait_until 60 has_events
    lives "$recorder"
    kill -INT "$recorder"
    wait "$recorder"
    end_busy "$pid"
    "$TRACECTL" verify
}

# A link with a name of more than 15 characters: neither the executable nor the command name has it whole.
by_name() {
    local link=$WORK/known_by_its_link_$$ first second
    ln -s "$PROGRAMS/busy" "$link"
    spawn "$link" 1000 >"$WORK/first.out"
    first=$spawned
    spawn "$link" 1000 >"$WORK/second.out"
    second=$spawned
    wait_until 10 grep -q beat "$WORK/first.out"
    wait_until 10 grep -q beat "$WORK/second.out"
    "$TRACECTL" -q record -n by_name -p "${link##*/}" --duration 300ms --budget none
    same "$(printf '%s\n' "$first" "$second" | sort -n | paste -sd ' ')" \
        "$(q "SELECT DISTINCT pid FROM processes WHERE run_id = $(run_id by_name) ORDER BY 1" | paste -sd ' ')"
    "$TRACECTL" --json stat -p "${link##*/}" >"$WORK/stat.json"
    # The same as numbers, as $(pidof NAME) gives them: one word, several words.
    "$TRACECTL" -q record -n one_word -p "$first $second" --duration 100ms --budget none
    "$TRACECTL" -q record -n words --duration 100ms --budget none -p "$first" "$second"
    same "2 2" "$(q "SELECT count(DISTINCT pid) AS n FROM processes WHERE run_id IN ($(run_id one_word), $(run_id words))
        GROUP BY run_id" | paste -sd ' ')"
    fails_with 3 "$TRACECTL" record -p "${link##*/}x" --duration 1
    fails_with 3 "$TRACECTL" stat -p "${link##*/}x"
    same 2 "$("$TRACECTL" record -p "$first," --duration 1 2>/dev/null || echo $?)"
    printf '%s\n' "[target linked]" "name = ${link##*/}" "[target other]" "name = ${link##*/}x" >"$WORK/names.conf"
    same $'linked: 2 processes\nother: 0 processes' "$("$TRACECTL" daemon --check -c "$WORK/names.conf")"
    kill -TERM "$second"
    wait "$second" || fail "busy ended with status $?"
    same $'linked: 1 process\nother: 0 processes' "$("$TRACECTL" daemon --check -c "$WORK/names.conf")"
    same 1 "$("$TRACECTL" --json daemon --check -c "$WORK/names.conf" | json_get targets.0.processes)"
    kill -TERM "$first"
    wait "$first" || fail "busy ended with status $?"
}

run_case "processes by name, by several words" by_name
run_case "record -p for a while" for_a_while
run_case "record -p until Ctrl-C" until_interrupted INT
run_case "record -p until SIGTERM" until_interrupted TERM
run_case "the target ends first" target_ends_first
run_case "two recorders share a store" two_at_once
run_case "several processes in one recording" several_pids
run_case "the store is read while it is written" readable_while_recording
finish
