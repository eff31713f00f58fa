#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Call traces from elsewhere come in, and go out again word for word.
. "$(dirname "$0")/lib.sh"

mkdir "$WORK/traces" "$WORK/random"
"$E2E/u16" make "$WORK/traces" 0.0 main init - '3*(' step leaf - - ')' open never_back
"$E2E/u16" make "$WORK/traces" 0.1 work '100*(' leaf - ')' -
"$E2E/u16" make "$WORK/traces" 1.0 main -
"$E2E/u16" random "$WORK/random" 0.0 200000 1
"$E2E/u16" random "$WORK/random" 3.2 70000 2
"$E2E/u16" random "$WORK/random" 10.0 1 3
: >"$WORK/random/11.0.u16"

comes_back() { # directory, run
    local file label
    for file in "$1"/*.u16; do
        label=$(basename "$file" .u16)
        q "SELECT e.kind, f.name FROM events e JOIN threads t USING (thread_id) LEFT JOIN functions f
           USING (function_id) WHERE e.run_id = $(run_id "$2") AND t.label = '$label' ORDER BY e.seq" |
            "$E2E/u16" from-rows "$1/names.info" >"$WORK/back.u16"
        cmp "$file" "$WORK/back.u16"
    done
}

small() {
    "$TRACECTL" --json import --format u16 "$WORK/traces" -n small >"$WORK/report.json"
    cat "$WORK/report.json"
    same small "$(json_get name <"$WORK/report.json")"
    same 3 "$(json_get threads <"$WORK/report.json")"
    same "$((2 * 1 + 3 * 4 + 3 + 2 + 200 + 2))" "$(json_get events <"$WORK/report.json")"
    same "$((1 + 1 + 3 * 2 + 2 + 1 + 100 + 1))" "$(json_get calls <"$WORK/report.json")"
    comes_back "$WORK/traces" small
    same "main|open|never_back" "$(q "SELECT group_concat(name, '|') AS names FROM (SELECT name FROM open_calls
        WHERE run_id = $(run_id small) ORDER BY thread, depth)")"
}

large() {
    "$TRACECTL" import --format u16 "$WORK/random" -n random
    comes_back "$WORK/random" random
    "$TRACECTL" verify
    same 270001 "$(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id random)")"
}

functions_are_shared() { # a second import of the same names adds no functions
    local before
    before=$(q "SELECT count(*) AS n FROM functions")
    "$TRACECTL" import --format u16 "$WORK/traces" -n again
    same "$before" "$(q "SELECT count(*) AS n FROM functions")"
}

bad_directories() {
    local before
    before=$(q "SELECT count(*) AS n FROM runs")
    mkdir "$WORK/empty" "$WORK/odd" "$WORK/unnamed"
    fails_with 3 "$TRACECTL" import --format u16 "$WORK/nowhere"
    fails_with 3 "$TRACECTL" import --format u16 "$WORK/empty"
    cp "$WORK/traces/names.info" "$WORK/odd"
    printf '\001\000\000' >"$WORK/odd/0.0.u16"
    fails_with 3 "$TRACECTL" import --format u16 "$WORK/odd"
    cp "$WORK/traces/names.info" "$WORK/unnamed"
    printf '\377\377\000\000' >"$WORK/unnamed/0.0.u16"
    fails_with 3 "$TRACECTL" import --format u16 "$WORK/unnamed"
    same "$before" "$(q "SELECT count(*) AS n FROM runs")"
}

run_case "a small import comes back word for word" small
run_case "a large import comes back word for word" large
run_case "functions of two imports are shared" functions_are_shared
run_case "bad directories are refused and leave nothing" bad_directories
finish
