#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# merge: the runs of several stores in one, with the same answers as at home; and one run for the recorders of an MPI job.
. "$(dirname "$0")/lib.sh"
DATA=$ROOT/tests/data

gunzip <"$DATA/reference-1.db.gz" >"$WORK/reference.db"
"$TRACECTL" -q -d "$WORK/reference.db" recover
mkdir "$WORK/more"
"$E2E/u16" make "$WORK/more" 0.0 main work - - other -
"$TRACECTL" -q -d "$WORK/more.db" import --format u16 "$WORK/more" -n more

# What a store says of its runs, without any number that it gives.
everything() { # store
    local run name table
    "$TRACECTL" -d "$1" query --csv "SELECT name, command, host, kernel, started_ns, ended_ns, exit_status, options, recorder
        FROM runs WHERE name <> 'more' ORDER BY 1, 5"
    "$TRACECTL" -d "$1" query --csv "SELECT r.name, key, value FROM tags JOIN runs r USING (run_id) ORDER BY 1, 2"
    "$TRACECTL" -d "$1" query --csv "SELECT r.name, p.pid, q.pid, p.rank, p.exe, p.argv, p.started_ns, p.ended_ns, p.exit_status
        FROM processes p JOIN runs r USING (run_id) LEFT JOIN processes q ON q.process_id = p.parent_process_id
        WHERE r.name <> 'more' ORDER BY 1, 2"
    "$TRACECTL" -d "$1" query --csv "SELECT r.name, pid, tid, label, t.name, t.started_ns, t.ended_ns, returns FROM threads t
        JOIN processes USING (process_id) JOIN runs r ON r.run_id = t.run_id WHERE r.name <> 'more' ORDER BY 1, 4"
    while IFS='|' read -r run name; do
        [[ $name != more ]] || continue
        echo "run $name"
        "$TRACECTL" -d "$1" query --csv "SELECT t.label, seq, e.kind, e.ns, depth, i.path, f.name, f.demangled, f.address, f.size,
            f.file, f.line, f.aliases, s.address, s.line, assumed FROM events e JOIN threads t USING (thread_id)
            LEFT JOIN functions f USING (function_id) LEFT JOIN images i ON i.image_id = f.image_id LEFT JOIN call_sites s ON s.site_id = e.call_site
            WHERE e.run_id = $run ORDER BY 1, 2" | cksum
        "$TRACECTL" -d "$1" query --csv "SELECT name, sum(calls) FROM call_counts WHERE run_id = $run GROUP BY 1 ORDER BY 1"
        for table in "losses:thread_id ISNULL, seq, ns, count, cause, calls, returns" \
            "sync_functions:number, role, name" "end_iterations:node, depth, finished" \
            "sync_channels:channel, kind, name, local, remote, device, inode, net, from_start" \
            "end_nodes:node, parent, image, build_id, function, file, line, address, entry, flags, depth" \
            "end_threads:thread, pid, tid, rank, label, name, state, flags, node"; do
            "$TRACECTL" -d "$1" query --csv "SELECT ${table#*:} FROM ${table%%:*} WHERE run_id = $run ORDER BY 1, 2, 3"
        done
        "$TRACECTL" -d "$1" query --csv "SELECT f.name, from_ns, to_ns, cause, calls_per_second, calls_missed FROM blind
            JOIN functions f USING (function_id) WHERE run_id = $run ORDER BY 1, 2"
        "$TRACECTL" -d "$1" query --csv "SELECT pid, seq, g.ns, g.kind, operation, goroutine, object, other, coalesce(v.name, value), f.name,
            f.line FROM go_events g JOIN processes USING (process_id) LEFT JOIN functions f ON f.function_id = g.function_id
            LEFT JOIN functions v ON g.kind IN ('create', 'test') AND v.function_id = value
            WHERE g.run_id = $run ORDER BY 1, 2"
        "$TRACECTL" -d "$1" query --csv "SELECT label, state, wait_reason, f.name FROM goroutines
            LEFT JOIN functions f USING (function_id) WHERE run_id = $run ORDER BY 1"
        "$TRACECTL" -d "$1" query --csv "SELECT pid, seq, g.ns, g.kind, phase, object, other, result, position, s.address
            FROM sync_events g JOIN processes USING (process_id) LEFT JOIN call_sites s USING (site_id)
            WHERE g.run_id = $run ORDER BY 1, 2"
        "$TRACECTL" -d "$1" query --csv "SELECT pid, version, operations, from_start, from_ns FROM go_programs
            JOIN processes USING (process_id) WHERE go_programs.run_id = $run"
    done < <("$TRACECTL" -d "$1" query --json "SELECT run_id, name FROM runs ORDER BY name, started_ns" | "$E2E/json" rows)
    "$TRACECTL" -d "$1" query --csv "SELECT function, u.file, u.line, operation, standard, blocks, c.number, c.line, sends
        FROM go_usages u LEFT JOIN go_usage_cases c USING (usage_id) ORDER BY 1, 3, 7"
    "$TRACECTL" -d "$1" query --csv "SELECT * FROM budget_plans ORDER BY 1, 2"
}

# Behind another store's rows all ids are other ones.
same_answers() {
    everything "$WORK/reference.db" >"$WORK/at_home"
    "$TRACECTL" --json merge "$WORK/more.db" "$WORK/reference.db" -o "$STORE" >"$WORK/merged.json"
    same 11 "$(json_get runs <"$WORK/merged.json")"
    everything "$STORE" >"$WORK/merged"
    diff -u "$WORK/at_home" "$WORK/merged"
    (($(wc -l <"$WORK/at_home") > 400)) || fail "there is hardly anything to compare"
    "$TRACECTL" verify
    process_events_agree "$STORE" 400
}

# Into an empty store, the bytes of segments stay.
same_bytes() {
    "$TRACECTL" -q merge "$WORK/reference.db" -o "$WORK/copy.db"
    for store in reference copy; do
        sqlite3 "$WORK/$store.db" "SELECT first_seq, event_count, hex(functions), hex(data) FROM segments
            UNION ALL SELECT first_seq, event_count, hex(names), hex(data) FROM process_segments ORDER BY 1, 2, 3, 4" |
            cksum >"$WORK/$store.sum"
    done
    cmp "$WORK/reference.sum" "$WORK/copy.sum"
}

again() {
    local before
    before=$(q "SELECT count(*), (SELECT count(*) FROM functions), (SELECT count(*) FROM segments) FROM runs")
    "$TRACECTL" --json merge "$WORK/reference.db" "$WORK/more.db" "$WORK/copy.db" -o "$STORE" >"$WORK/merged.json"
    same 0 "$(json_get runs <"$WORK/merged.json")"
    same 21 "$(json_get present <"$WORK/merged.json")"
    same "$before" "$(q "SELECT count(*), (SELECT count(*) FROM functions), (SELECT count(*) FROM segments) FROM runs")"
}

# Every table of the schema is copied; of what runs share, what a run names.
all_tables() {
    local table
    for table in $(sqlite3 "$WORK/reference.db" "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
        AND name NOT LIKE 'function_trigrams%' AND name NOT IN ('journal', 'indexed_functions', 'functions', 'call_sites', 'images')"); do
        same "$table $(sqlite3 "$WORK/reference.db" "SELECT count(*) FROM $table")" \
            "$table $(sqlite3 "$WORK/copy.db" "SELECT count(*) FROM $table")"
    done
}

refused() {
    local before
    before=$(q "SELECT count(*) FROM runs")
    fails_with 3 "$TRACECTL" merge "$STORE" -o "$STORE"
    grep -q 'into itself' "$WORK/fails.err"
    fails_with 3 "$TRACECTL" merge "$WORK/nothing.db" -o "$WORK/none.db"
    [[ ! -e $WORK/none.db ]]
    gunzip <"$DATA/reference-1.db.gz" >"$WORK/unfinished.db"
    fails_with 3 "$TRACECTL" merge "$WORK/unfinished.db" -o "$STORE"
    grep -q 'was not ended (run tracectl -d .* recover first)' "$WORK/fails.err"
    cp "$WORK/more.db" "$WORK/damaged.db"
    sqlite3 "$WORK/damaged.db" "UPDATE runs SET started_ns = 5; UPDATE segments SET data = zeroblob(length(data))"
    fails_with 3 "$TRACECTL" merge "$WORK/damaged.db" -o "$STORE"
    grep -q 'whose checksum is wrong (salvage it' "$WORK/fails.err"
    "$TRACECTL" merge -o "$STORE" && fail "no store to read"
    same "$before" "$(q "SELECT count(*) FROM runs")"
    "$TRACECTL" verify
}

# Bytes of a store changed at random: it is refused, or what is merged is in order.
mutated() {
    local seed status accepted=0
    for ((seed = 0; seed < 40; seed++)); do
        python3 - "$WORK/reference.db" "$WORK/mutated.db" "$seed" <<'PYTHON'
import random, sys
data, chance = bytearray(open(sys.argv[1], "rb").read()), random.Random(int(sys.argv[3]))
for _ in range(chance.choice([1, 4, 16])):
    data[chance.randrange(4096, len(data))] ^= 1 << chance.randrange(8)
open(sys.argv[2], "wb").write(data)
PYTHON
        rm -f "$WORK/into.db"*
        status=0
        "$TRACECTL" -q merge "$WORK/mutated.db" -o "$WORK/into.db" 2>"$WORK/mutated.err" || status=$?
        ((status == 0 || status == 3)) || fail "seed $seed: status $status: $(cat "$WORK/mutated.err")"
        ((status)) || accepted=$((accepted + 1))
        [[ ! -e $WORK/into.db ]] || "$TRACECTL" -q -d "$WORK/into.db" verify >"$WORK/verify.out" ||
            fail "seed $seed: $(cat "$WORK/verify.out")"
    done
    echo "$accepted of 40 were accepted"
}

has_journal() { # store
    [[ $(sqlite3 "$1" "SELECT count(*) FROM journal") -gt 0 ]]
}

being_recorded() {
    "$TRACECTL" -q -d "$WORK/live.db" record --flush-interval 0.1 -p "$1" 2>"$WORK/live.err" &
    wait_until 60 has_journal "$WORK/live.db"
    fails_with 3 "$TRACECTL" merge "$WORK/live.db" -o "$STORE"
    grep -q 'is being recorded' "$WORK/fails.err"
    kill -INT $!
    wait $! || true
    "$TRACECTL" -q merge "$WORK/live.db" -o "$STORE"
}

# Each rank has a recorder of its own: one run, which is what one recorder of all ranks sees of them.
one_job() {
    record whole -- mpiexec -n 4 "$PROGRAMS/odd_even_sort" >/dev/null
    mpiexec -n 4 "$TRACECTL" -q -d "$WORK/job.db" record -n job -- "$PROGRAMS/odd_even_sort" >/dev/null
    same "1|4" "$(TRACECTL_DB=$WORK/job.db q "SELECT count(*), (SELECT count(*) FROM tags WHERE key LIKE 'part _') FROM runs")"
    "$TRACECTL" -d "$WORK/job.db" verify
    "$TRACECTL" -q merge "$WORK/job.db" -o "$STORE"
    same "$(counts_by_thread "$(run_id whole)" | grep '^[0-3]\.0 ' | grep 'MPI_\|findPtr')" \
        "$(counts_by_thread "$(run_id job)" | grep 'MPI_\|findPtr')"
    same "0.0|0 1.0|1 2.0|2 3.0|3" "$(q "SELECT label, rank FROM threads JOIN processes USING (process_id)
        WHERE threads.run_id = $(run_id job) ORDER BY 1" | paste -sd ' ')"
    "$TRACECTL" -q merge "$WORK/job.db" -o "$STORE"
    same 1 "$(q "SELECT count(*) FROM runs WHERE name = 'job'")"
}

# As over several hosts: a store for each rank.
job_of_stores() {
    local rank
    # shellcheck disable=SC2016 # the rank's shell expands it
    mpiexec -n 3 sh -c '"$TRACECTL" -q -d "$WORK/rank$PMI_RANK.db" record -n spread --tag job=sort -- "$PROGRAMS/odd_even_sort"' >/dev/null
    "$TRACECTL" --json merge "$WORK"/rank?.db -o "$WORK/spread.db" >"$WORK/merged.json"
    same "3 2 0" "$(for key in runs joined apart; do json_get "$key" <"$WORK/merged.json"; done | paste -sd ' ')"
    same "1|3|sort" "$(TRACECTL_DB=$WORK/spread.db q "SELECT (SELECT count(*) FROM runs), count(*), (SELECT value FROM tags
        WHERE key = 'job') FROM threads")"
    "$TRACECTL" -d "$WORK/spread.db" verify
    # tags of single ranks: numbers of the recorder add up, others stay with their part
    # shellcheck disable=SC2016 # the rank's shell expands it
    mpiexec -n 2 sh -c '"$TRACECTL" -q -d "$WORK/tags$PMI_RANK.db" record --tag job=tags --tag "node=n$PMI_RANK" --tag same=x \
        -- "$PROGRAMS/odd_even_sort"' >/dev/null
    for rank in 0 1; do
        sqlite3 "$WORK/tags$rank.db" "INSERT INTO tags SELECT run_id, 'waited ns', '10$rank' FROM runs"
    done
    "$TRACECTL" -q merge "$WORK"/tags?.db -o "$WORK/tags.db"
    same "node=n0 part 2: node=n1 same=x waited ns=201" "$(TRACECTL_DB=$WORK/tags.db q "SELECT key || '=' || value AS tag FROM tags
        WHERE key LIKE '%node' OR key LIKE '%same' OR key = 'waited ns' ORDER BY key" | paste -sd ' ')"
    # two threads cannot have one label
    "$TRACECTL" -q -d "$WORK/twice.db" record --tag job=sort -- "$PROGRAMS/million" 5
    "$TRACECTL" -q -d "$WORK/once.db" record --tag job=sort -- "$PROGRAMS/million" 5
    "$TRACECTL" --json merge "$WORK/twice.db" "$WORK/once.db" -o "$WORK/apart.db" >"$WORK/merged.json"
    same "2 0 1" "$(for key in runs joined apart; do json_get "$key" <"$WORK/merged.json"; done | paste -sd ' ')"
}

run_case "merged runs have the same answers as at home" same_answers
run_case "the first ones keep their bytes" same_bytes
run_case "all tables are merged" all_tables
run_case "a merge may be repeated" again
run_case "what cannot be merged is refused, and nothing changes" refused
run_case "stores with flipped bits" mutated
needs_capture
spawn "$PROGRAMS/busy" 60 2 >/dev/null
run_case "a run that is being recorded is merged when it has ended" being_recorded "$spawned"
run_case "recorders of one job and store are one run" one_job
run_case "parts in several stores become one run" job_of_stores
finish
