#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs that write into the memory of their inline probes what they like lose their own recording, and no one else's.
. "$(dirname "$0")/lib.sh"
needs_capture

pid_of() { # what it is
    awk -v what="$1" '$2 == what { print $1 }' "$WORK/said"
}

calls_by() { # what it is, function
    q "SELECT coalesce(sum(c.calls), 0) AS calls FROM call_counts c JOIN threads USING (thread_id)
       JOIN processes p USING (process_id) JOIN functions f USING (function_id)
       WHERE p.pid = $(pid_of "$1") AND f.name LIKE '$2'"
}

distrusted() { # what it is
    q "SELECT cause FROM losses WHERE cause LIKE 'process $(pid_of "$1") (cheats): its inline probes are not believed: %'"
}

# Also: no program of another user, or one without rights, makes code or sizes its own, and none keeps threads of
# others from waiting for the recorder.
all_at_once() {
    record cheats --backend inline --exit-status -- "$PROGRAMS/cheats" >"$WORK/said"
    same 11 "$(wc -l <"$WORK/said")"
    same complete "$(q "SELECT CASE WHEN ended_ns IS NULL THEN 'not ended' ELSE 'complete' END FROM runs WHERE run_id = $(run_id cheats)")"
}

the_honest_one_is_whole() {
    same 20000 "$(calls_by honest honest_work)"
    same 3000 "$(calls_by honest work)"
    same "" "$(distrusted honest)"
    same 0 "$(calls_by honest '%cheat%')"
}

cheats_are_named() {
    local what
    for what in functions ticks counts losses holes; do
        [[ $(distrusted "$what") ]] || {
            echo "not named: $what"
            return 1
        }
    done
}

# The child's calls before and after are whole, and its records go to memory of its own from then on.
gives_up_rights() { # how
    record "up_$1" --backend inline --exit-status -- "$PROGRAMS/gives_up" "$1" | sort >"$WORK/said.$1"
    q "SELECT p.pid || ' ' || sum(c.calls) AS line FROM call_counts c JOIN threads USING (thread_id)
       JOIN processes p USING (process_id) JOIN functions f USING (function_id)
       WHERE p.run_id = $(run_id "up_$1") AND f.name = 'work' GROUP BY p.pid" | sort >"$WORK/recorded.$1"
    diff "$WORK/said.$1" "$WORK/recorded.$1"
    [[ ${2:-} ]] || same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id "up_$1")")"
}

# Before Linux 6.14 what the C library does not do is seen a moment later, and said.
gives_up_raw_rights() { # how
    if [[ $1 != raw-namespace ]] && grep -q btf_trace_cap_capable /sys/kernel/btf/vmlinux; then
        gives_up_rights "$1"
    else
        gives_up_rights "$1" later
        same "process $(child_of "$1") (gives_up): its rights had changed a moment before it got buffers of its own" \
            "$(q "SELECT cause FROM losses WHERE run_id = $(run_id "up_$1")")"
    fi
}

child_of() { # how
    q "SELECT max(pid) AS child FROM processes WHERE run_id = $(run_id "up_$1")"
}

# A child that is not followed has no probes afterwards, nor has one that the C library did not make.
parted_without_probes() { # how, options of record
    local how=$1
    record "left_$how" --backend inline "${@:2}" --exit-status -- "$PROGRAMS/gives_up" "$how" left >"$WORK/said"
}

run_case "a recording with programs that cheat ends as any other" all_at_once
run_case "an honest program beside them is recorded as it is" the_honest_one_is_whole
run_case "those that write what stubs cannot are named" cheats_are_named
for how in none users capabilities namespace; do
    run_case "a child that gives up rights has its own memory for records: $how" gives_up_rights "$how"
done
for how in raw-users raw-capabilities raw-namespace; do
    run_case "the same by system calls of its own: $how" gives_up_raw_rights "$how"
done
for how in users raw-users raw-born; do
    run_case "the same of a child that is not followed: $how" parted_without_probes "$how" --no-follow
done
run_case "the same of a child that begins with other rights" parted_without_probes raw-born
finish
