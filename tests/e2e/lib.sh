# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the end-to-end tests share. A script sources this, defines functions, and calls
#
#     run_case "what must hold" function [argument...]
#
# once for each case. The function runs in a subshell with `set -e`: the first command that fails fails the case, and
# what it printed is shown. A script that records calls `needs_capture` first.
#
# $WORK is the script's own directory, $STORE a store in it that tracectl uses unless -d says otherwise. Processes
# started with `spawn` are ended when the script ends.
set -euo pipefail

E2E=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$E2E/../.." && pwd)
TRACECTL=$(realpath "${TRACECTL:-$ROOT/build/tracectl}")
PROGRAMS=$(realpath "${PROGRAMS:-$ROOT/build/tests/programs}")
WORK=$(mktemp -d "${TMPDIR:-/tmp}/tracectl-e2e.XXXXXX")
STORE=$WORK/store.db
export E2E ROOT TRACECTL PROGRAMS WORK STORE TRACECTL_DB=$STORE
export NO_COLOR=1 LC_ALL=C
touch "$WORK/pids"
failed_cases=0

[[ -x $TRACECTL ]] || {
    echo "not ok - $TRACECTL is built"
    exit 1
}

cleanup() {
    local pid
    while read -r pid; do
        kill -KILL "$pid" 2>/dev/null || true
    done <"$WORK/pids"
    if mountpoint -q "$WORK/mount" 2>/dev/null; then
        umount "$WORK/mount"
    fi
    rm -rf "$WORK"
}
trap cleanup EXIT
trap 'exit 143' TERM INT

run_case() { # name, function, arguments...
    local name=$1 status=0
    shift
    set +e
    (
        set -e
        "$@"
    ) >"$WORK/case.out" 2>&1
    status=$?
    set -e
    if ((status == 0)); then
        echo "ok - $name"
    else
        sed 's/^/# /' "$WORK/case.out"
        echo "not ok - $name (status $status)"
        failed_cases=1
    fi
}

# The last command of a script.
finish() {
    exit "$failed_cases"
}

fail() {
    echo "$*"
    return 1
}

# Skips the whole script where recording is not possible at all: not as root, or not with this kernel.
needs_capture() {
    local why
    if ((EUID != 0)); then
        why="recording needs root"
    elif why=$("$TRACECTL" -d "$WORK/probe.db" record -n probe -- "$PROGRAMS/million" 10 2>&1 >/dev/null); then
        return 0
    fi
    if [[ ${CI:-} == true ]]; then
        echo "not ok - recording is possible here: $why"
        exit 1
    fi
    echo "ok - $(basename "$0") # SKIP ${why//$'\n'/ }"
    exit 0
}

# Starts a command in the background; its process id is in $spawned.
spawn() {
    "$@" &
    spawned=$!
    echo "$spawned" >>"$WORK/pids"
}

# Records a command quietly; what it prints itself goes where it always does.
record() { # NAME, record's options and the command...
    local name=$1
    shift
    "$TRACECTL" -q record -n "$name" "$@"
}

# One SQL statement; rows as lines with '|' between the columns.
q() {
    "$TRACECTL" query --json "$1" | "$E2E/json" rows
}

# A value of a JSON document on standard input: json_get run, json_get threads.0.entries
json_get() {
    "$E2E/json" get "$1"
}

same() { # wanted, got
    if [[ $1 != "$2" ]]; then
        printf 'wanted: %s\ngot:    %s\n' "$1" "$2"
        return 1
    fi
}

# Fails, and shows them, when lines match: `! grep` would not fail a case.
lacks() { # grep's options, pattern and file
    if grep "$@"; then
        return 1
    fi
}

# Runs a command that must end with a given status and say why in exactly one line.
fails_with() { # status, command...
    local wanted=$1 status=0 lines
    shift
    "$@" >"$WORK/fails.out" 2>"$WORK/fails.err" </dev/null || status=$?
    cat "$WORK/fails.err"
    ((status == wanted)) || fail "status $status instead of $wanted: $*"
    lines=$(wc -l <"$WORK/fails.err")
    ((lines == 1)) || fail "$lines lines of error instead of one: $*"
    grep -qE '^tracectl: [^A-Z ]' "$WORK/fails.err" || fail "not of the form 'tracectl: what: why': $*"
    lacks 'failed for an unknown reason' "$WORK/fails.err" || fail "no reason given: $*"
}

# Waits until a command succeeds, at most so many seconds.
wait_until() { # seconds, command...
    local end=$((SECONDS + $1))
    shift
    until "$@" 2>/dev/null; do
        ((SECONDS < end)) || fail "waited in vain for: $*"
        sleep 0.05
    done
}

# A script for sh that runs a program again and again until a file says stop, and notes each round, and what harmed it.
write_launcher() { # script, file that it adds rounds to, file that stops it, file for harm
    cat >"$1" <<SCRIPT
while [ ! -e "$3" ]; do
    "$PROGRAMS/million" 20 >/dev/null || echo "status \$?" >>"$4"
    echo round >>"$2"
done
echo finished >>"$2"
SCRIPT
}

# Fails unless the process's code is byte for byte what its file says: no probe is in it.
text_is_clean() { # pid
    wait_until 15 "$E2E/text_equals_file" "$1" || "$E2E/text_equals_file" "$1"
}

# Whether the process exists and is not a zombie.
lives() {
    [[ -r /proc/$1/stat ]] && ! grep -q '^State:[[:space:]]*[ZX]' "/proc/$1/status"
}

# Whether some probe is in the process's code: a recording of it has begun.
is_probed() {
    ! "$E2E/text_equals_file" "$1" >/dev/null 2>&1
}

# The exact number of calls of each function on each thread of a run, as "P.T NAME COUNT" lines, from the events.
counts_by_thread() { # run id
    q "SELECT t.label || ' ' || f.name || ' ' || count(*) AS line FROM events e JOIN threads t USING (thread_id)
       JOIN functions f USING (function_id) WHERE e.run_id = $1 AND e.kind = 'call' GROUP BY t.label, f.name"
}

# A reader that is written from docs/trace-format.md alone sees the same process events as tracectl.
process_events_agree() { # store; how many there are at least
    "$E2E/format_process_events.py" "$1" >"$WORK/process_events.reader"
    "$TRACECTL" -d "$1" query --csv "SELECT 1 AS stream, process_id, seq, ns, object, other, value, function_id, tid
        FROM go_events UNION ALL SELECT 2, process_id, seq, ns, object, other, result, site_id, position
        FROM sync_events ORDER BY 1, 2, 3" | tail -n +2 | tr -d '\r' >"$WORK/process_events.tracectl"
    cmp "$WORK/process_events.reader" "$WORK/process_events.tracectl"
    (($(wc -l <"$WORK/process_events.reader") >= $2)) || fail "fewer than $2 process events"
}

run_id() { # name of a run
    q "SELECT max(run_id) AS id FROM runs WHERE name = '$1'"
}
