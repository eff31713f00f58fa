#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The stacks of live threads tell which calls are open, whatever the threads sleep in, with and without return probes
# on their stacks; and the threads do not notice.
. "$(dirname "$0")/lib.sh"
needs_capture

LIVE_VERDICTS=$(dirname "$PROGRAMS")/e2e/live_verdicts

# Starts a command on the sample program, whose input stays open; its process id is in $blocked.
start_blocked() { # name, command...
    said=$WORK/$1.said input=$WORK/$1.input
    shift
    mkfifo "$input"
    exec 8<>"$input"
    "$@" <"$input" >"$said" 8>&- &
    echo $! >>"$WORK/pids"
    wait_until 30 grep -q '^ready' "$said"
    blocked=$(awk '$1 == "call" { print $2; exit }' "$said")
    blocked=$(awk '/^Tgid:/ { print $2 }' "/proc/$blocked/status")
}

# It removes what it made when its input ends.
end_blocked() {
    is_gone() { ! lives "$blocked"; }
    exec 8>&-
    wait_until 10 is_gone
}

# What the program says about a count by now.
told() { # interrupted or turns
    local before
    before=$(grep -c '^turns' "$said") || true
    echo >"$input"
    more_turns() { (($(grep -c '^turns' "$said") > before)); }
    wait_until 10 more_turns
    grep "^$1 " "$said" | tail -n 1 | cut -d ' ' -f 2
}

goes_on() {
    local before
    before=$(told turns)
    sleep 0.1
    (($(told turns) > before)) || fail "the computing thread stands still"
    lacks -hE '^State:[[:space:]]*[tT]' /proc/"$blocked"/task/*/status
    lacks -hE '^TracerPid:[[:space:]]*[1-9]' /proc/"$blocked"/task/*/status
}

verdicts_are_right() { # times
    for ((i = 0; i < $1; i++)); do
        "$LIVE_VERDICTS" "$blocked" <"$said" | tee "$WORK/verdicts"
        (($(awk '/^compared/ { print $2 }' "$WORK/verdicts") >= 98)) || fail "too few were compared"
    done
}

nobody_noticed() {
    same 0 "$(told interrupted)"
    goes_on
}

# Every thread that sleeps for good is known without being stopped, and the one that computes by being stopped.
few_were_stopped() { # threads
    awk -v threads="$1" '/^compared/ && $6 == threads && $8 >= 1 && $8 <= 2 && $10 <= 2 { good = 1 } END { exit !good }' \
        "$WORK/verdicts"
}

# How many threads have a line like that in their status.
threads_with() { # pattern
    grep -lE "$1" /proc/"$blocked"/task/*/status | wc -l
}

# The thread that computes, and perhaps the one that sleeps for moments only.
some_stand_still() {
    local traced still
    traced=$(threads_with '^TracerPid:[[:space:]]*[1-9]')
    still=$(threads_with '^State:[[:space:]]*t')
    ((traced >= 1 && traced <= 2 && still == traced)) || fail "$traced threads are traced, $still stand still"
}

kill_while_they_stand_still() {
    spawn "$LIVE_VERDICTS" "$blocked" hold <"$said" >"$WORK/held"
    wait_until 10 grep -q held "$WORK/held"
    some_stand_still
    kill -KILL "$spawned"
    wait "$spawned" 2>/dev/null || true
    goes_on
}

# The thread that computes stands still under another tracer: it is read as it is, and stays that tracer's.
somebody_else_traces() {
    local other
    spawn "$LIVE_VERDICTS" "$blocked" hold <"$said" >"$WORK/held2"
    other=$spawned
    wait_until 10 grep -q held "$WORK/held2"
    some_stand_still
    "$LIVE_VERDICTS" "$blocked" <"$said" | tee "$WORK/verdicts"
    some_stand_still
    awk '/^compared/ && $8 <= 1 && $10 >= 1 { good = 1 } END { exit !good }' "$WORK/verdicts"
    kill -KILL "$other"
    wait "$other" 2>/dev/null || true
    goes_on
}

program_is_gone_from_disk() {
    cp "$PROGRAMS/blocked" "$WORK/short_lived"
    start_blocked deleted "$WORK/short_lived"
    rm "$WORK/short_lived"
    verdicts_are_right 1
    end_blocked
}

return_addresses_were_replaced() {
    local range
    range=$(awk '/\[uprobes\]/ { sub(/-.*/, "", $1); print substr($1, 1, length($1) - 3) }' "/proc/$blocked/maps")
    [[ -n $range ]] || fail "no return probe was hit"
    # What the functions found as their return address lies on the page that the kernel puts return probes on.
    (($(awk '$1 == "call" { print $7 }' "$said" | grep -c "^0x${range}...$") >= 60)) || fail "too few were replaced"
}

start_blocked plain "$PROGRAMS/blocked" 0
run_case "open calls are told from those that have returned" verdicts_are_right 10
run_case "sleeping threads were not stopped" few_were_stopped 20
run_case "no system call was interrupted" nobody_noticed
run_case "kill -9 while threads stand still lets them go" kill_while_they_stand_still
run_case "threads of another tracer are let alone" somebody_else_traces
run_case "an executable that was deleted" program_is_gone_from_disk
end_blocked

start_blocked many "$PROGRAMS/blocked" 2000
run_case "2,000 threads" verdicts_are_right 2
run_case "2,000 threads, not stopped" few_were_stopped 2020
run_case "2,000 threads did not notice" nobody_noticed
end_blocked

# All of them lie in code; the page that the kernel puts return probes on is the highest of all.
return_addresses_are_true() {
    awk '$1 == "call" { calls++; code += $7 !~ /^0x7ffff/ } END { exit !(calls >= 60 && code == calls) }' "$said" ||
        fail "$(grep '^call.* 0x7ffff' "$said")"
}

start_blocked recorded "$TRACECTL" -q record -n recorded --time full -- "$PROGRAMS/blocked" 0
run_case "return probes are not used unless they are asked for" return_addresses_are_true
end_blocked

start_blocked probed "$TRACECTL" -q record -n probed --returns probe -- "$PROGRAMS/blocked" 0
run_case "with return probes the return addresses on the stacks are not the true ones" return_addresses_were_replaced
run_case "and yet open calls are told from those that have returned" verdicts_are_right 3
run_case "no system call was interrupted there either" nobody_noticed
end_blocked
finish
