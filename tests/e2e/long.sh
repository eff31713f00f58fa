#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A run of a hundred million events: all of them are there, and questions about a few read a few.
. "$(dirname "$0")/lib.sh"

# Balanced events: loops of several lengths.
mkdir "$WORK/part" "$WORK/long"
"$E2E/u16" make "$WORK/part" 0.0 '500*(' main '20*(' row '6*(' cell leaf - - ')' - ')' log - - ')' \
    '100*(' sort '3*(' compare - ')' '10*(' swap - ')' - ')' '10*(' idle - ')'
part=$(($(stat -c %s "$WORK/part/0.0.u16") / 2))
copies=$((100000000 / part + 1))
cp "$WORK/part/names.info" "$WORK/long"
for ((i = 0; i < copies; i++)); do cat "$WORK/part/0.0.u16"; done >"$WORK/long/0.0.u16"

import_it() {
    local peak
    "$TRACECTL" -q import --format u16 "$WORK/part" -n part
    peak=$("$E2E/peak_memory" "$TRACECTL" -q import --format u16 "$WORK/long" -n long)
    rm "$WORK/long/0.0.u16"
    echo "$peak KiB"
    ((peak < 65536))
}

every_event() {
    same $((copies * part)) "$(q "SELECT count(*) AS n FROM events WHERE run_id = 2")"
    "$TRACECTL" verify
}

calls_are_counted_without_decoding() {
    same "0|1" "$(q "SELECT decoded_segments() || '|' || (
        (SELECT sum(calls) FROM call_counts WHERE run_id = 2) = $copies * (SELECT sum(calls) FROM call_counts WHERE run_id = 1))
        AS n")"
}

# The parts are the same, so their events are; one segment is read of each run.
one_event_is_one_segment() {
    local seq
    for seq in 0 1 $((part / 2)) $((part - 1)); do
        same 1 "$(q "SELECT (SELECT kind || function_id || depth FROM events WHERE run_id = 1 AND seq = $seq)
            = (SELECT kind || function_id || depth FROM events WHERE run_id = 2 AND seq = $((77 * part + seq))) AS n")"
        same 2 "$(q "SELECT decoded_segments() AS n FROM events WHERE seq = $((77 * part + seq)) AND run_id = 2
            AND (SELECT count(*) FROM events WHERE run_id = 1 AND seq = $seq)")"
    done
}

run_case "a hundred million events are imported in bounded memory" import_it
run_case "every event is there" every_event
run_case "calls are counted without decoding" calls_are_counted_without_decoding
run_case "one event is one segment" one_event_is_one_segment
finish
