#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Call trees are exactly those of the program: recursion, tail calls, longjmp, signals, callbacks, C++ exceptions,
# with return probes and with inferred returns; and the program computes what it computes without tracectl. What tells
# that a function has returned before a library calls back is in the records of uprobes alone: such cases name them.
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

# The program's own calls by function, by what they are inside of ("stub": the stub of a library function, so that the
# library has called them back), and by what their nesting is: "NAME in OUTSIDE: certain|assumed" lines.
nesting_of() { # name of the run, functions
    q "SELECT DISTINCT f.name || ' in ' || iif(p.name LIKE '%@plt', 'stub', p.name) || ': ' ||
         iif(c.assumed, 'assumed', 'certain') AS line
       FROM calls c JOIN functions f USING (function_id) JOIN calls o ON o.thread_id = c.thread_id AND
         o.seq = c.parent_seq JOIN functions p ON p.function_id = o.function_id
       WHERE c.run_id = $(run_id "$1") AND f.name IN ($2) ORDER BY line"
}

callbacks_are_assumed() { # what the C library calls back is; what is called by a known caller is not
    local own="'main', 'sort_and_find', 'fill', 'compare', 'sign'" mode
    # bsearch() is inlined: it calls compare() out of sort_and_find().
    for mode in infer probe; do
        record "called_back_$mode" --backend uprobe --returns "$mode" -- "$PROGRAMS/callbacks" >/dev/null
        same "compare in sort_and_find: certain
compare in stub: $([[ $mode == infer ]] && echo assumed || echo certain)
fill in sort_and_find: certain
main in _start: certain
sign in compare: certain
sort_and_find in main: certain" "$(nesting_of "called_back_$mode" "$own")"
    done
}

tail_calls_are_certain() { # every caller is known
    record tails --returns infer -- "$PROGRAMS/tail_calls" >/dev/null
    same "caller in main: certain
first in caller: certain
leaf in caller: certain
leaf in second: certain
ping in caller: certain
pong in caller: certain
second in caller: certain
third in caller: certain" "$(nesting_of tails "'caller', 'first', 'second', 'third', 'leaf', 'ping', 'pong'")"
}

# compare() is called by the C library, out of sort(); nothing tells that before() has returned by then.
wrong_nesting_is_marked() {
    local functions='^(main|sort|before|after|compare|sign|done)$'
    record room --functions "$functions" -- "$PROGRAMS/alloca_frames" >/dev/null
    same "main (unknown)
  sort
    before
      compare ?
        sign
    after
  done (unknown)" "$("$TRACECTL" calls room 0.0)"
    same 1 "$("$TRACECTL" calls room 0.0 --json | grep -c '"name": "compare".*"assumed": true')"
    same 1 "$("$TRACECTL" calls room --json | grep -c '"assumed"')"
    record room_probed --returns probe --functions "$functions" -- "$PROGRAMS/alloca_frames" >/dev/null
    same "main
  sort
    before
    compare
      sign
    after
  done" "$("$TRACECTL" calls room_probed 0.0)"
}

without_returns_nesting_is_unknown() { # and calls and show say so
    record flat --returns none --functions '^(main|sort|before)$' -- "$PROGRAMS/alloca_frames" >/dev/null
    same "(returns were not recorded: the nesting is unknown; calls are listed in order)
main
sort
before" "$("$TRACECTL" calls flat 0.0)"
    same 1 "$("$TRACECTL" calls flat | grep -c '^thread 0.0 .*nesting is unknown')"
    same 1 "$("$TRACECTL" show flat | grep -c '^nesting   unknown: returns were not recorded$')"
    record nested --functions '^(main|sort|before)$' -- "$PROGRAMS/alloca_frames" >/dev/null
    same 0 "$({ "$TRACECTL" calls nested && "$TRACECTL" show nested; } | grep -c nesting)"
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
    run_case "$program: the tree is right" tree_is_right $program --backend uprobe
    [[ $program == callbacks ]] || run_case "$program: the tree is right with the cheapest probes" tree_is_right $program
    run_case "$program: the tree is right with return probes" tree_is_right $program --returns probe
done
run_case "10,000 levels return" deep_returns
run_case "10,000 levels return, with return probes" deep_returns --returns probe
run_case "functions jumped over by longjmp" jumped_over_never_return
run_case "callbacks out of a library are assumed to be where they are" callbacks_are_assumed
run_case "tail calls are certain" tail_calls_are_certain
run_case "nesting that cannot be known is marked" wrong_nesting_is_marked
run_case "without returns nesting is said to be unknown" without_returns_nesting_is_unknown
run_case "calls prints the tree" calls_prints_the_tree
finish
