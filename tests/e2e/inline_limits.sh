#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Targets that keep waiting what puts inline probes in: frozen control groups, descriptors that are shared. The recording
# begins and ends, the others are recorded, and the target runs on.
. "$(dirname "$0")/lib.sh"
needs_capture

group=
leave_group() {
    if [[ -n $group && -d $group ]]; then
        echo 0 >"$group/cgroup.freeze"
        wait_until 60 no_processes || true
        rmdir "$group" || true
    fi
    cleanup
}
trap leave_group EXIT

no_processes() {
    [[ ! -s $group/cgroup.procs ]] || {
        while read -r pid; do kill -KILL "$pid" || true; done <"$group/cgroup.procs"
        return 1
    }
}

beats() { # file
    wc -l <"$1"
}

gets_on() { # file
    local before
    before=$(beats "$1")
    more_beats() { (($(beats "$1") > before)); }
    wait_until 60 more_beats "$1"
}

start_frozen() {
    group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/tracectl-e2e-$$
    mkdir "$group"
    cp "$PROGRAMS/busy" "$WORK/iced"
    spawn "$WORK/iced" 1000 2 >"$WORK/iced.out"
    iced=$spawned
    wait_until 60 grep -q beat "$WORK/iced.out"
    echo "$iced" >"$group/cgroup.procs"
    echo 1 >"$group/cgroup.freeze"
    spawn "$PROGRAMS/busy" 1000 2 >"$WORK/busy.out"
    busy=$spawned
    wait_until 60 grep -q beat "$WORK/busy.out"
}

calls_of() { # run, program
    q "SELECT count(*) AS n FROM events e JOIN functions f USING (function_id) JOIN images i USING (image_id)
       WHERE e.run_id = $(run_id "$1") AND i.path LIKE '%/$2'"
}

frozen_from_the_start() {
    timeout 60 "$TRACECTL" -q record -n frozen -p "$busy,$iced" --backend auto --budget none --duration 1
    (($(calls_of frozen busy) > 100))
    q "SELECT value FROM tags WHERE run_id = $(run_id frozen) AND key LIKE 'backend:%iced'" |
        grep 'control group is frozen' >/dev/null
    echo 0 >"$group/cgroup.freeze"
    gets_on "$WORK/iced.out"
    text_is_clean "$iced"
}

# Ends while one of them stands still: its code is the file's nevertheless, and its memory goes with the next recording.
frozen_at_the_end() {
    spawn "$TRACECTL" -q record -n iced -p "$busy,$iced" --backend auto --budget none
    recorder=$spawned
    wait_until 60 is_probed "$iced"
    wait_until 60 is_probed "$busy"
    echo 1 >"$group/cgroup.freeze"
    kill -INT "$recorder"
    timeout 60 tail --pid="$recorder" -f /dev/null || fail "Ctrl-C does not end it"
    text_is_clean "$busy"
    echo 0 >"$group/cgroup.freeze"
    gets_on "$WORK/iced.out"
    text_is_clean "$iced"
    record again -p "$iced" --backend inline --budget none --duration 0.2
    lacks memfd:tracectl "/proc/$iced/maps"
    kill -TERM "$iced"
    wait_until 60 grep '^unharmed' "$WORK/iced.out"
}

shared_descriptors() {
    local pid before
    spawn "$PROGRAMS/shares_files" >"$WORK/shares.out"
    pid=$spawned
    wait_until 60 grep -q beat "$WORK/shares.out"
    before=$(find "/proc/$pid/fd" -mindepth 1 | wc -l)
    timeout 60 "$TRACECTL" -q record -n shares -p "$pid" --backend auto --budget none --duration 0.5
    q "SELECT value FROM tags WHERE run_id = $(run_id shares) AND key LIKE 'backend:%shares_files'" |
        grep 'shares its descriptors' >/dev/null
    (($(calls_of shares shares_files) > 10))
    gets_on "$WORK/shares.out"
    same "$before" "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)"
    text_is_clean "$pid"
}

start_frozen
run_case "a frozen process does not keep the others waiting" frozen_from_the_start
run_case "nor does one that is frozen when the recording ends" frozen_at_the_end
run_case "descriptors that are shared with a process that takes messages away" shared_descriptors
finish
