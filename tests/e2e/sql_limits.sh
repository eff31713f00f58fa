#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What an SQL statement cannot do: anything but reading the store, in limited time and memory.
. "$(dirname "$0")/lib.sh"

EXTENSION=$(dirname "$TRACECTL")/tracestore
mkdir "$WORK/traces"
"$E2E/u16" make "$WORK/traces" 0.0 main '2000*(' leaf - ')' -
"$TRACECTL" -q import --format u16 "$WORK/traces" -n first

# Refused by query and by the shell, each with one line and not by a signal; the store stays as it is.
refused() { # statement
    local before status=0
    before=$(sha256sum "$STORE")
    fails_with 3 "$TRACECTL" query "$1"
    echo "$1;" | "$TRACECTL" sql --csv >"$WORK/out" 2>"$WORK/err" || status=$?
    cat "$WORK/out" "$WORK/err"
    same 3 "$status"
    same 1 "$(grep -c '^tracectl: ' "$WORK/err")"
    same "$before" "$(sha256sum "$STORE")"
}

addresses_of_code() {
    refused "SELECT hex(fts3_tokenizer('simple'))"
    refused "SELECT fts3_tokenizer('simple', x'4141414141414141')"
    refused "SELECT FTS3_Tokenizer('simple') FROM runs"
    refused "SELECT load_extension('$EXTENSION')"
    refused "SELECT 1 WHERE EXISTS (SELECT load_extension('$EXTENSION', 'x'))"
}

in_sqlite3() {
    local sql
    same "" "$(sqlite3 "$STORE" -cmd ".load $EXTENSION" "SELECT hex(fts3_tokenizer('simple'))" 2>&1)"
    for sql in "SELECT fts3_tokenizer('simple', x'4141414141414141')" \
        "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = ''"; do
        if sqlite3 "$STORE" -cmd ".load $EXTENSION" "$sql"; then
            fail "not refused in sqlite3: $sql"
        fi
    done
    same 2001 "$(sqlite3 "$STORE" -cmd ".load $EXTENSION" "SELECT count(*) FROM calls")"
}

# One shell for all of them: each is refused, and what follows it still runs.
more_than_reading() {
    local before status=0
    before=$(sha256sum "$STORE")
    cat >"$WORK/statements" <<SQL
ATTACH '$WORK/made.db' AS made;
VACUUM INTO '$WORK/made.db';
CREATE TEMP TABLE t(x);
BEGIN IMMEDIATE;
SAVEPOINT s;
PRAGMA writable_schema = ON;
PRAGMA journal_mode = DELETE;
PRAGMA wal_checkpoint;
PRAGMA trusted_schema = ON;
PRAGMA query_only = OFF;
SELECT * FROM pragma_optimize;
ANALYZE;
REINDEX;
UPDATE sqlite_schema SET sql = '';
INSERT INTO function_names(function_names) VALUES ('optimize');
EXPLAIN DELETE FROM runs;
WITH t(x) AS (SELECT 1) DELETE FROM runs;
DETACH main;
SQL
    "$TRACECTL" sql --csv <"$WORK/statements" >"$WORK/out" 2>"$WORK/err" || status=$?
    cat "$WORK/out" "$WORK/err"
    same 3 "$status"
    same "$(wc -l <"$WORK/statements")" "$(grep -c '^tracectl: query: ' "$WORK/err")"
    same optimize "$(cat "$WORK/out")" # the title of the one that is refused when it runs
    [[ ! -e $WORK/made.db ]]
    same "$before" "$(sha256sum "$STORE")"
    refused "ATTACH '$WORK/made.db' AS made"
    refused "WITH t(x) AS (SELECT 1) DELETE FROM runs"
}

# Values, statements and expressions beyond all that a person or a program would write.
sizes() {
    refused "SELECT length(hex(zeroblob(200000000)))"
    refused "WITH RECURSIVE t(x) AS (SELECT zeroblob(1000000) UNION ALL SELECT zeroblob(1000000) FROM t LIMIT 300) SELECT length(group_concat(hex(x))) FROM t"
    refused "SELECT $(printf '(%.0s' {1..2000})1$(printf ')%.0s' {1..2000})"
    refused "SELECT 1 LIKE '$(printf '%%a%.0s' {1..1000})'" >"$WORK/like.out"
    printf 'SELECT 1 %1100000s;' " " >"$WORK/long.sql"
    if "$TRACECTL" sql <"$WORK/long.sql"; then
        fail "a statement of a megabyte"
    fi
    # And in bounded memory: more is refused.
    (
        ulimit -v 1000000
        refused "WITH b(x) AS (SELECT zeroblob(100000000)) SELECT x, x, x, x, x, x, x, x, x, x FROM b"
    )
}

# One that ends by itself and one that a virtual table works for, each through a limit.
time_is_limited() {
    local sql status
    for sql in "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT max(i) FROM t" \
        "SELECT count(*) FROM events a, events b, events c, events d"; do
        timeout 60 "$TRACECTL" query --timeout 100ms "$sql" 2>"$WORK/err" && fail "it has an end"
        cat "$WORK/err"
        grep -q '^tracectl: query: stopped after 0.1 seconds (--timeout' "$WORK/err"
    done
    # In the shell the next statement has time of its own.
    {
        echo "$sql;"
        echo "SELECT 42;"
    } | timeout 60 "$TRACECTL" sql --csv --timeout 100ms >"$WORK/out" 2>"$WORK/err" || true
    cat "$WORK/out" "$WORK/err"
    grep -qx 42 "$WORK/out"
    status=0
    "$TRACECTL" query --timeout soon "SELECT 1" || status=$?
    same 2 "$status"
    same '[{"one": 1}]' "$("$TRACECTL" --json query --timeout none "SELECT 1 AS one" | tr -d '\n')"
}

reading_works() {
    same 3 "$(q "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < 3) SELECT max(i) AS m FROM t")"
    same 2 "$(q "SELECT max(r) AS m FROM (SELECT rank() OVER (ORDER BY name) AS r FROM call_counts)")"
    same 2001 "$(q "SELECT sum(calls) AS c FROM call_counts")"
    same '["leaf","main"]' "$(q "SELECT json_group_array(name) AS j FROM (SELECT name FROM call_counts ORDER BY 1)")"
    same ok "$(q "SELECT integrity_check AS i FROM pragma_integrity_check")"
    same 1 "$(q "SELECT count(*) AS n FROM pragma_table_info('runs') WHERE name = 'run_id'")"
    same leaf "$(q "SELECT name FROM function_names WHERE name LIKE '%eaf%'")"
    (($("$TRACECTL" query --csv "EXPLAIN QUERY PLAN SELECT * FROM calls" | wc -l) > 1))
}

run_case "functions that give or take addresses and code" addresses_of_code
run_case "the extension inside sqlite3" in_sqlite3
run_case "statements that do more than read" more_than_reading
run_case "sizes have limits" sizes
run_case "time has a limit" time_is_limited
run_case "what reads keeps working" reading_works
finish
