#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Bounded memory: what a command needs does not grow with the length of the trace.
. "$(dirname "$0")/lib.sh"

mkdir "$WORK/small" "$WORK/large"
"$E2E/u16" random "$WORK/small" 0.0 100000 5
"$E2E/u16" random "$WORK/large" 0.0 4000000 5
"$TRACECTL" -q import --format u16 "$WORK/small" -n small

flat() { # what 'RUN' stands for in the command is replaced
    local small large
    small=$("$E2E/peak_memory" "${@//RUN/1}")
    large=$("$E2E/peak_memory" "${@//RUN/2}")
    echo "$small KiB for 100,000 events, $large KiB for 4,000,000"
    ((large < small + 12288))
}

import_is_flat() {
    local small large
    small=$("$E2E/peak_memory" "$TRACECTL" -q -d "$WORK/one.db" import --format u16 "$WORK/small")
    large=$("$E2E/peak_memory" "$TRACECTL" -q import --format u16 "$WORK/large" -n large)
    echo "$small KiB for 100,000 events, $large KiB for 4,000,000"
    ((large < small + 16384))
}

all_events_are_there() {
    same 4000000 "$(q "SELECT count(*) AS n FROM events WHERE run_id = 2")"
}

recorded_million() {
    local small large
    small=$("$E2E/peak_memory" "$TRACECTL" -q record -n thousand -- "$PROGRAMS/million" 1000)
    large=$("$E2E/peak_memory" "$TRACECTL" -q record -n million --functions '^(row|cell|leaf)$' -- "$PROGRAMS/million")
    echo "$small KiB for 1000 calls, $large KiB for 1,000,000"
    # The ring buffer is part of it: touched as far as it was ever filled.
    ((large < small + 65536))
    same 1000000 "$(q "SELECT sum(calls) AS n FROM call_counts WHERE run_id = $(run_id million)")"
    # Every call has returned, but for the last ones, whose returns nothing follows that would show them.
    same 2000000 "$(q "SELECT (SELECT count(*) FROM events WHERE run_id = $(run_id million) AND kind <> 'lost') +
        (SELECT count(*) FROM open_calls WHERE run_id = $(run_id million) AND state = 'unknown') AS n")"
}

# Different programs of 16 MB, one after the other, and one of them again in the end.
run_copies() { # run, how many
    cat >"$WORK/copies.sh" <<END
for i in \$(seq "$2"); do
    cp "$WORK/heavy" "$WORK/copy"
    echo "\$i" >>"$WORK/copy"
    "$WORK/copy"
    [ "\$i" != 1 ] || cp "$WORK/copy" "$WORK/again"
    rm "$WORK/copy"
done
"$WORK/again"
END
    "$E2E/peak_memory" "$TRACECTL" -q record -n "$1" --backend uprobe --functions '^turn$' -- sh "$WORK/copies.sh"
}

many_programs() {
    local few many
    cat >"$WORK/heavy.c" <<'END'
static volatile char weight[16 << 20] = {1};
__attribute__((noinline)) static int turn(int n) { return weight[n]; }
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += turn(i);
    return sum != 1;
}
END
    gcc -O1 -g -o "$WORK/heavy" "$WORK/heavy.c"
    few=$(run_copies few 3)
    many=$(run_copies many 15)
    echo "$few KiB for 3 programs, $many KiB for 15"
    ((many < few + 65536))
    same 1600 "$(q "SELECT sum(calls) AS n FROM call_counts WHERE run_id = $(run_id many) AND name = 'turn'")"
    same 0 "$(q "SELECT count(*) AS n FROM losses WHERE run_id = $(run_id many)")"
}

# Many segments in place of one, and the same calls in them.
little_memory_for_compressing() {
    local peak calls="SELECT name, sum(calls) FROM call_counts WHERE run_id ="
    "$TRACECTL" -q --json record -n much --functions '^(row|cell|leaf)$' -- "$PROGRAMS/million" 100000 >"$WORK/much"
    "$TRACECTL" -q --json record -n little --memory 40K --functions '^(row|cell|leaf)$' -- "$PROGRAMS/million" 100000 \
        >"$WORK/little"
    same 0 "$(json_get segments_closed_early <"$WORK/much")"
    (($(json_get segments_closed_early <"$WORK/little") > 3))
    peak=$(json_get memory_peak_bytes <"$WORK/little")
    echo "$peak bytes, $(json_get memory_peak_bytes <"$WORK/much") without a limit"
    ((peak > 10000 && peak < 80000))
    same "$(q "$calls $(run_id much) GROUP BY name")" "$(q "$calls $(run_id little) GROUP BY name")"
    same "$(json_get segments_closed_early <"$WORK/little")" \
        "$(q "SELECT value FROM tags WHERE run_id = $(run_id little) AND key = 'segments closed early'")"
    "$TRACECTL" verify
}

run_case "import is flat" import_is_flat
run_case "the events are there" all_events_are_there
run_case "query of all events as a table" flat "$TRACECTL" query "SELECT seq, kind, function_id FROM events WHERE run_id = RUN"
run_case "query of all events as CSV" flat "$TRACECTL" query --csv "SELECT * FROM events WHERE run_id = RUN"
run_case "query of all events as JSON" flat "$TRACECTL" query --json "SELECT seq, kind FROM events WHERE run_id = RUN"
run_case "query of all calls" flat "$TRACECTL" query --csv "SELECT seq, parent_seq, end_seq FROM calls WHERE run_id = RUN"
run_case "verify" flat "$TRACECTL" verify
needs_capture
run_case "recording a million calls" recorded_million
run_case "recording many programs, one after the other" many_programs
run_case "recording with little memory" little_memory_for_compressing
finish
