#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# record --budget: what is called all the time is left out and said to be, what is rare is complete. The kernel's limits
# and the plan of the next recording concern uprobes: such cases name them.
. "$(dirname "$0")/lib.sh"
needs_capture

hot_rare=$PROGRAMS/hot_rare

calls_of() { # run's name, function
    q "SELECT coalesce(sum(calls), 0) AS n FROM call_counts WHERE run_id = $(run_id "$1") AND name = '$2'"
}

truth() { # hot or rare, of the last program
    sed -n "s/^$1 //p" "$WORK/said"
}

rare_are_complete() { # run's name
    same "8 $(truth rare) $(truth rare)" "$(q "SELECT count(*) || ' ' || min(n) || ' ' || max(n) AS line FROM (
        SELECT sum(calls) AS n FROM call_counts WHERE run_id = $(run_id "$1") AND name LIKE 'rare_%' GROUP BY name)")"
    same 0 "$(q "SELECT count(*) AS n FROM blind JOIN functions f USING (function_id)
        WHERE run_id = $(run_id "$1") AND f.name LIKE 'rare_%'")"
}

# A budget that the average keeps, with bursts that the kernel side cuts: no probe is taken out, so all is counted.
bursts_are_counted() {
    local recorded missed
    "$TRACECTL" -q record -n bursts --backend uprobe --budget 100 -- "$hot_rare" bursts 50 20000 >"$WORK/said"
    recorded=$(calls_of bursts hot)
    missed=$(q "SELECT coalesce(sum(calls_missed), 0) AS n FROM blind JOIN functions f USING (function_id)
        WHERE run_id = $(run_id bursts) AND f.name = 'hot'")
    echo "$recorded recorded, $missed missed"
    q "SELECT cause, from_ns, to_ns, calls_missed, calls_per_second FROM blind WHERE run_id = $(run_id bursts)"
    ((recorded + missed <= $(truth hot)))
    if [[ $(q "SELECT count(*) AS n FROM blind WHERE run_id = $(run_id bursts) AND calls_missed IS NULL") == 0 ]]; then
        same "$(truth hot)" $((recorded + missed))
    fi
    rare_are_complete bursts
}

all_is_recorded_without_one() {
    "$TRACECTL" -q record -n all -- "$hot_rare" bursts 5 20000 >"$WORK/said"
    same "$(truth hot)" "$(calls_of all hot)"
    same 0 "$(q "SELECT count(*) AS n FROM blind WHERE run_id = $(run_id all) AND cause LIKE 'budget%'")"
}

hot_is_taken_out() {
    local run
    "$TRACECTL" -q record -n hot --backend uprobe --budget 5 -- "$hot_rare" run 2.5 >"$WORK/said"
    run=$(run_id hot)
    rare_are_complete hot
    ((10 * $(calls_of hot hot) < $(truth hot)))
    (($(q "SELECT count(*) AS n FROM blind JOIN functions f USING (function_id) WHERE run_id = $run AND f.name = 'hot'
        AND cause = 'budget: no probe' AND calls_missed IS NULL AND calls_per_second > 1000") > 0))
    # Its rows follow each other and do not overlap.
    same 0 "$(q "SELECT count(*) AS n FROM blind a JOIN blind b ON b.run_id = a.run_id AND b.function_id = a.function_id
        AND b.from_ns > a.from_ns AND (a.to_ns IS NULL OR b.from_ns < a.to_ns) WHERE a.run_id = $run
        AND a.cause LIKE 'budget%' AND b.cause LIKE 'budget%'")"
    "$TRACECTL" verify
}

# Calls of the rare functions are inside all_rare(), which main() calls out of run(), and nothing is inside them: hot()
# is called by a jump.
nesting_is_right() {
    local graph
    graph="FROM call_graph WHERE run_id = $(run_id hot) AND"
    same "all_rare" "$(q "SELECT DISTINCT caller $graph callee LIKE 'rare_%'")"
    same "" "$(q "SELECT DISTINCT callee $graph caller LIKE 'rare_%' AND callee <> 'hot'")"
    same "" "$(q "SELECT DISTINCT callee $graph caller IN ('hot', 'now', 'clock_gettime@plt') AND callee <> 'clock_gettime@plt'")"
}

what_was_paid_is_stored() {
    local key
    for key in 'budget' 'budget: functions' 'budget: probes took (estimate)' 'budget: the target used (measured)'; do
        same 1 "$(q "SELECT count(*) AS n FROM tags WHERE run_id = $(run_id hot) AND key = '$key'")"
    done
    same "5.00 %" "$(q "SELECT value FROM tags WHERE run_id = $(run_id hot) AND key = 'budget'")"
}

is_planned() {
    (($(q "SELECT count(*) AS n FROM budget_plans p JOIN functions f ON f.address = p.address WHERE f.name = 'hot'") >= 1))
}

next_time_it_begins_outside() {
    is_planned
    "$TRACECTL" -q record -n again --backend uprobe --budget 5 -- "$hot_rare" run 1 >"$WORK/said"
    rare_are_complete again
    same 0 "$(calls_of again hot)"
    same 1 "$(q "SELECT count(*) AS n FROM blind JOIN functions f USING (function_id) WHERE run_id = $(run_id again)
        AND f.name = 'hot' AND cause = 'budget: no probe'")"
}

it_is_said() {
    "$TRACECTL" show hot >"$WORK/show"
    cat "$WORK/show"
    grep -q '^gaps  .* functions not recorded all the time, since ' "$WORK/show"
}

# Inline probes, which are the default, cost little and are the last to go. What the program is made of is changed twice under its feet: it has
# to find out nothing, and be seen again, which is 8 s later, or when it is paid for.
inline_probes_go_and_come_back() {
    local run rows="FROM blind JOIN functions f USING (function_id) WHERE cause = 'budget: no probe' AND f.name = 'hot'"
    "$TRACECTL" -q record -n inlined --budget 1 -- "$hot_rare" run 16 >"$WORK/said"
    run=$(run_id inlined)
    rows="$rows AND run_id = $run"
    ((10 * $(calls_of inlined hot) < $(truth hot)))
    q "SELECT from_ns, to_ns, calls_per_second $rows"
    (($(q "SELECT count(*) AS n $rows AND calls_per_second > 100000") >= 1))
    (($(q "SELECT count(*) AS n $rows AND to_ns IS NOT NULL") >= 1)) # it was tried again
    same 1 "$(q "SELECT count(*) AS n FROM tags WHERE run_id = $run AND key = 'budget: of that, inline probes (estimate)'")"
    same 0 "$(q "SELECT count(*) AS n FROM blind JOIN functions f USING (function_id) WHERE run_id = $run AND f.name LIKE 'rare_%'")"
    "$TRACECTL" verify
}

ended_rows() {
    (($(q "SELECT count(*) AS n FROM blind JOIN functions f USING (function_id) WHERE run_id = $(run_id "$1")
        AND f.name = 'hot' AND to_ns IS NOT NULL") >= 1))
}

has_row() {
    (($(q "SELECT count(*) AS n FROM blind JOIN functions f USING (function_id) WHERE run_id = $(run_id "$1")
        AND f.name = 'hot'") >= 1))
}

# Of two processes one shows whether the function is still hot; the other one gets it only when it is not. The plan is
# written while it goes on, for a recorder that is killed.
tried_in_one_process() {
    local first second recorder i
    export TRACECTL_DB=$WORK/tried.db
    spawn "$hot_rare" cools
    first=$spawned
    spawn "$hot_rare" cools
    second=$spawned
    spawn "$TRACECTL" -q record -n tried --budget 1 -p "$first" -p "$second"
    recorder=$spawned
    wait_until 60 has_row tried
    for ((i = 0; i < 12; i++)); do # hot: it is tried meanwhile
        sleep 1
        if ended_rows tried; then
            fail "the other process has got it while it was hot"
        fi
    done
    wait_until 10 is_planned
    kill -USR1 "$first" "$second"
    wait_until 80 ended_rows tried
    sleep 2
    kill -INT "$recorder"
    wait "$recorder"
    kill "$first" "$second"
    same 2 "$(q "SELECT count(DISTINCT thread_id) AS n FROM call_counts WHERE run_id = $(run_id tried) AND name = 'hot'
        AND calls > 100")"
    same 0 "$(q "SELECT count(*) AS n FROM blind JOIN functions f USING (function_id) WHERE run_id = $(run_id tried)
        AND f.name LIKE 'rare_%'")"
}

bad_budgets() {
    local bad
    for bad in 0 -1 x 5x ''; do
        local status=0
        "$TRACECTL" -q record --budget "$bad" -- true || status=$?
        same 2 "$status"
    done
}

run_case "a hot function is taken out, rare ones are complete" hot_is_taken_out
run_case "what is inside what stays right" nesting_is_right
run_case "what it cost is stored" what_was_paid_is_stored
run_case "the next recording begins with the plan" next_time_it_begins_outside
run_case "show says what is complete" it_is_said
run_case "bursts are cut and counted, rare functions complete" bursts_are_counted
if [[ $(uname -m) == x86_64 ]]; then
    run_case "inline probes are the last to go, and come back" inline_probes_go_and_come_back
    run_case "inline probes come back in one process first" tried_in_one_process
fi
run_case "no budget, no limit" all_is_recorded_without_one
run_case "a budget that is none" bad_budgets
finish
