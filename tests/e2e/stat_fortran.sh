#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tracectl stat on Fortran: lines, loops and the names of their variables.
. "$(dirname "$0")/lib.sh"
needs_capture

thread_1_is_behind() {
    "$TRACECTL" --json stat -p "$spawned" >"$WORK/order.json" 2>"$WORK/err" &&
        [[ $(json_get behind.threads.0 <"$WORK/order.json") == 0.1 ]]
}

line_of() { # text
    grep -n "$1" "$E2E/../programs/heat.f90" | cut -d: -f1
}

threads() { # level of optimisation
    "$PROGRAMS/heat_$1" &
    spawned=$!
    echo "$spawned" >>"$WORK/pids"
    wait_until 20 thread_1_is_behind
    kill "$spawned"
    wait "$spawned" 2>/dev/null || true
    same 1 "$(json_get behind.count <"$WORK/order.json")"
    same __plate_MOD_sweep "$(json_get behind.function <"$WORK/order.json")"
    same "$(line_of 'call wait_for_ever.*' | head -1)" "$(json_get behind.line <"$WORK/order.json")"
    same heat.f90 "$(basename "$(json_get behind.file <"$WORK/order.json")")"
    same 2 "$(json_get behind.iterations.0 <"$WORK/order.json")"
    same 3 "$(json_get behind.variables.turn <"$WORK/order.json")"
}

not_optimised() {
    threads O0
    same 4 "$(json_get behind.iterations.1 <"$WORK/order.json")"
    same 5 "$(json_get behind.variables.row <"$WORK/order.json")"
}

run_case "a nest of loops, not optimised" not_optimised
run_case "a nest of loops, optimised" threads O2
finish
