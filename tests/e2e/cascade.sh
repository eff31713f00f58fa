#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Slow-down cascades of the sample service (tests/programs/cascade), predicted from runs at two small sizes: every
# planted one with its source, chain and sink, no decoy; what each check of the analysis is good for; and large runs in
# which each chain is hit, and the sink waits for the loop.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
needs_capture

SERVICE=$PROGRAMS/cascade_service
ALL=copy1,cleanup,scan,localise,constant,answer,readers

# Runs "PLAN-4" and "PLAN-16".
record_plan() { # plan
    local size
    for size in 4 16; do
        rm -rf "$WORK/files" && mkdir "$WORK/files"
        record "$1-$size" --sync --handler handle_event:ARG1 --enqueue enqueue_event:ARG1 --tag "size=$size" -- \
            "$SERVICE" "$WORK/files" "$size" "$1" >/dev/null
    done
}

# What is reported, a line each: source>step; what each link's holder or cause is in, with the kind of link; the sink.
# Exit status 1 says that there is something.
reported() { # plan, sink, options...
    local plan=$1 sink=$2 status=0
    shift 2
    "$TRACECTL" cascade --json "$plan-4" "$plan-16" --sink "$sink" "$@" >"$WORK/cascade.json" || status=$?
    python3 - "$WORK/cascade.json" "$status" <<'PYTHON'
import json, sys

found = json.load(open(sys.argv[1]))["cascades"]
assert int(sys.argv[2]) == (1 if found else 0), "exit status " + sys.argv[2]
for cascade in found:
    links = ["%s:%s" % (link["kind"], link["delays"]["function"]) for link in cascade["chain"]]
    print("%s>%s" % (cascade["source"]["function"], cascade["source"]["step"]), *links, cascade["sink"]["function"])
PYTHON
}

reports() { # wanted, plan, sink, options...
    local wanted=$1
    shift
    same "$wanted" "$(reported "$@")"
}

growth_is() { # sink, kind, iterations
    reported "$ALL" "$1" >/dev/null
    same "$2 $3" "$(json_get cascades.0.source.kind <"$WORK/cascade.json") $(
        json_get cascades.0.source.iterations <"$WORK/cascade.json" | tr -d ' \n')"
}

text_and_picture() {
    local status=0
    "$TRACECTL" cascade "$ALL-4" "$ALL-16" --sink send_heartbeat --svg "$WORK/chain.svg" >"$WORK/text" || status=$?
    same 1 "$status"
    cat "$WORK/text"
    grep -q '^1 cascade could delay send_heartbeat' "$WORK/text"
    grep -q 'the loop over read in copy_file (jobs.c:[0-9]*) can delay send_heartbeat, over 1 lock$' "$WORK/text"
    grep -q '5, 17 iterations at sizes 4, 16: nearest to linear' "$WORK/text"
    grep -q 'waits for the lock that copy_file (jobs.c:[0-9]*) holds' "$WORK/text"
    xmllint --noout "$WORK/chain.svg"
    grep -q copy_file "$WORK/chain.svg"
}

one_run_is_possible() {
    "$TRACECTL" cascade "$ALL-4" --sink send_heartbeat --json >"$WORK/cascade.json" || true
    same low "$(json_get cascades.0.severity <"$WORK/cascade.json")"
    same true "$(json_get cascades.0.source.possible <"$WORK/cascade.json")"
}

# Of the sink's call in which the loop did most: its iterations, and how long the call took, in microseconds.
worst() { # sink, size, plan
    rm -rf "$WORK/files" && mkdir "$WORK/files"
    "$SERVICE" "$WORK/files" "$2" "$3" hit |
        awk -v sink="$1" '$2 == sink && $4 >= most { most = $4; us = $3 } END { print most + 0, us + 0 }'
}

# When the chain is hit at a large size, the sink waits for ten times as many iterations of the loop as at a small one.
# The time that they take is told, not judged: it is the machine's.
is_real() { # sink, plan, sizes
    local small small_us large large_us
    read -r small small_us < <(worst "$1" "$3" "$2")
    read -r large large_us < <(worst "$1" "$4" "$2")
    echo "# $1: $small iterations, $small_us us at size $3; $large iterations, $large_us us at size $4"
    ((small >= 1 && large >= 10 * small))
}

sql_tables() {
    local run sixteen
    run=$(run_id copy2-4)
    sixteen=$(run_id copy2-16)
    same "copy_file|read|reads|2" "$(q "SELECT source, step, kind, links FROM cascades('$run,$sixteen', 'send_heartbeat')")"
    # Of the joins of the node's threads: as many as threads end.
    same 1 "$(q "SELECT count(*) = (SELECT count(*) FROM sync_events WHERE run_id = $run AND kind = 'thread join'
                 AND phase = 'end') AS same FROM hb_edges WHERE run_id = $run AND kind = 'join' AND to_event = 'thread join'")"
    same 1 "$(q "SELECT count(*) AS n FROM critical_sections WHERE run_id = $run AND function = 'copy_file' AND end_ns > ns")"
}

refuses_runs_without_sync() {
    local status
    record plain -- "$PROGRAMS/million" 10 >/dev/null
    fails_with 3 "$TRACECTL" cascade plain --sink main
    fails_with 3 "$TRACECTL" cascade "$ALL-4" --sink no_such_function
    status=0
    "$TRACECTL" cascade "$ALL-4" 2>/dev/null || status=$?
    same 2 "$status"
}

for plan in "$ALL" copy2 copy3 boot; do
    record_plan "$plan"
done

run_case "a file copy under the heartbeat's lock" \
    reports "copy_file>read lock:copy_file send_heartbeat" "$ALL" send_heartbeat
run_case "the same over two locks" \
    reports "copy_file>read lock:copy_file lock:collect_status send_heartbeat" copy2 send_heartbeat
run_case "the same over three locks" \
    reports "copy_file>read lock:copy_file lock:collect_status lock:renew_lease send_heartbeat" copy3 send_heartbeat
run_case "a clean-up on the event thread delays a stream of another process" \
    reports "clean_table>unlink pool:handle_event cause:handle_event cause:tell stream_file" "$ALL" stream_file
run_case "a directory scan under a lock" \
    reports "scan_directory>fstatat lock:scan_directory write_block" "$ALL" write_block
run_case "a loop that waits for another thread, under a lock" \
    reports "wait_localised>usleep lock:wait_localised run_task" "$ALL" run_task
run_case "the copy's iterations follow the size" growth_is send_heartbeat reads "[5,17]"
run_case "nothing delays what is of the same request" reports "" "$ALL" answer_client
run_case "sections that never meet are no rivals" reports "" boot send_heartbeat

run_case "without the check of concurrency they are" \
    reports "copy_file>read lock:copy_file lock:check_disk send_heartbeat" boot send_heartbeat --no-concurrency-check
run_case "without the analysis of origins a request delays itself" \
    reports "write_blocks>write lock:answer_maker answer_client" "$ALL" answer_client --no-origin-analysis
run_case "without the analysis of loops one with a bound is a source" \
    reports "copy_file>read lock:copy_file send_heartbeat
write_header>write lock:write_header send_heartbeat" "$ALL" send_heartbeat --no-loop-analysis
run_case "without causes in other threads the stream is not reached" \
    reports "" "$ALL" stream_file --must-hops 1

run_case "text and picture" text_and_picture
run_case "one run alone: possible only" one_run_is_possible
run_case "tables of edges, critical sections and cascades" sql_tables
run_case "runs without what it takes are refused" refuses_runs_without_sync

run_case "copying hits the heartbeat" is_real send_heartbeat copy1 4 4000
run_case "copying hits the heartbeat over two locks" is_real send_heartbeat copy2 4 4000
run_case "copying hits the heartbeat over three locks" is_real send_heartbeat copy3 4 4000
run_case "cleaning up hits the stream" is_real stream_file cleanup 4 2000
run_case "the scan hits the write" is_real write_block scan 4 2000
run_case "waiting hits the task" is_real run_task localise 2 100
finish
