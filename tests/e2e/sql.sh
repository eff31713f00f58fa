#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SQL for people (the shell) and for programs (the extension in the sqlite3 shell and in Python).
. "$(dirname "$0")/lib.sh"

EXTENSION=$(dirname "$TRACECTL")/tracestore
export XDG_STATE_HOME=$WORK/state
HISTORY=$XDG_STATE_HOME/tracectl/sql_history
mkdir "$WORK/traces"
"$E2E/u16" make "$WORK/traces" 0.0 main init_all - '5*(' '4*(' compute - wait_for - ')' send - recv - ')' stuck
"$E2E/u16" make "$WORK/traces" 0.1 work '100*(' leaf_call - ')' -
"$TRACECTL" -q import --format u16 "$WORK/traces" -n first

shell() { # script of a session on standard input
    "$E2E/terminal" "$TRACECTL" sql
}

session() {
    shell <<'SESSION'
prompt tracectl> 
send SELECT name, sum(calls) AS c FROM call_co\t
expect unts 
send GROUP BY 1\r
prompt ...> 
send ORDER BY 2 DESC LIMIT 1;\r
expect leaf_call
expect 100
prompt tracectl> 
send SELECT func\t
expect tion
send \t
expect function_id  function_names
send \x03
expect ^C
prompt tracectl> 
send .mode csv\r
prompt tracectl> 
send WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT max(i) AS endless FROM t;\r
expect endless\r\n
send \x03
expect interrupted
prompt tracectl> 
send .mode table\r
prompt tracectl> 
send DELETE FROM runs;\r
expect does more than read
prompt tracectl> 
send .stats on\r
prompt tracectl> 
send SELECT count(*) FROM events;\r
expect 306
expect 2 segments decoded
prompt tracectl> 
send SELECT 40 + 2 AS answer;\r
expect 42
prompt tracectl> 
send \x04
end
SESSION
}

history_is_kept() {
    same "600 700" "$(stat -c %a "$HISTORY" "$XDG_STATE_HOME/tracectl" | paste -sd ' ')"
    shell <<'SESSION'
prompt tracectl> 
send \x1b[A
expect answer;
send \r
expect 42
prompt tracectl> 
send \x12call_c\r
expect leaf_call
expect 100
prompt tracectl> 
send .qu\t\r
end
SESSION
}

history_is_optional() { # a state folder that cannot be written
    printf 'prompt tracectl> \nsend SELECT 6 * 7;\\r\nexpect 42\nprompt tracectl> \nsend .quit\\r\nend\n' |
        XDG_STATE_HOME=/proc/nowhere shell
}

from_a_file() {
    "$TRACECTL" sql --csv <<'SQL'
SELECT name, sum(calls) AS c
  FROM call_counts WHERE name LIKE '%call' GROUP BY 1; SELECT 1 AS one;
-- the last one has no semicolon
SELECT iterations, body FROM loops WHERE level = 0
SQL
} >"$WORK/file.out"

file_output() {
    from_a_file
    same "name,c
leaf_call,100
one
1
iterations,body
5,[compute wait_for]^4 send recv
100,leaf_call" "$(cat "$WORK/file.out")"
}

commands() {
    printf '%s\n' '.tables %loops%' '.schema journal' '.schema loops' '.mode line' 'SELECT 1 AS one, 2 AS second;' |
        "$TRACECTL" sql >"$WORK/commands.out"
    cat "$WORK/commands.out"
    grep -qx loops "$WORK/commands.out"
    grep -q '^CREATE TABLE journal (' "$WORK/commands.out"
    grep -q 'loops(run_id INTEGER, thread_id INTEGER,' "$WORK/commands.out"
    grep -qx ' *one = 1' "$WORK/commands.out"
    grep -qx 'second = 2' "$WORK/commands.out"
    for name in events calls loops call_edges journal_functions function_names runs call_counts go_events \
        goroutines go_blocks; do
        echo .tables | "$TRACECTL" sql | grep -qx "$name" || fail "no table $name"
        echo "SELECT count(*) AS n FROM $name" | "$TRACECTL" sql --csv | head -n 1 | grep -qx n
    done
}

failures_do_not_end_it() {
    local status=0
    printf '%s\n' 'SELECT * FROM no_such_table;' .no_such_command 'DELETE FROM runs;' "ATTACH 'x' AS y;" 'SELECT 5;' |
        "$TRACECTL" sql --csv >"$WORK/bad.out" 2>"$WORK/bad.err" || status=$?
    cat "$WORK/bad.out" "$WORK/bad.err"
    same 3 "$status"
    same "5
5" "$(cat "$WORK/bad.out")"
    same 4 "$(grep -c '^tracectl: [a-z]' "$WORK/bad.err")"
    same 1 "$(q "SELECT count(*) AS n FROM runs")"
    fails_with 3 "$TRACECTL" -d "$WORK/nowhere.db" sql
    status=0
    "$TRACECTL" sql 'SELECT 1' </dev/null || status=$?
    same 2 "$status"
}

names_by_index() {
    same "function_names VIRTUAL TABLE INDEX 0:name LIKE ?" \
        "$(q "EXPLAIN QUERY PLAN SELECT * FROM function_names WHERE name LIKE '%wait%'" | grep -o 'function_names.*')"
    same "wait_for" "$(q "SELECT name FROM function_names WHERE name LIKE '%t!_f%' ESCAPE '!'")"
    same "wait_for" "$(q "SELECT name FROM function_names WHERE function_names MATCH 'FOR wai'")"
}

counting_decodes_nothing() {
    same "0" "$(q "SELECT decoded_segments() AS d FROM (SELECT sum(calls) AS c FROM call_counts) WHERE c > 100")"
    same "1" "$(q "SELECT decoded_segments() AS d FROM (SELECT count(*) AS c FROM events WHERE thread_id = 2) WHERE c = 202")"
}

in_sqlite3() {
    same "5|[compute wait_for]^4 send recv
100|leaf_call" "$(sqlite3 "$STORE" ".load $EXTENSION" "SELECT iterations, body FROM loops WHERE level = 0")"
    same "2" "$(sqlite3 "$STORE" ".load $EXTENSION" "SELECT count(*) FROM function_names WHERE function_names MATCH 'al'")"
    same "306" "$(sqlite3 "$STORE" ".load $EXTENSION" "SELECT count(*) FROM events")"
}

# Debian's python3: one built elsewhere may have an sqlite3 module without extensions.
in_python() {
    /usr/bin/python3 - "$STORE" "$EXTENSION" <<'PYTHON'
import sqlite3
import sys

db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
db.enable_load_extension(True)
db.load_extension(sys.argv[2])
one = lambda sql, *values: db.execute(sql, values).fetchone()[0]
assert one("SELECT count(*) FROM events WHERE kind = ?", "call") == 154, "events"
assert one("SELECT decoded_segments()") == 2
assert one("SELECT count(*) FROM calls WHERE state = ?", "returned") == 152, "calls"
assert db.execute("SELECT name, state FROM open_calls ORDER BY depth").fetchall() == [
    ("main", "open"), ("stuck", "open")], "open_calls"
assert one("SELECT max(iterations) FROM loops(?)", 1) == 100, "loops"
assert one("SELECT name FROM function_names WHERE name GLOB ?", "*_all") == "init_all", "function_names"
assert one("SELECT sum(calls) FROM call_counts") == 154, "call_counts"
PYTHON
}

run_case "a session on a terminal: completion, several lines, Ctrl-C, statistics" session
run_case "the history is there the next time" history_is_kept
run_case "a session without a place for its history" history_is_optional
run_case "statements from a file" file_output
run_case "the shell's commands" commands
run_case "failures are said and do not end the shell" failures_do_not_end_it
run_case "names are found by an index" names_by_index
run_case "counting decodes nothing" counting_decodes_nothing
run_case "the extension in the sqlite3 shell" in_sqlite3
run_case "the extension in Python" in_python
finish
