#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The odd/even sort of the DiffTrace papers with 16 ranks: the demo, and what the papers say about it.
. "$(dirname "$0")/lib.sh"
needs_capture

demo() {
    O=$(dirname "$TRACECTL") TRACECTL_DEMO_STORE=$STORE "$ROOT/tools/demo"
}

every_rank_has_its_loop() {
    local rank loop count
    "$TRACECTL" --json nlr normal --filter mpi >"$WORK/nlr.json"
    same '["MPI_Send","MPI_Recv"]' "$(json_get loops.L0 <"$WORK/nlr.json")"
    same '["MPI_Recv","MPI_Send"]' "$(json_get loops.L1 <"$WORK/nlr.json")"
    for ((rank = 0; rank < 16; rank++)); do
        loop=L$((rank % 2)) count=16
        ((rank > 0 && rank < 15)) || count=8
        same "$rank.0" "$(json_get "threads.$rank.thread" <"$WORK/nlr.json")"
        same '["MPI_Init","MPI_Comm_rank","MPI_Comm_size",{"count":'"$count"',"loop":"'"$loop"'"},"MPI_Finalize"]' \
            "$(json_get "threads.$rank.entries" <"$WORK/nlr.json")"
    done
}

entries_of_rank_5() { # run
    "$TRACECTL" --json nlr "$1" 5.0 --filter mpi | "$E2E/json" get threads.0.entries | tr -d '{}"[]' |
        sed -E 's/count:([0-9]+),loop:(L[0-9]+)/\1x\2/g'
}

rank_5_swaps() {
    # A run's own table numbers its loops: what matters is 7 of the one and 9 of the other.
    entries_of_rank_5 swap
    same "MPI_Init,MPI_Comm_rank,MPI_Comm_size,7xL1,9xL0,MPI_Finalize" "$(entries_of_rank_5 swap)"
}

rank_5_is_stuck() {
    entries_of_rank_5 deadlock
    same "MPI_Init,MPI_Comm_rank,MPI_Comm_size,7xL1,MPI_Recv" "$(entries_of_rank_5 deadlock)"
    same MPI_Recv "$(q "SELECT replace(name, '@plt', '') AS name FROM open_calls WHERE run_id = $(run_id deadlock)
        AND thread = '5.0' ORDER BY depth DESC LIMIT 1")"
}

rank_5_is_suspect() { # faulty run
    local status=0
    "$TRACECTL" --json diff normal "$1" --filter mpi >"$WORK/diff.json" || status=$?
    same 1 "$status"
    json_get suspects <"$WORK/diff.json"
    same 5.0 "$(json_get suspects.0.thread <"$WORK/diff.json")"
}

ranks_are_labels() {
    same 16 "$(q "SELECT count(*) AS n FROM processes p JOIN threads t USING (process_id) WHERE p.run_id = $(run_id normal)
        AND p.rank >= 0 AND t.label = p.rank || '.0'")"
}

run_case "the demo" demo
run_case "ranks are the P of P.T" ranks_are_labels
run_case "every rank has its loop" every_rank_has_its_loop
run_case "swapBug: rank 5 does L1^7 L0^9" rank_5_swaps
run_case "dlBug: rank 5 does L1^7 and stays in MPI_Recv" rank_5_is_stuck
run_case "swapBug: rank 5 is the first suspect" rank_5_is_suspect swap
run_case "nothing is damaged" "$TRACECTL" verify
finish
