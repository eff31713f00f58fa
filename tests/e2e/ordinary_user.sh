#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# An ordinary user records own programs by ptrace: the same calls as root does with BPF, and nothing is harmed.
. "$(dirname "$0")/lib.sh"
needs_capture

NOBODY=$WORK/nobody
mkdir "$NOBODY"
chmod 755 "$WORK"
cp "$TRACECTL" "$NOBODY/tracectl"
chown 65534 "$NOBODY"
AS_NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# Calls and returns of a run in their order, a line for each thread; which thread has which label is not told.
events_of() { # store, run's name
    TRACECTL_DB=$1 q "SELECT t.label || ' ' || e.kind || ':' || f.name AS line FROM events e
        JOIN threads t USING (thread_id) JOIN functions f USING (function_id)
        JOIN runs r ON r.run_id = e.run_id WHERE r.name = '$2' ORDER BY e.thread_id, e.seq" |
        awk '{ calls[$1] = calls[$1] " " $2 } END { for (label in calls) print calls[label] }' | sort
}

# A program of tests that nobody may run as well.
program() { # name
    cp -u "$PROGRAMS/$1" "$NOBODY/$1"
}

losses_of() { # store, run's name
    TRACECTL_DB=$1 q "SELECT cause FROM losses JOIN runs USING (run_id) WHERE name = '$2'"
}

# What went wrong is in the status, and what the program printed in the file.
by_ptrace_as_nobody() { # run's name, options and command...
    "${AS_NOBODY[@]}" "$NOBODY/tracectl" -q -d "$NOBODY/store.db" record -n "$@"
}

the_same_in_every_way() { # program, arguments...
    local name=$1 status=0 way
    program "$name"
    shift
    "$NOBODY/$name" "$@" | sort >"$WORK/native" || status=$?
    record "$name" --exit-status --backend auto -- "$NOBODY/$name" "$@" | sort >"$WORK/bpf" || same "$status" $?
    record "$name-ptrace" --exit-status --life-cycle ptrace -- "$NOBODY/$name" "$@" | sort >"$WORK/root" ||
        same "$status" $?
    by_ptrace_as_nobody "$name" --exit-status -- "$NOBODY/$name" "$@" | sort >"$WORK/user" || same "$status" $?
    for way in bpf root user; do
        diff "$WORK/native" "$WORK/$way"
    done
    events_of "$STORE" "$name" >"$WORK/bpf.events"
    events_of "$STORE" "$name-ptrace" >"$WORK/root.events"
    events_of "$NOBODY/store.db" "$name" >"$WORK/user.events"
    (($(wc -w <"$WORK/bpf.events") > 200))
    cmp "$WORK/bpf.events" "$WORK/root.events"
    cmp "$WORK/bpf.events" "$WORK/user.events"
    same "" "$(losses_of "$STORE" "$name-ptrace")"
    same "" "$(losses_of "$NOBODY/store.db" "$name")"
}

says_so_once() {
    program million
    "${AS_NOBODY[@]}" "$NOBODY/tracectl" -d "$NOBODY/store.db" record -n said -- "$NOBODY/million" 1000 2>"$WORK/err" >/dev/null
    same 1 "$(grep -c 'note: recording by ptrace, with inline probes only: cannot load BPF programs' "$WORK/err")"
    same ptrace "$(TRACECTL_DB=$NOBODY/store.db q "SELECT value FROM tags JOIN runs USING (run_id) WHERE name = 'said' AND key = 'life cycle'")"
    "$TRACECTL" record -n asked --life-cycle bpf -- "$NOBODY/million" 1000 2>"$WORK/err" >/dev/null
    lacks ptrace "$WORK/err"
}

# What ptrace cannot see is refused before anything runs.
refused() {
    local options
    for options in '--sync' '--go' '--returns probe' '--backend uprobe' '--budget 5' '--when-behind wait' \
        '--life-cycle bpf'; do
        # shellcheck disable=SC2086 # words
        fails_with 3 "${AS_NOBODY[@]}" "$NOBODY/tracectl" -d "$NOBODY/store.db" record $options -- touch "$NOBODY/touched"
        [[ ! -e $NOBODY/touched ]]
    done
    fails_with 3 "${AS_NOBODY[@]}" "$NOBODY/tracectl" -d "$NOBODY/store.db" record -p $$ --duration 1
    grep "another user's" "$WORK/fails.err"
}

# A program that may change its code would write over probes, and one with a filter may not make the calls that
# bring them: they run on without, which is said.
blind() {
    cat >"$WORK/blind.c" <<'C'
#include <stdio.h>
#include <sys/mman.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile(""); return n + 1; }
int main(void) {
    void *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    printf("%d\n", work(41));
    return 0;
}
C
    ${CC:-cc} -O1 -o "$NOBODY/blind" "$WORK/blind.c"
    same 42 "$(by_ptrace_as_nobody blind -- "$NOBODY/blind")"
    TRACECTL_DB=$NOBODY/store.db q "SELECT value FROM tags JOIN runs USING (run_id) WHERE name = 'blind' AND key LIKE 'backend:%'" |
        grep 'none: .*ptrace does not see'
    TRACECTL_DB=$NOBODY/store.db "$TRACECTL" --json show blind | grep -q 'others need BPF'
}

a_running_process() {
    program million
    spawn "${AS_NOBODY[@]}" "$NOBODY/million" 1000000000 >"$WORK/out"
    local pid=$spawned
    wait_until 15 grep -q million "/proc/$pid/comm"
    by_ptrace_as_nobody attached --duration 300ms -p "$pid"
    lives "$pid"
    same 0 "$(grep -c memfd: "/proc/$pid/maps")"
    same "TracerPid: 0" "$(grep TracerPid "/proc/$pid/status" | tr -s '\t' ' ')"
    text_is_clean "$pid"
    (($(TRACECTL_DB=$NOBODY/store.db q "SELECT sum(calls) AS n FROM call_counts JOIN runs USING (run_id) WHERE runs.name = 'attached'") > 0))
    kill -KILL "$pid"
}

# Whatever the recorder was doing when it was killed.
a_killed_recorder() {
    local round recorder
    program forty
    "$NOBODY/forty" >"$WORK/native"
    for round in {1..8}; do
        spawn "${AS_NOBODY[@]}" "$NOBODY/tracectl" -q -d "$NOBODY/killed$round.db" record -- \
            sh -c "echo >'$NOBODY/began$round'; '$NOBODY/forty'; echo \$? >'$NOBODY/ended$round'" >"$WORK/out$round"
        recorder=$spawned
        wait_until 15 test -e "/proc/$recorder/task/$recorder/children"
        sleep "0.0$((round * 11))"
        kill -KILL "$recorder"
        wait "$recorder" || true
        [[ -e $NOBODY/began$round ]] || continue
        wait_until 60 test -s "$NOBODY/ended$round"
        same 0 "$(<"$NOBODY/ended$round")"
        diff "$WORK/native" "$WORK/out$round"
    done
}

job_control() { # stopped and continued by others, as without a recorder
    program signalled
    : >"$WORK/out"
    spawn "${AS_NOBODY[@]}" "$NOBODY/tracectl" -q -d "$NOBODY/jobs.db" record -n jobs --exit-status -- "$NOBODY/signalled" >"$WORK/out"
    local recorder=$spawned pid status=0
    wait_until 15 grep -q ready "$WORK/out"
    pid=$(pgrep -P "$recorder" -x signalled)
    kill -STOP "$pid"
    wait_until 15 grep -q '^State:.*[Tt]' "/proc/$pid/status"
    kill -CONT "$pid"
    wait_until 15 grep -q '^State:.*[SR]' "/proc/$pid/status"
    kill -TERM "$recorder"
    wait "$recorder" || status=$?
    same 55 "$status"
    same "signal 15" "$(grep signal "$WORK/out")"
    same "" "$(losses_of "$NOBODY/jobs.db" jobs)"
}

in_namespaces() { # the rest of unshare's options...
    program births
    "$NOBODY/births" | sort >"$WORK/native"
    unshare "$@" "$TRACECTL" -q record -n "$*" -- "$NOBODY/births" | sort >"$WORK/out"
    diff "$WORK/native" "$WORK/out"
    events_of "$STORE" births >"$WORK/bpf.events"
    events_of "$STORE" "$*" >"$WORK/events"
    cmp "$WORK/bpf.events" "$WORK/events"
}

for program in forty threads births forks signals exceptions; do
    run_case "$program: the same events as root with BPF, by ptrace, and as an ordinary user" the_same_in_every_way $program
done
run_case "that it is by ptrace is said, in one line and in the store" says_so_once
run_case "what ptrace cannot serve is refused" refused
run_case "what has no inline probes is stored as not seen" blind
run_case "a running process, which is left as it was" a_running_process
run_case "a recorder that is killed: the program ends as it would" a_killed_recorder
run_case "stops by others, and a signal that is passed on" job_control
run_case "in a pid namespace" in_namespaces --pid --fork --mount-proc
run_case "in a user namespace" in_namespaces --user --map-root-user
run_case "in both" in_namespaces --user --map-root-user --pid --fork --mount-proc
finish
