#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The same program has the same labels and parents in every recording, whatever is recorded and how, though it makes
# processes and threads in its first milliseconds and they call in another order. REPEAT: recordings of each kind (3).
. "$(dirname "$0")/lib.sh"
needs_capture

repeat=${REPEAT:-3}

# What each thread has called of the program's own, with its label and that of its parent's main thread.
told() { # run
    q "SELECT t.label || ' of ' || coalesce((SELECT label FROM threads m WHERE m.process_id = p.parent_process_id
           AND label LIKE '%.0'), '-') || coalesce(' ' || c.name || ' ' || c.calls, '') AS line
       FROM threads t JOIN processes p USING (process_id)
       LEFT JOIN call_counts c ON c.run_id = t.run_id AND c.thread = t.label AND c.name LIKE 'work_%'
       WHERE t.run_id = $1 AND t.label <> '2.0' ORDER BY line"
}

# A process that has stood still for its probes for too long is let go, and that is said: the machine is too busy.
record_in_time() { # name, options of record...
    local attempt
    for attempt in 1 2 3 4 5; do
        record "$@" -- "$PROGRAMS/births" >/dev/null
        [[ $(q "SELECT cause FROM losses WHERE run_id = $(run_id "$1")") == *"before its probes"* ]] || return 0
        echo "attempt $attempt: too slow"
    done
    fail "this machine is too busy"
}

same_every_time() { # name, options of record...
    local name=$1 i
    shift
    for ((i = 1; i <= repeat; i++)); do
        record_in_time "$name$i" "$@"
        told "$(run_id "$name$i")" | diff "$WORK/wanted" -
        same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id "$name$i")")"
        if ((i > 1)); then
            "$TRACECTL" diff "${name}1" "$name$i" >"$WORK/diff" || fail "$(cat "$WORK/diff")"
        fi
    done
}

# Process 2 calls nothing of its own: it is there in recordings of libraries alone.
cat >"$WORK/wanted" <<'END'
0.0 of - work_main 10
0.1 of -
0.2 of - work_thread 20
0.3 of - work_thread 30
1.0 of 0.0 work_last 100
3.0 of 1.0 work_nested 300
4.0 of 0.0 work_first 400
5.0 of 0.0
5.1 of 0.0 work_executed 55
END

run_case "by default" same_every_time default
run_case "with return probes" same_every_time probe --returns probe
run_case "with the kernel's probes" same_every_time uprobe --backend uprobe
run_case "with inline probes alone" same_every_time inline --backend inline
run_case "by ptrace" same_every_time ptrace --life-cycle ptrace
run_case "with exact returns" same_every_time exact --returns exact
run_case "with exact returns by the kernel's probes" same_every_time sites --returns exact --backend uprobe
run_case "with libraries" same_every_time all --images all
run_case "with the time of each call" same_every_time full --time full
finish
