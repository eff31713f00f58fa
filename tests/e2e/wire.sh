#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Calls that go packed through the ring (bpf/predict.h) are those that plain records tell: the same tree, the same
# doubts, the same losses; nothing is held back from a thread that does nothing any more.
. "$(dirname "$0")/lib.sh"
needs_capture

# All that is known of the calls of a run, a line each.
calls_of() { # name of the run
    q "SELECT t.label || ' ' || c.seq || ' ' || coalesce(c.end_seq, '-') || ' ' || coalesce(c.parent_seq, '-') || ' ' ||
         c.depth || ' ' || f.name || ' ' || c.state || ' ' || c.assumed AS line
       FROM calls c JOIN functions f USING (function_id) JOIN threads t USING (thread_id)
       WHERE c.run_id = $(run_id "$1") ORDER BY t.label, c.seq"
}

ring_bytes() { # name of the run
    q "SELECT value FROM tags WHERE run_id = $(run_id "$1") AND key = 'ring bytes'"
}

both_tell_the_same() { # options of record and the command...
    local name=${*##*/} wire
    name=${name// /_}_${2:-}
    for wire in plain packed; do
        record "${name}_$wire" --backend uprobe --wire "$wire" "$@" >/dev/null
        calls_of "${name}_$wire" >"$WORK/$wire"
        same 0 "$(q "SELECT total(count) AS n FROM losses WHERE run_id = $(run_id "${name}_$wire")" | sed 's/\.0$//')"
    done
    [[ -s $WORK/plain ]]
    cmp "$WORK/plain" "$WORK/packed" || diff "$WORK/plain" "$WORK/packed" | head -20
    cmp -s "$WORK/plain" "$WORK/packed"
}

few_bytes_go_through_the_ring() {
    local wire
    for wire in plain packed; do
        record "bytes_$wire" --backend uprobe --wire "$wire" -- "$PROGRAMS/million" 20000 >/dev/null
    done
    (($(ring_bytes bytes_packed) * 20 < $(ring_bytes bytes_plain)))
    (($(ring_bytes bytes_packed) < $(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id bytes_packed)")))
}

calls_made() { # name of the run: recorded, and lost
    q "SELECT (SELECT count(*) FROM calls WHERE run_id = r) + (SELECT total(count) FROM losses WHERE run_id = r) AS n
       FROM (SELECT $(run_id "$1") AS r)" | sed 's/\.0$//'
}

# Made calls are recorded or lost, in a ring that holds next to nothing.
losses_are_exact() { # wire
    record all --backend uprobe --no-returns -- "$PROGRAMS/million" 100000 >/dev/null
    record "lost_$1" --backend uprobe --wire "$1" --no-returns --ring-size 4K -- "$PROGRAMS/million" 100000 >/dev/null
    same "$(calls_made all)" "$(calls_made "lost_$1")"
}

has_events() { # name of the run
    (($(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id "$1")") > 20))
}

# Few calls a second never fill a record; what there is is told all the same, before the target does anything else.
idle_threads_hold_nothing_back() {
    local target stopped
    spawn "$PROGRAMS/busy" 300 1 >/dev/null
    target=$spawned
    spawn "$TRACECTL" -q record -n idle --backend uprobe --budget none -p "$target"
    wait_until 20 has_events idle
    kill -STOP "$target"
    sleep 3
    stopped=$(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id idle)")
    kill -KILL "$target"
    wait "$spawned"
    same "$stopped" "$(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id idle)")"
}

for program in recursion callbacks tail_calls longjmp signals exceptions contexts alloca_frames forks threads; do
    run_case "$program: the same both ways" both_tell_the_same -- "$PROGRAMS/$program"
done
for program in callbacks longjmp; do
    run_case "$program, returns inferred: the same both ways" both_tell_the_same --returns infer -- "$PROGRAMS/$program"
done
run_case "a fraction of the bytes goes through the ring" few_bytes_go_through_the_ring
run_case "losses of plain records are exact" losses_are_exact plain
run_case "losses of packed records are exact" losses_are_exact packed
run_case "idle threads hold nothing back" idle_threads_hold_nothing_back
finish
