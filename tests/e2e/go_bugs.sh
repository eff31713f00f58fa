#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Buggy Go programs and their corrected twins: what `go check` and `go explore` say of them, by three versions of Go,
# stripped. Bugs that need a certain schedule are searched for with `go explore`; the twins must pass all the time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/go_lib.sh"
needs_capture

leaked_of() { # file
    json_get leaked <"$1" | grep -o '"wait_reason":' | wc -l
}

# The verdict, and of leaks the number of goroutines.
judged() { # wanted, left, tracectl's arguments...
    local wanted=$1 left=$2 status=0
    shift 2
    "$TRACECTL" "$@" "${go_bug_command[@]}" >"$WORK/out.json" 2>"$WORK/errors" || status=$?
    ((status <= 1)) || cat "$WORK/errors"
    same "$wanted" "$(json_get verdict <"$WORK/out.json")"
    [[ $wanted != leak || $left == - ]] || same "$left" "$(leaked_of "$WORK/out.json")"
}

explored() { # version, variant, wanted, left, runs, kind, name, tests
    go_bug_command "$WORK/$1" "$2" "$6" "$7" "$8"
    judged "$3" "$4" -d "$WORK/explored.db" go explore --json --timeout 5 --runs "$5" --
}

checked() { # version, wanted, left, kind, name, tests
    go_bug_command "$WORK/$1" buggy "$4" "$5" "$6"
    judged "$2" "$3" -d "$WORK/checked.db" go check --json --timeout 5 --
}

# The schedule that an exploration has printed shows the bug again.
schedule_repeats() { # version
    local seed=none tries
    go_bug_command "$WORK/$1" buggy program nested_read -
    for ((tries = 0; tries < 10; tries++)); do # it shows without a delay now and then
        "$TRACECTL" -d "$WORK/seed.db" go explore --json --runs 500 -- "${go_bug_command[@]}" >"$WORK/first.json" ||
            (($? == 1))
        seed=$(json_get seed <"$WORK/first.json")
        [[ $seed != *.* ]] || break
    done
    [[ $seed == *.* ]] || fail "no schedule in ten explorations, but $seed"
    "$TRACECTL" -d "$WORK/seed.db" go explore --json --runs 100 --seed "$seed" -- "${go_bug_command[@]}" >"$WORK/again.json" ||
        (($? == 1))
    same leak "$(json_get verdict <"$WORK/again.json")"
}

# Executions beside each other are told apart, and a bug in one ends the others.
explored_side_by_side() { # version
    go_bug_command "$WORK/$1" buggy program nested_read -
    judged leak 2 -d "$WORK/jobs.db" go explore --json --jobs 4 --runs 1000 --
    (($(json_get first_bug_run <"$WORK/out.json") == $(json_get runs <"$WORK/out.json")))
    if pgrep -f "$WORK/$1/programs_buggy nested_read" >/dev/null; then return 1; fi
    go_bug_command "$WORK/$1" fixed program nested_read -
    judged pass - -d "$WORK/jobs.db" go explore --json --jobs 4 --runs 30 --
    same 30 "$(json_get runs <"$WORK/out.json")"
    (($(json_get yields <"$WORK/out.json") >= 10))
}

# Goroutines have other numbers in every run; they are the same by how they were created.
goroutines_are_compared() { # version
    local store=$WORK/diff.db
    "$TRACECTL" -q -d "$store" go check -n ok -- "$WORK/$1/programs_fixed" index_journal >/dev/null
    "$TRACECTL" -q -d "$store" go check -n bad -- "$WORK/$1/programs_buggy" index_journal >/dev/null || (($? == 1))
    "$TRACECTL" -d "$store" diff --json ok bad >"$WORK/diff.json" || (($? == 1))
    same 3 "$(json_get suspects <"$WORK/diff.json" | grep -o '"thread"' | wc -l)"
    lacks "g[0-9]*'" <"$WORK/diff.json"
    "$TRACECTL" -d "$store" diff ok bad >"$WORK/diff.txt" || (($? == 1))
    grep -q 'commit:mutex lock  <- never returned' <"$WORK/diff.txt"
}

each_bug() { # version, function for a line of the list
    while IFS=$'\t' read -r kind name want left how _ _ tests; do
        "$2" "$1" "$kind" "$name" "$want" "$left" "$how" "$tests"
    done < <(go_bugs_list)
}

explore_it() { # version, kind, name, want, left, how, tests
    run_case "$1 $3" explored "$1" buggy "$4" "$5" 1000 "$2" "$3" "$7"
    run_case "$1 $3, corrected" explored "$1" fixed pass - 5 "$2" "$3" "$7"
}

# The two versions share the bugs: programs with the one, tests with the other.
check_it() {
    [[ $6 == sometimes || $2 != "${kind_of[$1]}" ]] || run_case "$1 $3" checked "$1" "$4" "$5" "$2" "$3" "$7"
}

# Goroutines in the queue of the ending thread's processor run on, too, and there may be no other processor.
ends_with_one_processor() { # version
    go_bug_command "$WORK/$1" buggy test reader_and_writer '^TestReaderAndWriter$'
    GOMAXPROCS=1 judged leak 2 -d "$WORK/one.db" go check --json --timeout 5 --
}

declare -A kind_of=([1.19]=test [1.23]=program)

go_bugs_build 1.22 "$WORK/1.22" -ldflags='-s -w'
each_bug 1.22 explore_it
run_case "a schedule that was printed shows the bug again" schedule_repeats 1.22
run_case "executions beside each other" explored_side_by_side 1.22
run_case "goroutines of two runs are compared" goroutines_are_compared 1.22
for version in 1.19 1.23; do
    go_bugs_build "$version" "$WORK/$version" -ldflags='-s -w'
    each_bug "$version" check_it
    run_case "$version with one processor" ends_with_one_processor "$version"
done
finish
