#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `record --go` keeps of a program that counts its own operations, in every way that Go builds it: all of them, no
# more and no less. Then processes that already run, programs that Go did not make, functions beside goroutines, and a
# recorder that dies.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$E2E/go_lib.sh"
needs_capture

build() { # version, name, go's options...
    (cd "$ROOT/tests/programs/go/counted" && go_run "$1" build "${@:3}" -o "$WORK/$2" .)
}

# The operations that the program's own code has begun, or for which TryLock has said yes, as the program prints them.
operations() { # run
    q "SELECT operation || ' ' || count(*) AS line FROM go_events e LEFT JOIN functions f USING (function_id)
       WHERE e.run_id = $1 AND CASE WHEN operation LIKE '%try%' THEN kind = 'result' AND value = 1
       ELSE kind = 'operate' AND NOT flags & 8 AND f.name LIKE 'main.%' END GROUP BY operation"
}

# Nothing is missing, and what happens to one goroutine fits together.
is_complete() { # run, file with what the program has printed
    same "$(cat "$2")" "$(operations "$1")"
    same "$(sed -n 's/^go //p' "$2")" "$(q "SELECT count(*) FROM go_events e JOIN functions f ON f.function_id = e.value
        WHERE e.run_id = $1 AND kind = 'create' AND f.name LIKE 'main.%'")"
    same 0 "$(q "SELECT count(*) FROM go_events WHERE run_id = $1 AND kind = 'lost'")"
    same 0 "$(q "SELECT count(*) FROM losses WHERE run_id = $1")"
}

as_built_by() { # version, name, go's options...
    build "$@"
    record "$2" --go -- "$WORK/$2" >"$WORK/$2.printed"
    is_complete "$(run_id "$2")" "$WORK/$2.printed"
}


tables() {
    local run
    run=$(run_id bare1.22)
    same 'select (no cases)|block|main.main:go' "$(q "SELECT g.wait_reason || '|' || g.operation || '|' || c.name AS line
        FROM goroutines g JOIN functions c ON c.function_id = g.created_at
        WHERE g.run_id = $run AND g.state = 'blocked' AND c.name LIKE 'main.%'")"
    same 'runtime.main' "$(q "SELECT f.name FROM goroutines JOIN functions f USING (function_id)
        WHERE run_id = $run AND label = '0.g1'")"
    same 'cond wait' "$(q "SELECT DISTINCT operation FROM go_blocks WHERE run_id = $run AND wait_reason = 'sync.Cond.Wait'")"
    same 0 "$(q "SELECT count(*) FROM go_blocks WHERE run_id = $run AND wait_reason LIKE 'sync.%'
        AND (woken_by IS NULL OR woken_by = 0 OR duration_ns IS NULL)")"
    same 1 "$(q "SELECT count(*) FROM go_blocks WHERE run_id = $run AND wait_reason = 'sleep' AND woken_by = 0
        AND duration_ns >= 1000000")"
    same 'main.inParallel.func1|main.inParallel.func1 (main.go:N < main.go:N)' "$(q "SELECT DISTINCT f.name || '|' || t.name
        AS line FROM threads t JOIN events e USING (thread_id) JOIN functions f USING (function_id)
        WHERE t.run_id = $run AND e.seq = 0 AND t.name LIKE '% < %'" | sed 's/go:[0-9]*/go:N/g')"
}

service() { # name of the build
    rm -f "$WORK/input"
    mkfifo "$WORK/input"
    exec 9<>"$WORK/input" # opened for one direction it would wait for the other one
    # shellcheck disable=SC2016 # the inner shell expands these
    spawn sh -c 'exec "$0" service <"$1"' "$WORK/$1" "$WORK/input" >"$WORK/service.printed" 9>&-
    service=$spawned
    wait_until 10 grep -q ready "$WORK/service.printed"
}

# The last probe has been placed when their number does not grow any more.
is_recorded() {
    local before
    before=$("$E2E/text_equals_file" "$service" 2>&1) && return 1
    sleep 0.3
    [[ $before == "$("$E2E/text_equals_file" "$service" 2>&1)" ]]
}

running() {
    service bare1.22
    spawn "$TRACECTL" -q record -n running --go -p "$service" --budget none 9>&-
    wait_until 20 is_recorded
    exec 9>&-
    wait "$spawned"
    sed -i 1d "$WORK/service.printed"
    is_complete "$(run_id running)" "$WORK/service.printed"
}

recorder_dies() {
    service bare1.22
    spawn "$TRACECTL" -q record -n dies --go -p "$service" --budget none 9>&-
    wait_until 20 is_recorded
    kill -KILL "$spawned"
    wait_until 10 text_is_clean "$service"
    exec 9>&-
    wait "$service"
    grep -q '^waitgroup wait 4$' "$WORK/service.printed"
}

other_programs() {
    record other --go -- "$PROGRAMS/million" 10
    same 0 "$(q "SELECT count(*) FROM go_events WHERE run_id = $(run_id other)")"
    (($(q "SELECT count(*) FROM events WHERE run_id = $(run_id other)") > 10))
}

functions_as_well() {
    local run
    record both --go --functions '^main\.(all|channels)$' -- "$WORK/bare1.22" >"$WORK/both.printed"
    run=$(run_id both)
    is_complete "$run" "$WORK/both.printed"
    same 'main.all 1
main.channels 1' "$(q "SELECT f.name || ' ' || count(*) AS line FROM events JOIN functions f USING (function_id)
        JOIN threads t USING (thread_id) WHERE t.run_id = $run AND kind = 'call' AND f.name IN ('main.all', 'main.channels')
        AND t.label NOT LIKE '%.g%' GROUP BY f.name")"
}

for version in 1.19 1.22 1.23; do
    run_case "all operations of a stripped program, go $version" as_built_by $version bare$version -ldflags='-s -w'
done
run_case "all operations of a whole program" as_built_by 1.22 whole
run_case "all operations of a stripped position-independent program" as_built_by 1.22 pie -buildmode=pie -ldflags='-s -w'
CGO_ENABLED=1 run_case "all operations of a program with C in it" as_built_by 1.22 cgo
CGO_ENABLED=1 run_case "all operations under the race detector" as_built_by 1.22 race -race
run_case "goroutines and go_blocks say what became of them" tables
run_case "all operations of a process that runs already" running
run_case "a recorder that dies leaves the program alone" recorder_dies
run_case "programs that Go did not make are recorded as always" other_programs
run_case "functions that are asked for are recorded as well" functions_as_well
finish
