#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# record --trigger: what is inside is recorded, what is outside is counted, and both are all there is.
. "$(dirname "$0")/lib.sh"
needs_capture

# Function by function, as "NAME CALLS" lines: what the whole recording has inside of calls of a function, and outside.
split_by() { # run id of a whole recording, function, inside or outside
    q "SELECT t.thread_id || ' ' || e.kind || ' ' || f.name AS line FROM events e JOIN threads t USING (thread_id)
       JOIN functions f USING (function_id) WHERE e.run_id = $1 AND e.kind IN ('call', 'return') ORDER BY t.thread_id, seq" |
        awk -v trigger="$2" -v wanted="$3" '
            $1 != thread { depth = within = 0; thread = $1 }
            $2 == "call" { name[depth++] = $3; within += $3 == trigger; if ((within > 0) == (wanted == "inside")) count[$3]++ }
            $2 == "return" { within -= name[--depth] == trigger }
            END { for (f in count) print f, count[f] }' | sort
}

recorded() { # run id
    q "SELECT f.name || ' ' || sum(calls) AS line FROM call_counts c JOIN functions f USING (function_id)
       WHERE c.run_id = $1 GROUP BY f.name" | sort
}

left_out() { # run id
    q "SELECT f.name || ' ' || sum(calls_missed) AS line FROM blind JOIN functions f USING (function_id)
       WHERE run_id = $1 AND cause = 'outside the trigger' GROUP BY f.name" | sort
}

both_are_all() { # program, its argument, trigger, record's options...
    local program=$1 argument=$2 trigger=$3 whole part
    shift 3
    record whole -- "$PROGRAMS/$program" "$argument" >/dev/null
    whole=$(run_id whole)
    record part --trigger "^$trigger\$" "$@" -- "$PROGRAMS/$program" "$argument" >/dev/null
    part=$(run_id part)
    same "$(split_by "$whole" "$trigger" inside)" "$(recorded "$part")"
    same "$(split_by "$whole" "$trigger" outside)" "$(left_out "$part")"
    "$TRACECTL" verify
    "$TRACECTL" rm whole part
}

# Each window of a share is whole, and what is missing is counted.
share() {
    local id windows
    record share --trigger '^row$' --trigger-share 25 -- "$PROGRAMS/million" 20000 >"$WORK/said"
    id=$(run_id share)
    windows=$(q "SELECT calls FROM call_counts WHERE run_id = $id AND name = 'row'")
    echo "$windows windows of $(sed -n 's/^row //p' "$WORK/said")"
    ((windows > 20 && windows < $(sed -n 's/^row //p' "$WORK/said") / 2))
    same "$windows" "$(q "SELECT count(*) AS n FROM events WHERE run_id = $id AND kind = 'call' AND depth = 0")"
    for name in row cell leaf; do
        same "$(sed -n "s/^$name //p" "$WORK/said")" "$(q "SELECT (SELECT sum(calls) FROM call_counts WHERE run_id = $id
            AND name = '$name') + (SELECT calls_missed FROM blind JOIN functions f USING (function_id)
            WHERE run_id = $id AND f.name = '$name') AS n")"
    done
    "$TRACECTL" show share | grep '^trigger  *^row\$, 25 % of the times$' >/dev/null
    "$TRACECTL" show share | grep '^gaps .*% of all calls recorded$' >/dev/null
}

# With a budget as well: windows from the next entry on.
on_a_running_process() {
    local id
    spawn "$PROGRAMS/busy" 1000 >"$WORK/busy.out"
    wait_until 10 grep -q beat "$WORK/busy.out"
    record running --trigger '^both$' -p "$spawned" --budget none --duration 0.5
    id=$(run_id running)
    text_is_clean "$spawned"
    kill -TERM "$spawned"
    wait "$spawned"
    grep -q '^unharmed' "$WORK/busy.out"
    same "both plus_one plus_two" "$(q "SELECT DISTINCT name FROM call_counts WHERE run_id = $id ORDER BY 1" | paste -sd ' ')"
    same both "$(q "SELECT DISTINCT f.name FROM events JOIN functions f USING (function_id) WHERE run_id = $id AND depth = 0")"
    same nanosleep@plt "$(left_out "$id" | sed -n 's/^\(nanosleep@plt\) .*/\1/p')"
}

# A recording that is killed has said what it leaves out.
killed() {
    spawn "$PROGRAMS/busy" 1000 >"$WORK/busy.out"
    local busy=$spawned
    wait_until 10 grep -q beat "$WORK/busy.out"
    spawn "$TRACECTL" -q record -n killed --flush-interval 0.2 --trigger '^both$' -p "$busy"
    says_so() {
        [[ $(q "SELECT count(*) AS n FROM blind JOIN functions f USING (function_id) WHERE f.name = 'nanosleep@plt'
            AND cause = 'outside the trigger' AND calls_missed IS NULL") == 1 ]]
    }
    wait_until 20 says_so
    kill -KILL "$spawned"
    text_is_clean "$busy"
    kill -TERM "$busy"
    same "^both\$, 100 % of the times" "$(q "SELECT value FROM tags JOIN runs USING (run_id) WHERE name = 'killed' AND key = 'trigger'")"
}

bad_usage() {
    local status=0
    "$TRACECTL" record --trigger nosuch -- "$PROGRAMS/million" 10 2>"$WORK/err" || status=$?
    same 3 "$status"
    grep -q "no function that can be probed matches --trigger 'nosuch'" "$WORK/err"
    for options in "--trigger (" "--trigger-share 50" "--trigger x --trigger-share 0" "--trigger x --trigger-share 101" \
        "--trigger x --backend inline"; do
        status=0
        # shellcheck disable=SC2086
        "$TRACECTL" record $options -- true 2>"$WORK/err" || status=$?
        same 2 "$status"
    done
}

while read -r program argument trigger returns; do
    run_case "$program, windows of $trigger, --returns $returns" both_are_all "$program" "$argument" "$trigger" --returns "$returns"
done <<'EOF'
million 5000 row auto
million 5000 cell infer
recursion_nonpie - is_even auto
recursion_nonpie - fib infer
recursion_nonpie - ackermann auto
longjmp - attempt infer
longjmp - deep auto
exceptions - catcher auto
exceptions - catcher infer
callbacks - sort_and_find auto
forks - step auto
threads - body infer
signals - interrupted auto
tail_calls - caller auto
tail_calls - first infer
EOF
run_case "a share of the times" share
run_case "a running process" on_a_running_process
run_case "a killed recording" killed
run_case "bad usage" bad_usage
finish
