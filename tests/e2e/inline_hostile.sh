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
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id "up_$1")")"
}

run_case "a recording with programs that cheat ends as any other" all_at_once
run_case "an honest program beside them is recorded as it is" the_honest_one_is_whole
run_case "those that write what stubs cannot are named" cheats_are_named
for how in none users capabilities namespace; do
    run_case "a child that gives up rights has its own memory for records: $how" gives_up_rights "$how"
done
finish
