#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Child processes of every kind are followed from their first instruction, and none is harmed.
. "$(dirname "$0")/lib.sh"
needs_capture

count() { # run, function
    q "SELECT count(*) AS n FROM events JOIN functions f USING (function_id) WHERE run_id = $1 AND kind = 'call'
       AND f.name = '$2'"
}

children_are_followed() { # program, options of record...
    local program=$1 name id
    name=$(IFS=_ && echo "$*")
    shift
    record "$name" "$@" -- "$PROGRAMS/$program" >"$WORK/out"
    diff <("$PROGRAMS/$program") "$WORK/out"
    id=$(run_id "$name")
    same "$((10 + 100 + 50 + 60 + 70 + 80 + 90))" "$(count "$id" step)"
    for work in work_parent work_forked work_grandchild work_vforked work_fork_exec work_vfork_exec work_spawned; do
        same "$work 1" "$work $(count "$id" "$work")"
    done
    same 7 "$(q "SELECT count(DISTINCT pid) AS n FROM processes WHERE run_id = $id")"
    same 0 "$(q "SELECT count(*) AS n FROM losses WHERE run_id = $id")"
}

steps_are_in_their_process() {
    # One process per kind of work, each with its own steps.
    same "10 50 60 70 80 90 100" "$(q "SELECT count(*) AS n FROM events JOIN functions f USING (function_id)
        JOIN threads t USING (thread_id) WHERE events.run_id = $(run_id forks) AND kind = 'call' AND f.name = 'step'
        GROUP BY t.process_id ORDER BY n" | paste -sd ' ')"
    same "0.0 1.0 2.0 3.0 4.0 5.0 6.0" "$(q "SELECT label FROM threads WHERE run_id = $(run_id forks) ORDER BY label" |
        paste -sd ' ')"
}

executed_children_start_at_main() {
    same 4 "$(q "SELECT count(*) AS n FROM events JOIN functions f USING (function_id)
        WHERE run_id = $(run_id forks) AND kind = 'call' AND f.name = 'main'")"
}

parents_are_known() {
    same 6 "$(q "SELECT count(*) AS n FROM processes c JOIN processes p ON p.process_id = c.parent_process_id
        WHERE c.run_id = $(run_id forks)")"
}

not_followed() {
    local id name=alone$1
    shift
    record "$name" --no-follow "$@" -- "$PROGRAMS/forks" >"$WORK/out"
    diff <("$PROGRAMS/forks") "$WORK/out"
    id=$(run_id "$name")
    same 10 "$(count "$id" step)"
    same 1 "$(q "SELECT count(*) AS n FROM processes WHERE run_id = $id")"
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $id")"
}

many_not_followed() { # more than there are buffers; options of record...
    # shellcheck disable=SC2016 # the traced shell expands it
    timeout 120 "$TRACECTL" -q record -n many --no-follow "$@" -- \
        sh -c 'i=0; while [ $i -lt 2500 ]; do (:); i=$((i + 1)); done; echo finished' >"$WORK/out"
    same finished "$(<"$WORK/out")"
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id many)")"
    same 1 "$(q "SELECT count(*) AS n FROM threads WHERE run_id = $(run_id many)")"
}

jobs_of_a_shell() { # a stop would look like Ctrl-Z to the shell
    # shellcheck disable=SC2016 # the traced shell expands it
    printf '%s\n' "'$PROGRAMS/million' 10" "'$PROGRAMS/million' 20" 'echo "$(jobs | wc -l) jobs"' exit |
        script -qec "'$TRACECTL' -q record -n jobs -- bash --norc -i" /dev/null >"$WORK/out"
    cat "$WORK/out"
    same 2 "$(grep -c 'main 1' "$WORK/out")"
    same 1 "$(grep -c '0 jobs' "$WORK/out")"
    same 0 "$(grep -c Stopped "$WORK/out" || true)"
    (($(q "SELECT count(*) AS n FROM losses WHERE run_id = $(run_id jobs) AND cause LIKE '%before its probes'") > 0))
}

through_a_shell() { # the first program is not the one that matters
    record shell --functions '^step$' -- sh -c "'$PROGRAMS/forks' && '$PROGRAMS/forks'" >"$WORK/out"
    same 12 "$(grep -c ok "$WORK/out")"
    same 920 "$(count "$(run_id shell)" step)"
}

run_case "fork, exec, vfork, posix_spawn" children_are_followed forks
run_case "each process has its own calls and label" steps_are_in_their_process
run_case "executed children are seen from main on" executed_children_start_at_main
run_case "parents are known" parents_are_known
run_case "children with inferred returns" children_are_followed forks --no-returns
run_case "five-byte nops at the entries do not kill fork children" children_are_followed forks_nop5
run_case "--no-follow leaves children alone" not_followed ""
run_case "--no-follow with inline probes: what a child by vfork calls is not its parent's" not_followed _inline \
    --backend inline
run_case "--no-follow by ptrace" not_followed _ptrace --life-cycle ptrace
run_case "thousands of children that are not followed take no buffers" many_not_followed
run_case "nor by ptrace" many_not_followed --life-cycle ptrace
run_case "programs started by a shell" through_a_shell
run_case "jobs of an interactive shell are not stopped" jobs_of_a_shell
finish
