#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tracectl stat names the rank that is behind, of a live job and of a recording of it.
. "$(dirname "$0")/lib.sh"
needs_capture

# Four ranks of which the third stalls in get_norm, in turn 1, and all others come to wait for it. Before that it may be
# behind for a moment elsewhere.
rank_2_is_behind() {
    "$TRACECTL" "$@" >"$WORK/order.json" 2>"$WORK/err" &&
        [[ $(json_get behind.threads <"$WORK/order.json") == *2.0* && $(json_get behind.count <"$WORK/order.json") == 1 &&
            $(json_get behind.in <"$WORK/order.json") == get_norm && $(json_get behind.iterations.0 <"$WORK/order.json") == 1 ]]
}

live() { # level of optimisation
    mpiexec -n 4 "$PROGRAMS/poisson_$1" 50 stall 2 1 >"$WORK/live.said" 2>&1 &
    spawned=$!
    echo "$spawned" >>"$WORK/pids"
    wait_until 20 rank_2_is_behind --json stat -p "$spawned"
    "$TRACECTL" stat -p "$spawned" --svg "$WORK/live.svg" | tee "$WORK/text"
    kill "$spawned"
    wait "$spawned" 2>/dev/null || true
    same get_norm "$(json_get behind.in <"$WORK/order.json")"
    same poisson "$(json_get behind.function <"$WORK/order.json")"
    same 1 "$(json_get behind.iterations.0 <"$WORK/order.json")"
    same 1 "$(json_get behind.variables.it <"$WORK/order.json")"
    grep -q '^rank 2 is behind: ' "$WORK/text"
    grep -q 'T0 1:\[2\] poisson@poisson.c:.* (iteration 2, it = 1) > get_norm.*  <- least advanced$' "$WORK/text"
    # The picture says the same.
    xmllint --noout "$WORK/live.svg"
    grep -o '>T0 1:\[2\] - least advanced<' "$WORK/live.svg"
    grep -o '>rank 2 is behind: [^<]*' "$WORK/live.svg"
}

page() {
    "$TRACECTL" report stalled -o "$WORK/page.html" 2>"$WORK/err" || fail "$(cat "$WORK/err")"
    "$E2E/page_check" text "$WORK/page.html" >"$WORK/page.text"
    grep '^At the end of stalled: rank 2 is behind: ' "$WORK/page.text"
    grep -x 'T0 1:\[2\] - least advanced' "$WORK/page.text"
}

recorded() {
    record "stalled" --returns probe -- timeout -k 5 5 mpiexec -n 4 "$PROGRAMS/poisson_O2" 50 stall 2 1 >/dev/null 2>&1 || true
    rank_2_is_behind --json stat stalled
    same get_norm "$(json_get behind.in <"$WORK/order.json")"
    same 1 "$(json_get behind.iterations.0 <"$WORK/order.json")"
    "$TRACECTL" stat stalled --at 1 | grep -x 'no thread to order'
}

# The calls around the first recorded one, and the iterations before it, are known of processes that live on.
attached() {
    mpiexec -n 4 "$PROGRAMS/poisson_O2" 50 stall 2 1 >"$WORK/attached.said" 2>&1 &
    spawned=$!
    echo "$spawned" >>"$WORK/pids"
    wait_until 20 rank_2_is_behind --json stat -p "$spawned"
    record attached --duration 1 -p "$spawned"
    kill "$spawned"
    wait "$spawned" 2>/dev/null || true
    rank_2_is_behind --json stat attached
    same get_norm "$(json_get behind.in <"$WORK/order.json")"
    same poisson "$(json_get behind.function <"$WORK/order.json")"
    same 1 "$(json_get behind.iterations.0 <"$WORK/order.json")"
    same "$(q "SELECT label FROM threads WHERE run_id = $(run_id attached) ORDER BY label LIMIT 1")" \
        "$(q "SELECT t.label FROM threads t JOIN end_threads e USING (run_id, tid) WHERE run_id = $(run_id attached)
            ORDER BY t.label LIMIT 1")"
    "$TRACECTL" rm attached
    same 0 "$(q "SELECT (SELECT count(*) FROM end_threads) + (SELECT count(*) FROM end_nodes)
        + (SELECT count(*) FROM end_iterations) AS n")"
}

wrong_uses() {
    local options
    for options in "stalled -p 1" "-p 1 --at 5" "-p 1 --svg x --stacks"; do
        # shellcheck disable=SC2086 # words are wanted
        "$TRACECTL" stat $options >"$WORK/out" 2>"$WORK/err" && fail "stat $options"
        same 1 "$(wc -l <"$WORK/err")"
    done
    fails_with 3 "$TRACECTL" stat no_such_run
}

run_case "live, not optimised" live O0
run_case "live, optimised" live O2
run_case "from a recording" recorded
run_case "from a recording of a job that ran before, and goes on" attached
run_case "the page of a recording" page
run_case "wrong uses" wrong_uses
finish
