#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Go programs that have to do with time. None of whose goroutines is blocked forever is given another verdict than pass,
# whatever they wait for and however tracectl delays them; and the limits on time hold however many events come.
#
# Every kind of tests/programs/go/healthy is tried with some period by some version of Go. All of them: HEALTHY_PERIODS
# (a list), HEALTHY_VERSIONS, HEALTHY_RUNS (executions of an exploration), HEALTHY_TIMES (explorations of each),
# HEALTHY_LOAD (busy loops beside).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/go_lib.sh"
needs_capture

SOURCE=$ROOT/tests/programs/go/healthy
periods=(5ns 1ms 20us 10ms 200us)
versions=(1.22 1.23 1.19)
times=${HEALTHY_TIMES:-1}

build() { # version
    (cd "$SOURCE" && go_run "$1" build -ldflags='-s -w' -o "$WORK/healthy-$1" .)
}

explored() { # version, kind, period
    local try
    for ((try = 0; try < times; try++)); do
        "$TRACECTL" -d "$WORK/explored.db" go explore --runs "${HEALTHY_RUNS:-3}" -- "$WORK/healthy-$1" "$2" "$3" \
            >"$WORK/out" || { cat "$WORK/out"; return 1; }
        rm -f "$WORK"/explored.db*
    done
}

explore_some() {
    local at=0 kind
    for kind in $("$WORK/healthy-1.22"); do
        local version=${versions[at % ${#versions[@]}]} period=${periods[at % ${#periods[@]}]}
        run_case "$version $kind every $period" explored "$version" "$kind" "$period"
        at=$((at + 1))
    done
}

explore_all() {
    local version kind period load
    for ((load = 0; load < ${HEALTHY_LOAD:-0}; load++)); do
        spawn bash -c 'while :; do :; done'
    done
    for version in ${HEALTHY_VERSIONS:-${versions[*]}}; do
        for kind in ${HEALTHY_KINDS:-$("$WORK/healthy-1.22")}; do
            for period in $HEALTHY_PERIODS; do
                run_case "$version $kind every $period" explored "$version" "$kind" "$period"
            done
        done
    done
}

# How long the process lived, in whole seconds, as recorded: what tracectl needs before and after does not count.
lived() { # store
    "$TRACECTL" -d "$1" query --json "SELECT (ended_ns - started_ns) / 1000000000 AS seconds FROM processes" |
        "$E2E/json" rows | grep -o '[0-9]*'
}

# Goroutines that do something every 50 microseconds leave hardly a moment without an event.
ends_in_time() { # verdict, limit, seconds at most, program's arguments...
    local verdict=$1 limit=$2 most=$3 store=$WORK/limits.db seconds
    shift 3
    rm -f "$store"*
    "$TRACECTL" -d "$store" go check --json --timeout "$limit" -- "$@" >"$WORK/out" || (($? == 1))
    same "$verdict" "$(json_get verdict <"$WORK/out")"
    seconds=$(lived "$store")
    ((seconds <= most)) || fail "$seconds s"
}

an_interrupt_is_heard() {
    local pid status=0
    "$TRACECTL" -d "$WORK/interrupted.db" go check --timeout 0 -- "$WORK/healthy-1.22" sleeper 50us 1h >"$WORK/out" \
        2>"$WORK/err" &
    pid=$!
    until [[ -e $WORK/interrupted.db ]] && pgrep -P "$pid" -f "healthy-1.22 sleeper" >/dev/null; do sleep 0.1; done
    sleep 1
    kill -TERM "$pid"
    wait "$pid" || status=$? # or for ever
    same 3 "$status"
    same "" "$(cat "$WORK/out")"
    grep -q '^tracectl: go check was interrupted: no verdict' "$WORK/err"
    pkill -KILL -f "$WORK/healthy-1.22 sleeper" || true # it was not ours to end
}

# What a goroutine began with is the function that was written, in the line of its go statement.
named() { # version
    local wanted
    "$TRACECTL" -q -d "$WORK/named-$1.db" go check -- "$WORK/healthy-$1" begun 1ms >/dev/null
    "$TRACECTL" -d "$WORK/named-$1.db" query --json "SELECT name FROM threads" >"$WORK/names"
    for wanted in 'main.plain' 'main.withArguments' 'main.(\*part).run' 'main.part.value' 'main.inlined' 'main.generic\[' \
        'main.(\*box\[.*\]).loop' 'main.runner.run' 'main.begun.func[0-9]*'; do
        grep -q "\"$wanted.* (main.go:[0-9]*" "$WORK/names" || fail "no $wanted in $(cat "$WORK/names")"
    done
    lacks 'gowrap\|-fm' <"$WORK/names"
}

# Only the output of an execution with a bug is worth reading.
output_is_kept() {
    "$TRACECTL" -d "$WORK/output.db" go explore --runs 3 -- "$WORK/healthy-1.22" talk 1ms >"$WORK/out" 2>&1
    lacks 'begins to talk' <"$WORK/out"
    "$TRACECTL" -v -d "$WORK/output.db" go explore --runs 3 -- "$WORK/healthy-1.22" talk 1ms >"$WORK/out" 2>&1
    (($(grep -c 'begins to talk' "$WORK/out") == 6)) || fail "$(cat "$WORK/out")"
    "$TRACECTL" -d "$WORK/output.db" go explore --runs 3 -- "$WORK/healthy-1.22" crash 1ms >"$WORK/out" 2>&1 || (($? == 1))
    sed -n '/^Its output:/,$p' "$WORK/out" >"$WORK/output"
    grep -q '^    begins to talk$' "$WORK/output"
    grep -q '^    panic: enough$' "$WORK/output"
    "$TRACECTL" -d "$WORK/output.db" go explore --json --runs 3 -- "$WORK/healthy-1.22" crash 1ms >"$WORK/out" || (($? == 1))
    json_get output <"$WORK/out" >"$WORK/output"
    grep -q 'begins to talk' "$WORK/output"
}

for version in "${versions[@]}"; do
    build "$version"
done
if [[ ${HEALTHY_PERIODS:-} ]]; then
    explore_all
    finish
    exit
fi
go_bugs_build 1.22 "$WORK/bugs" -ldflags='-s -w'
explore_some
run_case "the time limit is kept while events come" ends_in_time timeout 2 10 "$WORK/healthy-1.22" sleeper 50us 1h
run_case "patience is kept while events come" ends_in_time global-deadlock 60 10 "$WORK/bugs/programs_buggy" heartbeat
run_case "a signal to tracectl is heard while events come" an_interrupt_is_heard
for version in "${versions[@]}"; do
    run_case "$version goroutines are named by what was written" named "$version"
done
run_case "the output of executions is kept for the one with a bug" output_is_kept
finish
