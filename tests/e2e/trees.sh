#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Call trees are exactly those of the program: recursion, tail calls, longjmp, signals, callbacks, C++ exceptions,
# with probed returns and with inferred ones; and the program computes what it computes without tracectl.
. "$(dirname "$0")/lib.sh"
needs_capture

tree_is_right() { # program, options of record...
    local program=$1 name
    name=$(IFS=_ && echo "$*")
    shift
    TRUTH_FILE=$WORK/truth.plain "$PROGRAMS/$program" >"$WORK/plain"
    TRUTH_FILE=$WORK/truth record "$name" "$@" -- "$PROGRAMS/$program" >"$WORK/out"
    diff "$WORK/plain" "$WORK/out"
    cmp "$WORK/truth.plain" "$WORK/truth"
    same 0 "$(q "SELECT exit_status FROM runs WHERE name = '$name'")"
    q "SELECT c.seq, c.parent_seq, f.name FROM calls c JOIN functions f USING (function_id) JOIN threads t
       USING (thread_id) WHERE c.run_id = $(run_id "$name") AND t.label = '0.0' ORDER BY c.seq" |
        "$E2E/tree_equals" "$WORK/truth"
}

deep_returns() { # options of record...
    local name="deep$*"
    record "$name" "$@" -- "$PROGRAMS/recursion" >/dev/null
    same "10000|9999" "$(q "SELECT count(*) AS n, max(depth) - min(depth) AS d FROM calls JOIN functions f
        USING (function_id) WHERE run_id = $(run_id "$name") AND f.name = 'descend' AND state = 'returned'")"
}

calls_prints_the_tree() {
    record printed --functions '^(main|fib|factorial|bottom)$' -- "$PROGRAMS/recursion" >/dev/null
    "$TRACECTL" calls printed 0.0 --raw >"$WORK/tree"
    head -n 20 "$WORK/tree"
    same 465 "$(grep -cE '(^|[^a-z_])fib([^a-z_]|$)' "$WORK/tree")"
    same 12 "$(grep -c factorial "$WORK/tree")"
    # Each level is indented more than the one around it.
    awk '/factorial/ { match($0, /factorial/); if (RSTART <= last) exit 1; last = RSTART }' "$WORK/tree"
    "$TRACECTL" calls printed >"$WORK/folded"
    (($(wc -l <"$WORK/folded") <= $(wc -l <"$WORK/tree")))
}

jumped_over_never_return() { # what longjmp left behind is not a return
    record jumped -- "$PROGRAMS/longjmp" >/dev/null
    same 50 "$(q "SELECT count(*) AS n FROM calls JOIN functions f USING (function_id)
        WHERE run_id = $(run_id jumped) AND f.name = 'attempt' AND state = 'returned'")"
}

tail_calls_are_jumps() { # the test would test nothing otherwise
    objdump -d "$PROGRAMS/tail_calls" >"$WORK/code"
    grep -E 'jmp.*<second>' "$WORK/code"
    grep -E 'jmp.*<ping>' "$WORK/code"
}

run_case "the sample program makes real tail calls" tail_calls_are_jumps
for program in recursion recursion_nonpie tail_calls longjmp signals callbacks exceptions; do
    run_case "$program: the tree is right" tree_is_right $program
    run_case "$program: the tree is right with inferred returns" tree_is_right $program --no-returns
done
run_case "10,000 levels return" deep_returns
run_case "10,000 levels return, inferred" deep_returns --no-returns
run_case "functions jumped over by longjmp" jumped_over_never_return
run_case "calls prints the tree" calls_prints_the_tree
finish
