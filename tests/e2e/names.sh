#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A function is found by any of its names, compared by one of them, and what nothing matches is reported.
. "$(dirname "$0")/lib.sh"
needs_capture

gcc -D_GNU_SOURCE -O1 -fno-builtin -o "$WORK/calls" "$ROOT/tests/programs/library_calls.c"

calls() { # run: "NAME CALLS" of each function
    q "SELECT name || ' ' || sum(calls) AS n FROM call_counts WHERE run_id = $(run_id "$1") GROUP BY name" | sort | paste -sd ' '
}

of_libc() { # run, options of record...
    local run=$1
    shift
    record "$run" --images 'libc.so.6' "$@" -- "$WORK/calls" >"$WORK/out"
}

# libc has one function for each of these, and a name of its own for it.
as_asked() {
    of_libc public --functions '^(puts|pread64|getppid)$'
    same "getppid 20 pread64 3 puts 1" "$(calls public)"
    of_libc private --functions '^(_IO_puts|__pread64|getppid)$'
    same "_IO_puts 1 __pread64 3 getppid 20" "$(calls private)"
}

# strlen is an indirect function: it is called by its implementations' addresses, by the program and by libc itself.
implementations() {
    of_libc strlen --functions '^strlen$'
    same 30 "$(q "SELECT sum(calls * iif(name = 'strlen', 1, -1)) AS n FROM call_counts WHERE run_id = $(run_id strlen)")"
}

# Two runs that asked for the same functions by other names.
compared_by_one_name() {
    "$TRACECTL" diff public private --json | grep -F '"suspects": [],'
}

filters_of_stored_runs() {
    "$TRACECTL" nlr private --custom '^puts$' | grep -F _IO_puts
    "$TRACECTL" nlr public --custom '^_IO_puts$' | grep -F puts
    ! "$TRACECTL" nlr public --filter '!/^_IO_puts$/' | grep -F puts || fail "excluded by its other name"
}

excluded() {
    of_libc excluded --functions '^(puts|getppid)$' --exclude '^_IO_puts$'
    same "getppid 20" "$(calls excluded)"
}

reported() { # expected line, options of record...
    local wanted=$1
    shift
    "$TRACECTL" record "$@" >/dev/null 2>"$WORK/err" || echo "status $?"
    grep -F "$wanted" "$WORK/err" || fail "$(cat "$WORK/err")"
}

nothing_matches() {
    fails_with 3 "$TRACECTL" record --functions no_such -- "$WORK/calls"
    grep -F "no function matches --functions 'no_such' (" "$WORK/fails.err" | grep -F "functions in $WORK/calls)"
    reported "note: no function matches --functions 'no_such'" --functions '^(puts|no_such)$' -- "$WORK/calls"
    reported "note: no function matches --filter 'mpi'" --filter mem,mpi -- "$WORK/calls"
    reported "note: no image matches --images 'libnone*'" --images 'main,libnone*' -- "$WORK/calls"
    reported "no image matches --images 'libnone*'" --images 'libnone*' -- "$WORK/calls"
    reported "no function matches --filter 'mpi' (" --filter mpi -- sh -c "$WORK/calls; exit 0"
    grep -F "functions in $WORK/calls; none in" "$WORK/err"
    "$TRACECTL" record -n partly --functions '^(puts|no_such)$' -- "$WORK/calls" >/dev/null
    same "--functions 'no_such'" "$(q "SELECT value AS n FROM tags WHERE run_id = $(run_id partly) AND key = 'no function matches'")"
}

mpi() {
    cat >"$WORK/mpi.c" <<'EOF'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 5; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
EOF
    mpicc -O1 -fno-plt -o "$WORK/mpi" "$WORK/mpi.c"
    record mpi --filter mpi -- mpirun -n 2 "$WORK/mpi"
    same "MPI_Barrier@plt 10 MPI_Finalize@plt 2 MPI_Init@plt 2" "$(calls mpi)"
    record mpi-library --images 'libmpi*' --filter mpi -- mpirun -n 2 "$WORK/mpi"
    same "MPI_Barrier 10 MPI_Finalize 2 MPI_Init 2" "$(calls mpi-library)"
    same "" "$(q "SELECT value AS n FROM tags WHERE run_id = $(run_id mpi) AND key LIKE 'untraced:%'")"
}

run_case "functions of libc are found by all of their names, and shown by that which was asked for" as_asked
run_case "an indirect function is found by its implementations" implementations
run_case "runs that asked for other names of the same functions do not differ" compared_by_one_name
run_case "filters of the analyses look at all names" filters_of_stored_runs
run_case "--exclude looks at all names" excluded
run_case "what nothing matches is reported" nothing_matches
run_case "MPI calls of a program without stubs, and in the library; launchers are no blind spot" mpi
finish
