#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Inline probes in programs with what containers have: pid namespaces of their own, in which each thread's calls are its
# own, and seccomp filters, which no call of a recorder's may ever meet.
. "$(dirname "$0")/lib.sh"
needs_capture

CALLS=3000

# Each kind of thread is there once, and has its calls and no others; the processes are as many as the program made.
each_has_its_own() { # run's name, kinds that may be lost as a whole
    local run lost
    run=$(run_id "$1")
    q "SELECT f.name || ' ' || sum(c.calls) || ' of ' || count(DISTINCT t.thread_id) AS line
        FROM call_counts c JOIN threads t USING (thread_id) JOIN functions f USING (function_id)
        WHERE t.run_id = $run AND f.name LIKE 'in\\_%' ESCAPE '\\' GROUP BY f.name ORDER BY 1" >"$WORK/kinds"
    same "" "$(grep -v " $CALLS of 1\$" "$WORK/kinds")"
    lost=$((11 - $(wc -l <"$WORK/kinds")))
    same "$((11 - lost))" "$(q "SELECT count(DISTINCT t.thread_id) AS n FROM call_counts c
        JOIN threads t USING (thread_id) JOIN functions f USING (function_id)
        WHERE t.run_id = $run AND f.name LIKE 'in\\_%' ESCAPE '\\'")"
    same "$((lost * CALLS))" "$(q "SELECT coalesce(sum(count), 0) AS n FROM losses WHERE run_id = $run" | awk -v calls="$CALLS" \
        '{ print $1 - $1 % calls }')"
    ((lost <= $2))
    [[ $(q "SELECT value FROM tags WHERE run_id = $run AND key LIKE 'backend:%contained'") == *'by inline probes'* ]]
}

launched() { # life cycle, namespaces' program...
    local life_cycle=$1 name=$* may_be_lost=0
    shift
    record "$name" --backend inline --budget none --exit-status --life-cycle "$life_cycle" -- \
        "$@" "$PROGRAMS/contained" >"$WORK/out"
    same "all of them have ended well" "$(cat "$WORK/out")"
    # By ptrace it may be open which of two ended processes had a thread with that id: its calls are lost, and counted.
    [[ $life_cycle == bpf ]] || may_be_lost=2
    each_has_its_own "$name" "$may_be_lost"
}

# By the number that the host knows it by.
attached() { # namespaces' program...
    local outer pid status=0
    "$@" "$PROGRAMS/contained" loop >"$WORK/looped" &
    outer=$!
    echo "$outer" >>"$WORK/pids"
    wait_until 15 grep -q ready "$WORK/looped"
    for pid in $(descendants "$outer"); do
        [[ $(readlink "/proc/$pid/exe") == */contained ]] && break
    done
    grep -qE '^NSpid:.*\s1$' "/proc/$pid/status"
    record attached --backend inline -p "$pid" --duration 1
    kill -TERM "$pid"
    wait "$outer" || status=$?
    same 0 "$status"
    grep -q "ended well" "$WORK/looped"
    (($(q "SELECT sum(c.calls) FROM call_counts c JOIN threads t USING (thread_id) JOIN functions f USING (function_id)
        WHERE t.run_id = $(run_id attached) AND f.name = 'in_thread'") >= CALLS))
    [[ $(q "SELECT value FROM tags WHERE run_id = $(run_id attached) AND key LIKE 'backend:%contained'") == \
        *'by inline probes'* ]]
}

backend_of() { # run's name, program
    q "SELECT value FROM tags WHERE run_id = $(run_id "$1") AND key LIKE 'backend:%$2'"
}

in_a_container() {
    local name=container
    record "$name" --backend inline --budget none --exit-status -- \
        unshare --map-root-user --user "${ONE[@]:1}" "$PROGRAMS/filtered" container "$PROGRAMS/contained" >"$WORK/out"
    same "all of them have ended well" "$(cat "$WORK/out")"
    each_has_its_own "$name" 0
}

# Far more calls than there is memory for at once: threads wait, which the filter allows.
nothing_is_lost() {
    record many --backend inline --budget none --ring-size 1M -- "$PROGRAMS/filtered" container "$PROGRAMS/million" 4000000 \
        >"$WORK/many"
    "$PROGRAMS/million" 4000000 >"$WORK/native"
    diff "$WORK/native" "$WORK/many"
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id many)")"
    (($(q "SELECT sum(calls) AS n FROM call_counts WHERE run_id = $(run_id many)") >= 4000000))
    [[ $(backend_of many million) == *'by inline probes'* ]]
}

# The filter would meet a call of ours: that is seen before anything is touched.
refused() { # filter
    record "$1" --backend auto --budget none --exit-status -- "$PROGRAMS/filtered" "$1" "$PROGRAMS/contained" >"$WORK/out"
    same "all of them have ended well" "$(cat "$WORK/out")"
    same "the kernel's probes: seccomp restricts its system calls" "$(backend_of "$1" contained)"
    each_ends_whole "$1"
}

each_ends_whole() { # run's name
    same "$((11 * CALLS))" "$(q "SELECT sum(c.calls) AS n FROM call_counts c JOIN functions f USING (function_id)
        WHERE c.run_id = $(run_id "$1") AND f.name LIKE 'in\\_%' ESCAPE '\\'")"
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id "$1")")"
}

# Recordings of a running program begin, end, and are killed.
filtered_and_running() {
    local pid round recorder
    spawn "$PROGRAMS/filtered" container "$PROGRAMS/million" 1000000000000 >"$WORK/running"
    pid=${spawned:?}
    wait_until 15 grep -q million "/proc/$pid/comm"
    for round in 1 2; do
        record "running$round" --backend inline -p "$pid" --duration 300ms
        [[ $(backend_of "running$round" million) == *'by inline probes'* ]]
        same 0 "$(grep -c memfd: "/proc/$pid/maps")"
        text_is_clean "$pid"
        spawn "$TRACECTL" -q -d "$WORK/killed$round.db" record --backend inline -p "$pid"
        recorder=$spawned
        wait_until 30 grep -q memfd: "/proc/$pid/maps"
        kill -KILL "$recorder"
        wait "$recorder" || true
        text_is_clean "$pid"
        lives "$pid"
    done
    kill -KILL "$pid"
}

descendants() { # process
    local child
    for child in $(pgrep -P "$1"); do
        echo "$child"
        descendants "$child"
    done
}

ONE=(unshare --pid --fork --mount-proc)
for life_cycle in bpf ptrace; do
    run_case "in the host's namespace, $life_cycle" launched $life_cycle env
    run_case "in a pid namespace, $life_cycle" launched $life_cycle "${ONE[@]}"
    run_case "in one of a user namespace, $life_cycle" launched $life_cycle unshare --map-root-user --user "${ONE[@]:1}"
    run_case "in one within another, $life_cycle" launched $life_cycle "${ONE[@]}" "${ONE[@]}"
done
run_case "a running program in a namespace" attached "${ONE[@]}"
run_case "a running program in one within another" attached "${ONE[@]}" "${ONE[@]}"
run_case "in a container: namespaces and a filter" in_a_container
run_case "threads wait under a filter that allows it, and nothing is lost" nothing_is_lost
run_case "a running program under a filter, whose recorders end and are killed" filtered_and_running
for kind in errno trap kill notify arguments restart; do
    run_case "a filter that inline probes would meet: $kind" refused $kind
done
finish
