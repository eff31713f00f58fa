#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Faults of the DiffTrace papers in two MPI programs: what the recordings and diff must show of them in every run. How
# often the thread at fault leads the list of suspects is measured by tests/bench/accuracy.
. "$(dirname "$0")/lib.sh"
needs_capture
export OMP_WAIT_POLICY=passive
main_threads=$(printf '%s.0 ' {0..7})

record_ranks() { # NAME, program and arguments
    local name=$1 program=$2
    shift 2
    record "$name" --returns probe -- mpiexec -n 8 "$PROGRAMS/$program" "$@" >"$WORK/$name.out"
}

recordings() {
    local name
    record_ranks search ilcs_tsp normal
    record_ranks no_critical ilcs_tsp no-critical
    record_ranks wrong_size ilcs_tsp wrong-size
    record_ranks endless ilcs_tsp endless
    record_ranks steps leap_frog normal
    record_ranks skip leap_frog skip
    for name in search no_critical steps; do
        same 0 "$(q "SELECT exit_status FROM runs WHERE name = '$name'")"
    done
    for name in search no_critical; do
        grep -E '^length ([0-9]+), really \1$' "$WORK/$name.out"
    done
    same 40 "$(q "SELECT count(*) AS n FROM threads JOIN processes USING (process_id)
        WHERE processes.run_id = $(run_id search) AND rank >= 0")"
}

differs() { # normal run, faulty run, thread, what one_side must say, diff's options
    local normal=$1 faulty=$2 thread=$3 wanted=$4 status=0
    shift 4
    "$TRACECTL" --json diff "$normal" "$faulty" "$thread" "$@" >"$WORK/diff.json" || status=$?
    same 1 "$status"
    same "$wanted" "$("$E2E/one_side" "$thread" <"$WORK/diff.json" | paste -sd ' ')"
}

# Both filters are the papers' of table 3.5 for this bug.
unprotected_copy() {
    differs search no_critical 6.4 "normal GOMP_critical_end normal GOMP_critical_start" \
        --filter 11.mem.ompcrit.cust.0K10 --custom '^CPU_Exec$'
    same 0 "$(q "SELECT count(*) AS n FROM call_counts WHERE run_id = $(run_id no_critical) AND thread = '6.4'
        AND name LIKE 'GOMP_critical%'")"
    # The other 31 workers protect theirs.
    same 31 "$(q "SELECT count(DISTINCT thread) AS n FROM call_counts WHERE run_id = $(run_id no_critical)
        AND name LIKE 'GOMP_critical_start%' AND thread NOT LIKE '%.0'")"
}

# Calls whose return nobody saw, by the innermost call of each rank's main thread.
innermost() { # run
    q "SELECT thread || ' ' || replace(name, '@plt', '') AS line FROM open_calls o WHERE run_id = $(run_id "$1")
       AND depth = (SELECT max(depth) FROM open_calls WHERE run_id = o.run_id AND thread = o.thread) ORDER BY thread" |
        grep -E '^[0-7]\.0 '
}

collective_never_returns() {
    local thread
    innermost wrong_size
    same 8 "$(innermost wrong_size | grep -c MPI_Allreduce)"
    for thread in $main_threads; do
        "$TRACECTL" diff search wrong_size "$thread" --filter mpi >"$WORK/diff" || true
        grep -E ' MPI_Allreduce  <- never returned$' "$WORK/diff"
        grep -E '^< MPI_Finalize$' "$WORK/diff"
    done
}

endless_turn() {
    differs search endless 3.0 "normal MPI_Finalize" --filter mpi
    differs search endless 3.2 "" --filter ompcrit --custom '^CPU_Exec$'
    # It calls CPU_Exec on and on in its fifth turn; its process never comes out of the parallel region.
    same 1 "$(q "SELECT sum(calls * (name = 'CPU_Exec')) >= 5 AND sum(calls * (name LIKE 'GOMP_critical_start%')) <= 4 AS n
        FROM call_counts WHERE run_id = $(run_id endless) AND thread = '3.2'")"
    innermost endless
    innermost endless | grep -x '3.0 GOMP_parallel'
    same 7 "$(innermost endless | grep -c MPI_Finalize)"
}

skipped_step() {
    local wanted
    wanted="normal LagrangeElements normal LagrangeLeapFrog normal LagrangeNodal normal MPI_Finalize"
    wanted+=" normal MPI_Irecv normal MPI_Isend normal MPI_Waitall"
    differs steps skip 2.0 "$wanted" --filter mpi --custom '^Lagrange'
    innermost skip
    # The neighbours of rank 2 wait for it in the first exchange.
    same "0.0 3.0 6.0" "$(q "SELECT thread FROM open_calls WHERE run_id = $(run_id skip) AND name = 'CalcForceForNodes'
        ORDER BY thread" | paste -sd ' ')"
}

no_false_alarm() { # the loop of time steps is the same in every run
    record_ranks steps_again leap_frog normal
    "$TRACECTL" diff steps steps_again --filter mpi --custom '^(Lagrange|Comm|Calc)'
}

run_case "two programs and their faults are recorded" recordings
run_case "a copy without its critical section" unprotected_copy
run_case "a collective with the wrong size: all ranks stay in it" collective_never_returns
run_case "a worker that turns for ever" endless_turn
run_case "a rank that skips the time step: its neighbours wait" skipped_step
run_case "two runs of a deterministic MPI program: no difference" no_false_alarm
finish
