#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What recorded goroutines are shown as: the timeline, coverage, and potential deadlocks, on listing 1 of Taheri's
# dissertation in both schedules of table 4.3, and on a reader that reads again.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/go_lib.sh
. "$E2E/go_lib.sh"
needs_capture
[[ -x /usr/lib/go-1.22/bin/go ]] || {
    echo "ok - go_views.sh # SKIP go 1.22 is not installed"
    exit 0
}

record_all() {
    local program
    for program in listing1 read_again; do
        (cd "$ROOT/tests/programs/go/$program" && go_run 1.22 build -o "$WORK/$program" .)
    done
    record successful --go -- "$WORK/listing1" successful
    record leak --go -- "$WORK/listing1" leak
    record read_again --go -- "$WORK/read_again"
}

# The cells of table 4.3, but for the lines of the select and its case.
table() {
    "$TRACECTL" go coverage successful leak >"$WORK/coverage.txt"
    sed -nE 's/^listing1.go:([0-9]+) +(.*[^ ]) *$/\1 \2/p' "$WORK/coverage.txt" | tr -s ' ' >"$WORK/rows"
    diff - "$WORK/rows" <<'ROWS'
12 go covered G0 G0 yes
13 go covered G0 G0 yes
18 select case 0 recv blocked G1 yes
18 select case 0 recv unblocking G1 yes
21 mutex lock blocked G1 yes
21 mutex lock blocking G1 yes
22 mutex unlock unblocking G1 yes
22 mutex unlock no_op
25 mutex lock blocked G2 yes
25 mutex lock blocking G2 yes
26 chan send blocked G2 G2 yes
26 chan send unblocking
26 chan send no_op
27 mutex unlock unblocking
27 mutex unlock no_op G2 yes
ROWS
    grep -E ' coverage +60 % +33 % +73 %$' "$WORK/coverage.txt"
}

# The lines of a text in this order, others between them.
in_order() { # file, patterns...
    local file=$1 from=1 at pattern
    shift
    for pattern in "$@"; do
        at=$(awk -v from="$from" -v pattern="$pattern" 'NR >= from && $0 ~ pattern { print NR; exit }' "$file")
        [[ -n $at ]] || fail "no line '$pattern' from line $from on"
        from=$((at + 1))
    done
}

timeline() {
    COLUMNS=200 "$TRACECTL" go timeline leak >"$WORK/leak.txt"
    cat "$WORK/leak.txt"
    in_order "$WORK/leak.txt" 'g1 main +g[0-9]+ main.Monitor +g[0-9]+ main' 'go g[0-9]+ .*:12$' \
        'select .*:18, default$' 'mutex lock .*:21(, blocks)?$' 'ends the process, status 0$' \
        '^at the end +running +stuck: sync.Mutex.Lock .*:21 +stuck: chan send .*:26$'
    # Monitor may begin before main has made the other goroutine.
    in_order "$WORK/leak.txt" 'go g[0-9]+ .*:13$' 'mutex lock .*:25$' 'chan send .*:26(, blocks)?$' \
        'mutex lock .*:21(, blocks)?$'
    COLUMNS=60 "$TRACECTL" go timeline leak >"$WORK/narrow.txt"
    in_order "$WORK/narrow.txt" '  g[0-9]+ main.Monitor +select .*:18, default$' '  g[0-9]+ main.Monitor +mutex lock .*:21(, blocks)?$'
    COLUMNS=200 "$TRACECTL" go timeline successful >"$WORK/successful.txt"
    cat "$WORK/successful.txt"
    in_order "$WORK/successful.txt" 'mutex lock .*:21$' 'mutex lock .*:25(, blocks)?$' 'mutex unlock .*:22(, wakes g[0-9]+)?$' \
        'continues [(]woken by g[0-9]+[)]$' 'chan send .*:26(, blocks)?$' 'select .*:18, recv, wakes g[0-9]+$'
}

picture() {
    "$TRACECTL" go timeline leak -o "$WORK/leak.svg" >"$WORK/none"
    same 0 "$(wc -c <"$WORK/none")"
    grep 'mutex lock .*:21' "$WORK/leak.svg"
    python3 -c \
        'import sys, xml.etree.ElementTree as tree; tree.parse(sys.argv[1])' "$WORK/leak.svg"
}

chosen() {
    "$TRACECTL" --json go timeline leak 0.g1 >"$WORK/one.json"
    same 0.g1 "$(json_get 0.goroutines.0.goroutine <"$WORK/one.json")"
    fails_with 3 "$TRACECTL" go timeline leak 0.g999999
    fails_with 3 "$TRACECTL" go timeline leak 7.g1
    local status=0
    "$TRACECTL" go timeline leak g1 || status=$?
    same 2 "$status"
}

potential() {
    "$TRACECTL" go check read_again >"$WORK/check.txt"
    grep -x 'could deadlock, did not in this run:' "$WORK/check.txt"
    "$TRACECTL" --json go check read_again >"$WORK/check.json"
    same pass "$(json_get verdict <"$WORK/check.json")"
    same "read again" "$(json_get potential.0.danger <"$WORK/check.json")"
    local status=0
    "$TRACECTL" go locks read_again >/dev/null || status=$?
    same 1 "$status"
    "$TRACECTL" go locks successful
}

report() {
    "$TRACECTL" report leak -o "$WORK/leak.html"
    "$E2E/page_check" page "$WORK/leak.html" facts losses goroutines progress similarity clusters lattice loops glossary
    "$E2E/page_check" text "$WORK/leak.html" >"$WORK/leak.page"
    in_order "$WORK/leak.page" '2 goroutines are blocked forever' 'mutex lock .*:21'
}

run_case "programs are built and recorded" record_all
run_case "coverage of listing 1 is table 4.3" table
run_case "timelines of both schedules, wide and narrow" timeline
run_case "timeline as a picture" picture
run_case "goroutines that are asked for" chosen
run_case "potential deadlocks beside the verdict" potential
run_case "a report has the goroutines" report
run_case "the format of goroutine events is what its document says" process_events_agree "$TRACECTL_DB" 100
chmod -R u+w "$WORK" 2>/dev/null || true
finish
