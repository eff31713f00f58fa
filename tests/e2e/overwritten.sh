#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs that overwrite the probes in their code: the program is unharmed, and the recording names the functions
# whose calls are missing from then on.
. "$(dirname "$0")/lib.sh"
needs_capture

has_calls() { # name of a run, while it is recorded
    [[ $(q "SELECT count(*) > 0 AS n FROM events WHERE run_id = $(run_id "$1")") == 1 ]]
}

# Starts a program that reads lines from $WORK/lines, and a recording of it; ends the recording when the program has
# printed its result.
record_attached() { # NAME, record's options...
    local name=$1 recorder target
    shift
    mkfifo "$WORK/$name.lines"
    exec 9<>"$WORK/$name.lines"
    "$PROGRAMS/overwrites" <"$WORK/$name.lines" >"$WORK/$name.out" &
    target=$!
    echo "$target" >>"$WORK/pids"
    spawn "$TRACECTL" -q record -n "$name" "$@" -p "$target"
    recorder=$spawned
    wait_until 60 has_calls "$name"
    echo >&9
    wait_until 60 test -s "$WORK/$name.out"
    kill -INT "$recorder"
    wait "$recorder"
    text_is_clean "$target"
    echo >&9
    wait "$target"
    exec 9>&-
    same "0 wrong" "$(cat "$WORK/$name.out")"
}

# Functions of a run that are blind from some time on, with the causes.
blind_since() { # name of the run
    q "SELECT f.name || ': ' || cause AS line FROM blind JOIN functions f USING (function_id)
       WHERE run_id = $(run_id "$1") AND from_ns > 0 AND from_ns < (SELECT ended_ns FROM runs
       WHERE run_id = $(run_id "$1")) ORDER BY line"
}

are_named() { # backend
    record_attached "$1" --backend "$1" --budget none
    blind_since "$1" >"$WORK/named"
    grep -qx "by_advice: a process has overwritten its probe" "$WORK/named"
    grep -qx "by_memory_file: a process has overwritten its probe" "$WORK/named"
    # The last call of these is missing, and of no others.
    same "$(q "SELECT f.name || ': a process has overwritten its probe' AS line FROM calls JOIN functions f
        USING (function_id) WHERE run_id = $(run_id "$1") AND f.name LIKE 'by_%' GROUP BY f.name HAVING count(*) <
        (SELECT count(*) FROM calls JOIN functions u USING (function_id) WHERE run_id = $(run_id "$1")
        AND u.name = 'untouched') ORDER BY line")" "$(cat "$WORK/named")"
    same "a process has overwritten probes" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id "$1")
        AND cause LIKE '%overwritten%'")"
}

for backend in uprobe inline; do
    run_case "functions whose probes a program overwrites are named, others are not ($backend)" are_named "$backend"
done
finish
