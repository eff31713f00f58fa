#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The committed store of format version 1 (tests/data/make-reference-store) is read with the answers of the version that
# wrote it, and reading changes no byte of it.
. "$(dirname "$0")/lib.sh"
DATA=$ROOT/tests/data

answers() {
    "$DATA/reference-answers" >"$WORK/answers"
    diff -u "$DATA/reference-1.answers" "$WORK/answers"
}

# Read-only in every sense: a file that nobody may write to, in a folder that nobody may write to.
read_only() {
    mkdir "$WORK/locked"
    gunzip <"$DATA/reference-1.db.gz" >"$WORK/locked/store.db"
    chmod a-w "$WORK/locked/store.db" "$WORK/locked"
    "$TRACECTL" -d "$WORK/locked/store.db" verify
    chmod u+w "$WORK/locked"
}

# A run is added to a store of version 1, the killed one recovered, another one deleted.
written() {
    local runs
    gunzip <"$DATA/reference-1.db.gz" >"$STORE"
    mkdir "$WORK/more"
    "$E2E/u16" make "$WORK/more" 0.0 main work - -
    "$TRACECTL" -q import --format u16 "$WORK/more" -n more
    "$TRACECTL" -q recover
    "$TRACECTL" -q rm lossy
    "$TRACECTL" verify
    runs=$(q "SELECT count(*) FROM runs WHERE ended_ns NOTNULL")
    same 10 "$runs"
}

run_case "version 1 is read with the same answers" answers
run_case "from a folder that may not be written to" read_only
run_case "and written to" written
finish
