#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The commands that ask a store: runs, show, query, calls, top, nlr, diff, rank, rm. On imported traces with the shape of
# the odd/even sort of four ranks, so that nothing has to be recorded.
. "$(dirname "$0")/lib.sh"

# One rank's trace: its exchanges as words for u16.
make_run() { # directory, what rank 1 does
    local dir=$WORK/$1 begin='main MPI_Init - MPI_Comm_rank - MPI_Comm_size - sort' end='- MPI_Finalize - -'
    local send_first='MPI_Send - MPI_Recv -' receive_first='MPI_Recv - MPI_Send -'
    mkdir "$dir"
    # shellcheck disable=SC2086 # words are wanted
    {
        "$E2E/u16" make "$dir" 0.0 $begin '4*(' $send_first ')' $end
        "$E2E/u16" make "$dir" 1.0 $begin $2
        "$E2E/u16" make "$dir" 2.0 $begin '8*(' $send_first ')' $end
        "$E2E/u16" make "$dir" 3.0 $begin '4*(' $receive_first ')' $end
    }
    "$TRACECTL" -q import --format u16 "$dir" -n "$1"
}
make_run normal '8*( MPI_Recv - MPI_Send - ) - MPI_Finalize - -'
make_run same '8*( MPI_Recv - MPI_Send - ) - MPI_Finalize - -'
make_run swapped '3*( MPI_Recv - MPI_Send - ) 5*( MPI_Send - MPI_Recv - ) - MPI_Finalize - -'
make_run stuck '3*( MPI_Recv - MPI_Send - ) MPI_Recv'

list_of_runs() {
    "$TRACECTL" runs
    "$TRACECTL" --json runs >"$WORK/runs.json"
    same normal "$(json_get 0.name <"$WORK/runs.json")"
    same 4 "$(json_get 3.run <"$WORK/runs.json")"
    json_get 0.command <"$WORK/runs.json"
    json_get 0.started <"$WORK/runs.json"
    (($(json_get 0.stored_bytes <"$WORK/runs.json") > 0))
    same "$(q 'SELECT count(*) AS n FROM events WHERE run_id = 1')" "$(json_get 0.events <"$WORK/runs.json")"
}

names_of_runs() {
    same "$("$TRACECTL" show 4)" "$("$TRACECTL" show stuck)"
    same "$("$TRACECTL" show 4)" "$("$TRACECTL" show latest)"
    same "$("$TRACECTL" show swapped)" "$("$TRACECTL" show latest~1)"
    same "$("$TRACECTL" show normal)" "$("$TRACECTL" -d "$WORK/other.db" show "$STORE:normal")"
    "$TRACECTL" --json show stuck | "$E2E/json" get threads >/dev/null
    fails_with 3 "$TRACECTL" show nonesuch
    fails_with 3 "$TRACECTL" show latest~9
    fails_with 3 "$TRACECTL" show 77
}

progress_and_folding() { # ranks 0 and 2 send first, rank 0 half as often; so do ranks 3 and 1, the other way round
    "$TRACECTL" --json nlr normal --filter mpi >"$WORK/nlr.json"
    same '4 8 0.5 1' "$(for key in iterations furthest share peers; do
        json_get "threads.0.progress.$key" <"$WORK/nlr.json"
    done | paste -sd ' ')"
    same 'L0 L1' "$(json_get threads.2.progress.loop <"$WORK/nlr.json") $(json_get threads.1.progress.loop <"$WORK/nlr.json")"
    "$TRACECTL" nlr normal --filter mpi | grep -E '^thread 3.0 .*, 4 of 8 iterations of its 1 peer$'
    "$TRACECTL" nlr normal --custom '^MPI_I' >"$WORK/nlr"
    grep -E '^threads 0.0, 1.0, 2.0, 3.0  [0-9]+ to [0-9]+ events, 1 kept, 1 entries$' "$WORK/nlr"
    same 1 "$(grep -c MPI_Init "$WORK/nlr")"
    "$TRACECTL" nlr normal 2.0 --custom '^MPI_I' | grep -E '^thread 2.0  '
}

queries() {
    same "8" "$(q "SELECT count(*) AS n FROM events e JOIN functions f USING (function_id) JOIN threads t
        USING (thread_id) WHERE e.run_id = 1 AND t.label = '1.0' AND kind = 'call' AND f.name = 'MPI_Send'")"
    same "8" "$(q "SELECT calls FROM call_counts WHERE run_id = 1 AND thread = '1.0' AND name = 'MPI_Send'")"
    same "sort|MPI_Recv|24" "$(q "SELECT caller, callee, calls FROM call_graph WHERE run_id = 1 AND callee = 'MPI_Recv'")"
    same "main sort MPI_Recv" "$(q "SELECT name FROM open_calls WHERE run_id = 4 ORDER BY depth" | paste -sd ' ')"
    "$TRACECTL" query "SELECT name FROM runs"
    "$TRACECTL" query --csv "SELECT run_id, name FROM runs WHERE run_id = 2" | grep -x '2,same'
    same '[{"name":"normal"}]' "$("$TRACECTL" query --json "SELECT name FROM runs WHERE run_id = 1" | tr -d ' \n')"
    same '[]' "$("$TRACECTL" query --json "SELECT name FROM runs WHERE 0" | tr -d ' \n')"
}

queries_cannot_write() {
    local before
    before=$(sqlite3 "$STORE" .dump | cksum)
    fails_with 3 "$TRACECTL" query "DELETE FROM runs"
    fails_with 3 "$TRACECTL" query "CREATE TABLE t(x)"
    fails_with 3 "$TRACECTL" query "UPDATE runs SET name = 'x'"
    same "$before" "$(sqlite3 "$STORE" .dump | cksum)"
}

plain_sqlite3() {
    same "normal same swapped stuck" "$(sqlite3 "$STORE" 'SELECT name FROM runs ORDER BY run_id' | paste -sd ' ')"
    same "1.0" "$(sqlite3 "$STORE" "SELECT label FROM threads WHERE run_id = 2 AND label LIKE '1.%'")"
    same MPI_Send "$(sqlite3 "$STORE" "SELECT name FROM functions WHERE name = 'MPI_Send'")"
    same 1 "$(sqlite3 "$STORE" "SELECT sum(event_count) > 8 FROM segments JOIN threads USING (thread_id)
        WHERE segments.run_id = 1 AND label = '1.0'")"
    sqlite3 "$STORE" 'SELECT * FROM losses, blind, tags, processes, images'
}

extension_loads() {
    local extension
    extension=$(dirname "$TRACECTL")/tracestore.so
    # A sanitized one cannot be loaded by a program that is not; unit/mutated/test_mutated_stores preloads what it needs.
    if [[ ! -f $extension ]] || ldd "$extension" | grep libasan >/dev/null; then
        extension=$ROOT/build/tracestore.so
    fi
    same 24 "$(sqlite3 "$STORE" ".load $extension" "SELECT count(*) FROM events JOIN functions USING (function_id)
        WHERE run_id = 1 AND name = 'MPI_Send' AND kind = 'call'")"
}

loops() {
    "$TRACECTL" nlr normal --filter mpi
    "$TRACECTL" --json nlr normal --filter mpi >"$WORK/nlr.json"
    same '["MPI_Send","MPI_Recv"]' "$(json_get loops.L0 <"$WORK/nlr.json")"
    same '["MPI_Recv","MPI_Send"]' "$(json_get loops.L1 <"$WORK/nlr.json")"
    same 1.0 "$(json_get threads.1.thread <"$WORK/nlr.json")"
    same '["MPI_Init","MPI_Comm_rank","MPI_Comm_size",{"count":8,"loop":"L1"},"MPI_Finalize"]' \
        "$(json_get threads.1.entries <"$WORK/nlr.json")"
    same 2.0 "$("$TRACECTL" --json nlr normal 2.0 --filter mpi | "$E2E/json" get threads.0.thread)"
    "$TRACECTL" nlr normal 1.0 --filter mpi | grep -E 'L[0-9]+ ?\^ ?8'
}

difference() {
    local status=0
    "$TRACECTL" diff normal swapped 1.0 --filter mpi >"$WORK/diff" || status=$?
    cat "$WORK/diff"
    same 1 "$status"
    grep -qE 'L1 ?\^ ?8' "$WORK/diff"
    grep -qE 'L1 ?\^ ?3' "$WORK/diff"
    grep -qE 'L0 ?\^ ?5' "$WORK/diff"
    status=0
    "$TRACECTL" --json diff normal swapped 1.0 --filter mpi >"$WORK/diff.json" || status=$?
    same 1 "$status"
    same 1.0 "$(json_get diffs.0.thread <"$WORK/diff.json")"
    json_get diffs.0.edits <"$WORK/diff.json"
    json_get suspects <"$WORK/diff.json"
    json_get unknown <"$WORK/diff.json"
}

difference_stuck() {
    local status=0
    "$TRACECTL" diff normal stuck 1.0 --filter mpi >"$WORK/diff" || status=$?
    cat "$WORK/diff"
    same 1 "$status"
    grep -qE 'L1 ?\^ ?3' "$WORK/diff"
    grep -q MPI_Finalize "$WORK/diff"
}

ranking() {
    local status=0 words
    "$TRACECTL" rank normal swapped --most 3 || status=$?
    same 1 "$status"
    status=0
    "$TRACECTL" --json rank normal swapped --most 0 --k 10,20 --filter mpi --filter everything >"$WORK/rank.json" ||
        status=$?
    same 1 "$status"
    same 1.0 "$(json_get consensus.0.thread <"$WORK/rank.json")"
    # Two filters, two values of K, six kinds of attributes, seven linkages; lowest B-scores first.
    python3 - "$WORK/rank.json" <<'SCRIPT'
import json, sys
document = json.load(open(sys.argv[1]))
rows = document["rows"]
assert len({(r["filter"], r["k"], r["attributes"], r["linkage"]) for r in rows}) == len(rows) == 2 * 2 * 6 * 7, len(rows)
assert [r["b_score"] for r in rows] == sorted(r["b_score"] for r in rows)
assert all(0 <= r["b_score"] <= 1 for r in rows)
assert all(set(r["threads"]) <= {"0.0", "1.0", "2.0", "3.0"} for r in rows)
assert any(r["threads"] == ["1.0"] and r["processes"] == ["1"] for r in rows)
scores = [c["score"] for c in document["consensus"]]
assert len(scores) == 4 and scores == sorted(scores, reverse=True) and scores[0] > scores[1]
SCRIPT
    # The same change between normal runs is no suspicion.
    "$TRACECTL" rank normal swapped --baseline swapped --filter mpi
    "$TRACECTL" diff normal swapped --baseline swapped --filter mpi
    "$TRACECTL" rank normal same
    for words in normal "normal same --attributes sing.often" "normal same --linkage nearest" "normal same --k 0"; do
        status=0
        # shellcheck disable=SC2086 # several words
        "$TRACECTL" rank $words || status=$?
        same 2 "$status"
    done
    fails_with 2 "$TRACECTL" rank normal same --filter nonesuch
    fails_with 3 "$TRACECTL" rank normal nonesuch
}

no_difference() {
    "$TRACECTL" diff normal same 1.0 --filter mpi
    "$TRACECTL" --json diff normal same 1.0 | "$E2E/json" get diffs >/dev/null
    fails_with 3 "$TRACECTL" diff normal same 9.9
    # A filter that keeps nothing must not be taken for runs that are the same.
    fails_with 3 "$TRACECTL" diff normal swapped --filter /nonesuch/
    fails_with 3 "$TRACECTL" rank normal swapped --filter /nonesuch/ --filter ompcrit
    fails_with 3 "$TRACECTL" diff normal nonesuch 1.0
}

same_bytes_twice() { # same store, same options, same bytes
    same "$("$TRACECTL" --json nlr swapped | cksum)" "$("$TRACECTL" --json nlr swapped | cksum)"
    same "$("$TRACECTL" diff normal swapped 1.0 | cksum)" "$("$TRACECTL" diff normal swapped 1.0 | cksum)"
}

trees_and_tops() {
    "$TRACECTL" calls normal 1.0
    "$TRACECTL" calls normal 1.0 | grep MPI_Finalize
    same 8 "$("$TRACECTL" calls normal 1.0 --raw | grep -c MPI_Send)"
    "$TRACECTL" top normal
    "$TRACECTL" top normal | grep -E 'MPI_(Send|Recv)' | grep -w 24
}

removal() {
    "$TRACECTL" rm same
    same "normal swapped stuck" "$(q 'SELECT name FROM runs ORDER BY run_id' | paste -sd ' ')"
    same 0 "$(q 'SELECT count(*) AS n FROM segments WHERE run_id = 2')"
    same 0 "$(q 'SELECT count(*) AS n FROM threads WHERE run_id = 2')"
    fails_with 3 "$TRACECTL" rm same
    "$TRACECTL" verify
    same ok "$(sqlite3 "$STORE" 'PRAGMA integrity_check')"
}

damage_is_found() {
    local status=0
    cp "$STORE" "$WORK/damaged.db"
    sqlite3 "$WORK/damaged.db" "UPDATE segments SET data = zeroblob(length(data)) WHERE segment_id =
        (SELECT min(segment_id) FROM segments WHERE run_id = 1)"
    "$TRACECTL" -d "$WORK/damaged.db" verify >"$WORK/verify" 2>&1 || status=$?
    cat "$WORK/verify"
    same 1 "$status"
    # The other threads stay readable.
    "$TRACECTL" -d "$WORK/damaged.db" calls normal 3.0 | grep MPI_Finalize
    status=0
    "$TRACECTL" -d "$WORK/damaged.db" calls normal 0.0 >/dev/null 2>"$WORK/err" || status=$?
    cat "$WORK/err"
    ((status != 0 && status < 128))
}

closed_pipe() { # nobody reads on: no error, no crash
    local status=0
    "$TRACECTL" query "SELECT * FROM events" 2>"$WORK/err" | head -n 1 >/dev/null || status=$?
    cat "$WORK/err"
    ((status == 0 || status == 141))
    [[ ! -s $WORK/err ]]
}

help_texts() {
    local command
    "$TRACECTL" --help >"$WORK/help"
    "$TRACECTL" --version | grep -E '^tracectl [0-9]'
    for command in record runs show rm query calls top nlr diff rank import verify doctor; do
        grep -qw "$command" "$WORK/help"
        "$TRACECTL" "$command" --help >"$WORK/help.$command"
        grep -q -- '--json' "$WORK/help.$command"
    done
}

run_case "runs" list_of_runs
run_case "runs are found by number, name, latest~N and STORE:RUN" names_of_runs
run_case "query: tables and views" queries
run_case "query cannot write" queries_cannot_write
run_case "the catalog opens in plain sqlite3" plain_sqlite3
run_case "the extension loads into sqlite3" extension_loads
run_case "nlr" loops
run_case "nlr: progress, and equal threads once" progress_and_folding
run_case "diff: a swapped exchange" difference
run_case "diff: a stuck rank" difference_stuck
run_case "diff: no difference" no_difference
run_case "rank" ranking
run_case "the same question gives the same bytes" same_bytes_twice
run_case "calls and top" trees_and_tops
run_case "a damaged segment is found, the rest stays readable" damage_is_found
run_case "output into a closed pipe" closed_pipe
run_case "help and version" help_texts
run_case "rm" removal
finish
