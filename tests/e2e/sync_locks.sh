#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `tracectl locks`: orders of C++ locks that could deadlock are told, with their lines; those that could not are none.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_capture

recorded() { # what
    record "$1" --sync --functions '^main$' -- "$PROGRAMS/lock_orders" "$1"
}

dangerous() { # what, locks held: lines of the source
    local status=0
    recorded "$1"
    "$TRACECTL" locks "$1" >"$WORK/locks" || status=$?
    cat "$WORK/locks"
    same 1 "$status"
    same 2 "$(grep -c 'takes lock' "$WORK/locks")"
    same 2 "$(grep -c 'while it holds' "$WORK/locks")"
    grep -q 'could deadlock, did not in this run' "$WORK/locks"
    "$TRACECTL" locks --json "$1" >"$WORK/json" || true
    same 'False|0.0,0.1' "$(python3 -c "
import json
found = json.load(open('$WORK/json'))
(cycle,) = found['potential']
assert found['complete'], found
held = {s['holds']['object'] for s in cycle['steps']}
assert held == {s['takes']['object'] for s in cycle['steps']} and len(held) == 2, cycle
print(cycle['happened'], ','.join(sorted(s['thread'] for s in cycle['steps'])), sep='|')")"
}

harmless() { # what
    recorded "$1"
    "$TRACECTL" locks "$1" >"$WORK/locks" || fail "$(cat "$WORK/locks")"
    same 'no potential deadlock' "$(cat "$WORK/locks")"
}

refuses() { # arguments
    local status=0
    "$TRACECTL" "$@" 2>"$WORK/refused" || status=$?
    same 2 "$status"
    grep -q '^tracectl' "$WORK/refused"
}

none_recorded() {
    record plain -- "$PROGRAMS/million" 10
    fails_with 3 "$TRACECTL" locks plain
    refuses locks
    refuses record --sink f -- true
    refuses record --sync --enqueue f -- true
    refuses record --sync --handler f:ARG9 -- true
}

for what in cycle shared condition; do
    run_case "$what: could deadlock" dangerous "$what"
done
for what in gate joined readers try; do
    run_case "$what: could not" harmless "$what"
done
run_case "a run without locks, and wrong words" none_recorded
finish
