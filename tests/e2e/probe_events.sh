#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Probes by tracefs events (kernels before 6.6) record what probes by uprobe_multi record, and leave nothing behind.
. "$(dirname "$0")/lib.sh"
needs_capture

mkdir "$WORK/mount"
mount -t tracefs none "$WORK/mount"

by_events() { # command...
    TRACECTL_PROBE_WAY=events "$@"
}

definitions() {
    grep -c ':tracectl/' "$WORK/mount/uprobe_events" || true
}

# Another recorder may be in between, for a moment.
nothing_is_defined() {
    wait_until 20 swept || fail "$(definitions) definitions are left"
}

swept() {
    [[ $(definitions) == 0 ]] || {
        by_events "$TRACECTL" -q record -n sweeper --backend uprobe -- true
        [[ $(definitions) == 0 ]]
    }
}

# Calls by function, and how many threads made them, from all that a run has.
calls() { # run
    q "SELECT f.name, count(*) AS calls, count(DISTINCT thread_id) AS threads FROM events
        JOIN functions f USING (function_id) WHERE events.run_id = $(run_id "$1") AND kind = 'call'
        GROUP BY f.name ORDER BY f.name"
}

both_ways() { # name, record's options and the command...
    local name=$1
    shift
    record "$name-multi" "$@" >"$WORK/natively"
    by_events record "$name-events" "$@" >"$WORK/recorded"
    diff "$WORK/natively" "$WORK/recorded"
    calls "$name-multi" >"$WORK/calls.multi"
    calls "$name-events" >"$WORK/calls.events"
    [[ -s $WORK/calls.multi ]] || fail "nothing was recorded"
    diff "$WORK/calls.multi" "$WORK/calls.events"
    same 0 "$(q "SELECT count(*) AS n FROM losses WHERE run_id = $(run_id "$name-events")")"
}

is_doctors_way() {
    by_events "$TRACECTL" doctor >"$WORK/doctor.txt"
    grep -qE '^uprobes +yes .* by tracefs events$' "$WORK/doctor.txt"
    grep -qE '^attach cookie +yes ' "$WORK/doctor.txt"
    grep -qE '^process filter +yes ' "$WORK/doctor.txt"
    grep -qx 'recording works' "$WORK/doctor.txt"
}

return_probes() {
    by_events fails_with 3 "$TRACECTL" record --returns probe -- "$PROGRAMS/forty"
}

start_busy() {
    spawn "$PROGRAMS/busy" 20000 2 >"$WORK/busy.out"
    busy=$spawned
    wait_until 10 grep -q beat "$WORK/busy.out"
}

end_busy() {
    lives "$busy"
    text_is_clean "$busy"
    kill -TERM "$busy"
    wait_until 15 grep '^unharmed' "$WORK/busy.out"
}

running_process() { # name, record's options...
    start_busy
    by_events "$TRACECTL" -q record -n "$1" --backend uprobe --duration 1 -p "$busy" "${@:2}"
    (($(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id "$1") AND kind = 'call'") > 0))
    end_busy
}

# Functions are excluded, and their calls counted.
within_a_budget() {
    running_process budget --budget 1%
    (($(q "SELECT count(*) AS n FROM blind WHERE run_id = $(run_id budget)") > 0))
}

killed_recorder() {
    start_busy
    TRACECTL_PROBE_WAY=events spawn "$TRACECTL" -q record -n killed --backend uprobe --budget none -p "$busy"
    wait_until 10 is_probed "$busy"
    (($(definitions) > 0))
    kill -KILL "$spawned"
    wait "$spawned" 2>/dev/null || true
    wait_until 10 text_is_clean "$busy"
    end_busy
    nothing_is_defined
}

# A definition that is in use is not deleted: the kernel would free probes that are in place.
another_recorder() {
    start_busy
    TRACECTL_PROBE_WAY=events spawn "$TRACECTL" -q record -n first --backend uprobe --budget none -p "$busy"
    wait_until 10 is_probed "$busy"
    before=$(definitions)
    by_events record second --backend uprobe -- "$PROGRAMS/forty" >/dev/null
    same "$before" "$(definitions)"
    is_probed "$busy"
    kill -INT "$spawned"
    wait "$spawned"
    end_busy
    nothing_is_defined
}

run_case "doctor tries this way" is_doctors_way
for backend in uprobe auto; do
    run_case "threads, --backend $backend" both_ways "threads-$backend" --backend "$backend" -- "$PROGRAMS/forty"
done
run_case "children" both_ways children --backend uprobe -- "$PROGRAMS/forks"
run_case "--returns sites" both_ways sites --backend uprobe --returns sites -- "$PROGRAMS/forty"
run_case "--returns probe is refused" return_probes
run_case "libraries, of which one is loaded later" both_ways libraries --backend uprobe \
    --images 'main,*libm.so*,*libcrypt*' -- "$PROGRAMS/call_lines"
run_case "a running process" running_process attached --budget none
run_case "within a budget" within_a_budget
run_case "kill -9 of the recorder" killed_recorder
run_case "beside another recorder" another_recorder
run_case "no definition is left" nothing_is_defined
finish
