#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What uftrace recorded comes in, and is what uftrace itself reads there.
. "$(dirname "$0")/lib.sh"

# uftrace preloads a library into the program: not into a sanitized one, but these are never sanitized.
record_with_uftrace() { # directory, uftrace's options and the command...
    local directory=$1 status=0
    shift
    uftrace record --no-event --no-pager -d "$directory" "$@" >/dev/null || status=$?
    ((status <= 1)) # 1: the program ended with another status than 0
    [[ -s $directory/info ]]
}

# "CALLS NAME" by uftrace's own count. PLT stubs have no @plt there.
reported() { # directory
    uftrace report --no-pager --no-event -d "$1" -f call -s call | awk 'NR > 2 && NF == 2 { print $1, $2 }' | sort
}

counted() { # run
    q "SELECT sum(calls) || ' ' || replace(name, '@plt', '') AS line FROM call_counts
       WHERE run_id = $(run_id "$1") GROUP BY replace(name, '@plt', '')" | sort
}

# "DEPTH NAME" of each call of a thread, out of the indentation of uftrace's replay.
replayed() { # directory, tid
    uftrace replay --no-pager --no-event -d "$1" -f none --tid "$2" |
        sed -nE 's/^( *)([^ (/}][^(]*)\(.*$/\1|\2/p' | awk -F'|' '{ print length($1) / 2, $2 }'
}

walked() { # run, tid
    q "SELECT c.depth || ' ' || replace(f.name, '@plt', '') AS line FROM calls c JOIN functions f USING (function_id)
       JOIN threads t USING (thread_id) WHERE c.run_id = $(run_id "$1") AND t.tid = $2 ORDER BY c.seq"
}

same_trees() { # directory, run
    local tid
    for tid in $(q "SELECT tid FROM threads WHERE run_id = $(run_id "$2") ORDER BY thread_id"); do
        replayed "$1" "$tid" >"$WORK/replayed"
        walked "$2" "$tid" >"$WORK/walked"
        [[ -s $WORK/replayed ]]
        diff "$WORK/replayed" "$WORK/walked"
    done
}

recursive() {
    record_with_uftrace "$WORK/recursion" "$PROGRAMS/recursion_pg"
    "$TRACECTL" import --format uftrace "$WORK/recursion" -n recursion
    "$TRACECTL" verify
    diff <(reported "$WORK/recursion") <(counted recursion)
    same_trees "$WORK/recursion" recursion
}

# A child of fork leaves functions that its parent entered: uftrace knows which, the import says that it does not.
threads_and_children() {
    local child
    record_with_uftrace "$WORK/profiled" "$PROGRAMS/profiled_pg"
    "$TRACECTL" import --format uftrace "$WORK/profiled" -n profiled
    same 5 "$(q "SELECT count(*) AS n FROM threads WHERE run_id = $(run_id profiled)")"
    same 2 "$(q "SELECT count(*) AS n FROM processes WHERE run_id = $(run_id profiled)")"
    same "0.0 0.1 0.2 0.3 1.0" "$(q "SELECT group_concat(label, ' ') AS n FROM (SELECT label FROM threads
        WHERE run_id = $(run_id profiled) ORDER BY label)")"
    same 3 "$(q "SELECT exit_status FROM runs WHERE name = 'profiled'")"
    # uftrace counts the child's return from fork as a call of it, and of what was around as "<0>".
    diff <(reported "$WORK/profiled" | grep -vE ' (fork|<0>)$') <(counted profiled | grep -v ' fork$')
    same "1.0|2|an exit without its entry" "$(q "SELECT t.label, l.count, l.cause FROM losses l JOIN threads t
        USING (thread_id) WHERE l.run_id = $(run_id profiled)")"
    child=$(q "SELECT tid FROM threads WHERE run_id = $(run_id profiled) AND label = '1.0'")
    rm "$WORK/profiled/$child.dat"
    "$TRACECTL" import --format uftrace "$WORK/profiled" -n childless
    same_trees "$WORK/profiled" childless
    same "main|exit@plt" "$(q "SELECT group_concat(name, '|') AS n FROM (SELECT name FROM open_calls
        WHERE run_id = $(run_id childless) AND thread = '0.0' ORDER BY depth)")"
}

# Each record has its time, and they are uftrace's.
times_are_kept() {
    uftrace dump --no-pager -d "$WORK/recursion" | sed -nE 's/^([0-9]+)\.([0-9]{9}) +[0-9]+: \[.*/\1\2/p' >"$WORK/dumped"
    q "SELECT ns FROM events WHERE run_id = $(run_id recursion) ORDER BY seq" >"$WORK/stored"
    paste "$WORK/dumped" "$WORK/stored" |
        awk 'NF != 2 { exit 1 } { d = substr($2, 7) - substr($1, length($1) - 12) } NR == 1 { first = d }
             (d - first) % 1e13 { print "differs in line " NR; exit 1 }'
    [[ -s $WORK/stored ]]
}

# Without exits (--estimate-return) a call ends when one as deep or less deep begins.
estimated() {
    record_with_uftrace "$WORK/estimated" --estimate-return "$PROGRAMS/recursion_pg"
    "$TRACECTL" import --format uftrace "$WORK/estimated" -n estimated
    diff <(reported "$WORK/estimated") <(counted estimated)
    same_trees "$WORK/estimated" estimated
    same inferred "$(q "SELECT returns FROM threads WHERE run_id = $(run_id estimated)")"
}

refused() { # what is done to a copy, in it; the records are in $records
    local records
    rm -rf "$WORK/copy"
    cp -r "$WORK/recursion" "$WORK/copy"
    records=$(cd "$WORK/copy" && echo [0-9]*.dat)
    (cd "$WORK/copy" && records=$records bash -c "$1")
    fails_with 3 "$TRACECTL" -d "$WORK/none.db" import --format uftrace "$WORK/copy"
    [[ ! -e $WORK/none.db ]]
}

damaged_directories() {
    refused 'rm info'
    refused 'rm task.txt'
    refused 'rm ./*.map'
    refused 'rm [0-9]*.dat'
    refused ': >info'
    refused 'printf "\377" | dd of=info bs=1 seek=8 conv=notrunc status=none'
    refused "head -c 16 /dev/zero >>\"\$records\""
    refused "printf x >>\"\$records\""
    refused 'echo "TASK timestamp=soon tid=1 pid=1" >>task.txt'
    refused 'echo "00 T" >>recursion_pg.sym'
    fails_with 3 "$TRACECTL" -d "$WORK/none.db" import --format uftrace "$WORK/nowhere"
}

arguments_are_refused() {
    record_with_uftrace "$WORK/arguments" -A 'fib@arg1' "$PROGRAMS/recursion_pg"
    fails_with 3 "$TRACECTL" -d "$WORK/none.db" import --format uftrace "$WORK/arguments"
    grep -q arguments "$WORK/fails.err"
}

if ! command -v uftrace >/dev/null; then
    echo "ok - import_uftrace.sh # SKIP uftrace is not installed"
    exit 0
fi
run_case "recursion has uftrace's counts and trees" recursive
run_case "threads and children" threads_and_children
run_case "times are uftrace's" times_are_kept
run_case "recordings of entries only" estimated
run_case "damaged directories are refused and leave nothing" damaged_directories
run_case "records with arguments are refused" arguments_are_refused
finish
