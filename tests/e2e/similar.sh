#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# jsm and lattice: compared with what Python makes of the loop summaries that nlr gives. On imported traces.
. "$(dirname "$0")/lib.sh"

# The odd/even sort of four ranks, as in table 3.4 and figures 3.3 and 3.4 of the dissertation.
make_sort() {
    local begin='main MPI_Init - MPI_Comm_size - MPI_Comm_rank - sort' end='- MPI_Finalize - -'
    local even='MPI_Send - MPI_Recv -' odd='MPI_Recv - MPI_Send -'
    mkdir "$WORK/sort"
    # shellcheck disable=SC2086 # words are wanted
    {
        "$E2E/u16" make "$WORK/sort" 0.0 $begin '2*(' $even ')' $end
        "$E2E/u16" make "$WORK/sort" 1.0 $begin '4*(' $odd ')' $end
        "$E2E/u16" make "$WORK/sort" 2.0 $begin '4*(' $even ')' $end
        "$E2E/u16" make "$WORK/sort" 3.0 $begin '2*(' $odd ')' $end
    }
    "$TRACECTL" -q import --format u16 "$WORK/sort" -n sort
}

# Threads of three processes, out of nested loops and noise; two of them do the same, one does nothing.
make_random() {
    local thread
    mkdir "$WORK/random"
    for thread in 0.0 0.1 0.2 1.0 1.1 2.0 10.0; do
        "$E2E/u16" random "$WORK/random" "$thread" 1500 "$((${thread/./} + 1))"
    done
    cp "$WORK/random/1.1.u16" "$WORK/random/2.1.u16"
    : >"$WORK/random/10.1.u16"
    "$TRACECTL" -q import --format u16 "$WORK/random" -n random
}
make_sort
make_random

agrees() { # jsm or lattice, run, kind, threads or processes, options...
    local command=$1 run=$2 kind=$3 what=$4 full=()
    shift 4
    [[ $command == jsm ]] || full=(--full)
    [[ $what == threads ]] || full+=(--processes)
    "$TRACECTL" --json nlr "$run" "$@" >"$WORK/nlr.json"
    "$TRACECTL" --json "$command" "$run" --attributes "$kind" "${full[@]}" "$@" >"$WORK/result.json"
    "$E2E/similar_check" "${command/jsm/matrix}" "$kind" "$what" "$WORK/nlr.json" "$WORK/result.json"
}

matrices() {
    local kind
    for kind in sing.actual sing.log10 sing.noFreq doub.actual doub.log10 doub.noFreq; do
        agrees jsm random "$kind" threads --custom '^function_.$'
    done
    agrees jsm random sing.actual processes
    agrees jsm random doub.log10 processes --custom '^function_1' --k 3
    agrees jsm sort sing.actual threads --filter mpi
}

lattices() {
    agrees lattice random sing.noFreq threads
    agrees lattice random sing.actual threads --custom '^function_1' --k 3
    agrees lattice random doub.log10 processes
    agrees lattice sort sing.noFreq threads --filter mpi
}

# A thread that cannot be read: no attribute is made of that, and it is said.
lost_events() {
    cp "$STORE" "$WORK/damaged.db"
    sqlite3 "$WORK/damaged.db" "UPDATE segments SET data = zeroblob(length(data)) WHERE segment_id = (SELECT
        min(segment_id) FROM segments JOIN threads USING (thread_id) WHERE label = '1.0' AND segments.run_id = 1)"
    agrees jsm "$WORK/damaged.db:sort" sing.noFreq threads
    agrees jsm "$WORK/damaged.db:sort" doub.actual threads
    same 1.0 "$(json_get unknown.0.thread <"$WORK/result.json")"
    "$TRACECTL" jsm "$WORK/damaged.db:sort" | grep '^unknown: thread 1.0 '
    "$TRACECTL" lattice "$WORK/damaged.db:sort" | grep '^unknown: thread 1.0 '
}

as_in_the_paper() {
    "$TRACECTL" lattice sort --filter mpi >"$WORK/lattice"
    cat "$WORK/lattice"
    head -n 1 "$WORK/lattice" | grep -x '4 threads, 6 attributes, 4 concepts'
    grep -A 1 '^C0  4 threads$' "$WORK/lattice" | grep -x '    share  MPI_Init, MPI_Comm_size, MPI_Comm_rank, MPI_Finalize'
    grep -A 2 '^C1  2 threads, below C0$' "$WORK/lattice" | grep -x '    threads  0.0, 2.0'
    grep -A 2 '^C2  2 threads, below C0$' "$WORK/lattice" | grep -x '    threads  1.0, 3.0'
    grep -x 'C3  no threads, below C1, C2' "$WORK/lattice"
    "$TRACECTL" jsm sort --filter mpi >"$WORK/jsm"
    cat "$WORK/jsm"
    same "0.0 1 0.67 1 0.67" "$(sed -n 2p "$WORK/jsm" | xargs)"
}

as_csv() {
    "$TRACECTL" jsm sort --filter mpi --attributes sing.actual --csv >"$WORK/jsm.csv"
    python3 - "$WORK/jsm.csv" <<'END'
import csv, sys
rows = list(csv.reader(open(sys.argv[1])))
labels = ["0.0", "1.0", "2.0", "3.0"]
# Of six attributes, two ranks of the same parity and different lengths share the four that are no loops.
assert rows[0] == ["thread", *labels] and [row[0] for row in rows[1:]] == labels, rows
assert [[float(cell) for cell in row[1:]] for row in rows[1:]] == [
    [1.0 if i == j else 4 / 6 for j in range(4)] for i in range(4)], rows
END
}

# Graphviz understands it, and it has the concepts and covers of the lattice.
as_graph() {
    "$TRACECTL" lattice sort --filter mpi --dot | dot -Tplain >"$WORK/plain"
    cat "$WORK/plain"
    same 4 "$(grep -c '^node ' "$WORK/plain")"
    same "C0-C1 C0-C2 C1-C3 C2-C3" "$(awk '/^edge/ { print $2 "-" $3 }' "$WORK/plain" | sort | xargs)"
    grep '^node C1 .*threads 0.0, 2.0' "$WORK/plain"
}

# A terminal of eighty columns has no room for a hundred threads.
too_large_for_a_terminal() {
    local thread
    mkdir "$WORK/many"
    "$E2E/u16" make "$WORK/many" 0.0 work -
    for ((thread = 1; thread < 100; thread++)); do
        cp "$WORK/many/0.0.u16" "$WORK/many/0.$thread.u16"
    done
    "$TRACECTL" -q -d "$WORK/many.db" import --format u16 "$WORK/many" -n many
    echo end | "$E2E/terminal" "$TRACECTL" -d "$WORK/many.db" jsm many >"$WORK/terminal"
    cat "$WORK/terminal"
    grep ' of 100 threads do not fit on the screen' "$WORK/terminal"
    (($(awk '{ print length }' "$WORK/terminal" | sort -n | tail -n 1) < 121))
    same 101 "$("$TRACECTL" -d "$WORK/many.db" jsm many | awk 'NF == 101 || NF == 100' | wc -l)"
}

usage_error() { # arguments...
    local status=0
    "$TRACECTL" "$@" || status=$?
    same 2 "$status"
}

refusals() {
    fails_with 3 "$TRACECTL" lattice random --attributes sing.actual --max-concepts 10
    fails_with 3 "$TRACECTL" jsm nonesuch
    usage_error jsm sort --attributes sing
    usage_error jsm sort --csv --json
    usage_error lattice sort --max-concepts 0
    usage_error lattice sort --filter nonesuch
    usage_error lattice
}

run_case "jsm agrees with sets in Python" matrices
run_case "lattice agrees with a closure in Python" lattices
run_case "lost events are no attributes" lost_events
run_case "the dissertation's example" as_in_the_paper
run_case "jsm as comma-separated values" as_csv
run_case "lattice for Graphviz" as_graph
run_case "a matrix that is too large for the terminal" too_large_for_a_terminal
run_case "what is refused" refusals
finish
