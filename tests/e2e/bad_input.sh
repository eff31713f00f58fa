#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What cannot work is refused with one clear line and the right exit status, and corrupts nothing.
. "$(dirname "$0")/lib.sh"

# A small good store to damage copies of.
mkdir "$WORK/traces"
"$E2E/u16" make "$WORK/traces" 0.0 main '500*(' a b - - c - ')' -
"$TRACECTL" -q import --format u16 "$WORK/traces" -n good
good=$STORE

usage_errors() {
    usage_error "$TRACECTL"
    usage_error "$TRACECTL" nonsense
    usage_error "$TRACECTL" --nonsense
    usage_error "$TRACECTL" record
    usage_error "$TRACECTL" record --nonsense -- true
    usage_error "$TRACECTL" record -p 1,,2
    usage_error "$TRACECTL" record --time sometimes -- true
    usage_error "$TRACECTL" record -p 1 -- true
    usage_error "$TRACECTL" query
    usage_error "$TRACECTL" show
    usage_error "$TRACECTL" diff good
    usage_error "$TRACECTL" import --format nonsense "$WORK/traces"
}

usage_error() {
    local status=0
    "$@" >"$WORK/out" 2>"$WORK/err" </dev/null || status=$?
    cat "$WORK/err"
    ((status == 2)) || fail "status $status instead of 2: $*"
    [[ -s $WORK/err ]] || fail "nothing said: $*"
}

not_a_store() {
    echo "this is a text file, and no store at all" >"$WORK/text.db"
    cp "$WORK/text.db" "$WORK/text.kept"
    fails_with 3 "$TRACECTL" -d "$WORK/text.db" runs
    fails_with 3 "$TRACECTL" -d "$WORK/text.db" show 1
    fails_with 3 "$TRACECTL" -d "$WORK/text.db" query "SELECT 1"
    fails_with 3 "$TRACECTL" -d "$WORK/text.db" verify
    fails_with 3 "$TRACECTL" -d "$WORK/text.db" nlr 1
    fails_with 3 "$TRACECTL" -d "$WORK/text.db" rm 1
    fails_with 3 "$TRACECTL" -d "$WORK/text.db" import --format u16 "$WORK/traces"
    cmp "$WORK/text.db" "$WORK/text.kept"
    : >"$WORK/empty.db"
    fails_with 3 "$TRACECTL" -d "$WORK/empty.db" runs
    sqlite3 "$WORK/other.db" "CREATE TABLE recipes(name)"
    fails_with 3 "$TRACECTL" -d "$WORK/other.db" runs
    fails_with 3 "$TRACECTL" -d "$WORK/other.db" import --format u16 "$WORK/traces"
    same recipes "$(sqlite3 "$WORK/other.db" "SELECT group_concat(name) FROM sqlite_master")"
    fails_with 3 "$TRACECTL" -d "$WORK/missing.db" runs
    [[ ! -e $WORK/missing.db ]] || fail "asking made a store"
    fails_with 3 "$TRACECTL" -d "$WORK" runs
    fails_with 3 "$TRACECTL" -d "$WORK/no/such/folder.db" import --format u16 "$WORK/traces"
}

truncated_store() {
    local size keep
    size=$(stat -c %s "$good")
    for keep in 10 100 4096 $((size / 2)) $((size - 4096)) $((size - 1)); do
        head -c "$keep" "$good" >"$WORK/cut.db"
        survives runs
        survives show 1
        survives query "SELECT count(*) FROM events"
        survives nlr 1
        survives verify
        ((status == 1 || status == 3)) || fail "verify is content"
    done
}

# A command on the cut store must end by itself, and say in one line what it could not do.
survives() { # command...
    status=0
    "$TRACECTL" -d "$WORK/cut.db" "$@" >"$WORK/out" 2>"$WORK/err" || status=$?
    echo "$keep bytes, $*: status $status: $(cat "$WORK/err")"
    ((status < 128)) || fail "crashed"
    ((status != 3)) || (($(wc -l <"$WORK/err") == 1)) || fail "not one line"
}

newer_store() {
    cp "$good" "$WORK/newer.db"
    sqlite3 "$WORK/newer.db" "PRAGMA user_version = 2"
    fails_with 3 "$TRACECTL" -d "$WORK/newer.db" runs
    grep -q 'written by a newer tracectl: format 2, this one reads 1' "$WORK/fails.err"
}

sql_errors() {
    fails_with 3 "$TRACECTL" query "SELEC 1"
    fails_with 3 "$TRACECTL" query "SELECT * FROM nonesuch"
    fails_with 3 "$TRACECTL" query "SELECT nonesuch FROM runs"
    fails_with 3 "$TRACECTL" query ""
    fails_with 3 "$TRACECTL" query "SELECT 1; SELECT 2"
}

no_such_run() {
    fails_with 3 "$TRACECTL" show nonesuch
    fails_with 3 "$TRACECTL" calls good 7.7
    fails_with 3 "$TRACECTL" nlr good 7.7
    fails_with 3 "$TRACECTL" diff good nonesuch
    fails_with 3 "$TRACECTL" rm nonesuch
}

store_is_untouched() {
    same good "$(q 'SELECT group_concat(name) AS names FROM runs')"
    "$TRACECTL" verify
    same ok "$(sqlite3 "$good" 'PRAGMA integrity_check')"
}

no_such_program() {
    local status=0
    fails_with 3 "$TRACECTL" record -- "$WORK/nonesuch"
    fails_with 3 "$TRACECTL" record -- nonesuch-in-path
    fails_with 3 "$TRACECTL" record -- "$WORK"
    echo "just text" >"$WORK/text"
    fails_with 3 "$TRACECTL" record -- "$WORK/text"
    # As everywhere, an executable text is a shell's business; a shell without symbols cannot be traced.
    chmod +x "$WORK/text"
    "$TRACECTL" record -- "$WORK/text" 2>"$WORK/err" || status=$?
    cat "$WORK/err"
    ((status == 3 || status == 0)) || fail "status $status"
    ((status == 0)) || same 1 "$(grep -c '^tracectl: ' "$WORK/err")"
    head -c 3000 "$PROGRAMS/million" >"$WORK/half"
    chmod +x "$WORK/half"
    fails_with 3 "$TRACECTL" record -- "$WORK/half"
}

no_such_process() {
    fails_with 3 "$TRACECTL" record -p 4194300 --duration 1
    fails_with 3 "$TRACECTL" record -p 2 --duration 1 # a kernel thread, or nobody
}

no_symbols() {
    cp "$PROGRAMS/million_stripped" "$WORK/bare"
    objcopy --remove-section .eh_frame --remove-section .eh_frame_hdr "$WORK/bare"
    local status=0
    # The program's stubs of library functions may have names; if nothing has, that is said.
    "$TRACECTL" -d "$WORK/bare.db" record -- "$WORK/bare" 100 >"$WORK/out" 2>"$WORK/err" || status=$?
    cat "$WORK/err"
    ((status == 0)) || fails_with 3 "$TRACECTL" record -- "$WORK/bare" 100
}

no_permission() {
    mkdir "$WORK/nobody"
    chmod 755 "$WORK"
    chmod 777 "$WORK/nobody"
    cp "$TRACECTL" "$WORK/nobody/tracectl"
    cp "$PROGRAMS/million" "$WORK/nobody/million"
    local as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    fails_with 3 "${as_nobody[@]}" "$WORK/nobody/tracectl" -d "$WORK/nobody/store.db" record --life-cycle bpf -- \
        "$WORK/nobody/million" 10
    fails_with 3 "${as_nobody[@]}" "$WORK/nobody/tracectl" -d "$WORK/nobody/store.db" record -p $$ --duration 1
    # Reading needs no privilege.
    cp "$good" "$WORK/nobody/good.db"
    chmod 666 "$WORK/nobody/good.db"
    "${as_nobody[@]}" "$WORK/nobody/tracectl" -d "$WORK/nobody/good.db" query "SELECT count(*) FROM events"
    chmod 600 "$WORK/nobody/good.db"
    fails_with 3 "${as_nobody[@]}" "$WORK/nobody/tracectl" -d "$WORK/nobody/good.db" runs
    chmod 755 "$WORK/nobody"
    fails_with 3 "${as_nobody[@]}" "$WORK/nobody/tracectl" -d "$WORK/nobody/new.db" import --format u16 "$WORK/traces"
}

read_only_store() { # a store on a medium that cannot be written is still readable
    mkdir -p "$WORK/mount"
    mount -t tmpfs -o size=4m tmpfs "$WORK/mount"
    cp "$good" "$WORK/mount/store.db"
    mount -o remount,ro "$WORK/mount"
    "$TRACECTL" -d "$WORK/mount/store.db" runs
    fails_with 3 "$TRACECTL" -d "$WORK/mount/store.db" rm good
    umount "$WORK/mount"
}

disk_full_on_import() {
    mkdir -p "$WORK/mount" "$WORK/large"
    "$E2E/u16" random "$WORK/large" 0.0 3000000 7
    mount -t tmpfs -o size=600k tmpfs "$WORK/mount"
    fails_with 3 "$TRACECTL" -d "$WORK/mount/store.db" import --format u16 "$WORK/large"
    grep -qiE 'space|full' "$WORK/fails.err"
    if [[ -e $WORK/mount/store.db ]]; then
        cp "$WORK"/mount/store.db* "$WORK/large"
        same ok "$(sqlite3 "$WORK/large/store.db" 'PRAGMA integrity_check')"
        "$TRACECTL" -d "$WORK/large/store.db" verify
    fi
    umount "$WORK/mount"
}

# The recording ends, the program does not: it calls until it is asked to end, which is after the recording.
disk_full_on_record() {
    local status=0
    mkdir -p "$WORK/mount" "$WORK/rescued"
    mount -t tmpfs -o size=400k tmpfs "$WORK/mount"
    # shellcheck disable=SC2016 # the inner shell expands it
    spawn "$TRACECTL" -d "$WORK/mount/store.db" record --time full --flush-interval 0.1 -- \
        sh -c 'echo $$ >"$0"; exec "$@"' "$WORK/pid" "$PROGRAMS/busy" 300000 2 >"$WORK/out" 2>"$WORK/err"
    wait_until 60 grep -qiE '^tracectl: .*(space|full)' "$WORK/err"
    kill -TERM "$(cat "$WORK/pid")"
    wait "$spawned" || status=$?
    cat "$WORK/err"
    same 3 "$status"
    tail -n 1 "$WORK/out" | grep '^unharmed [1-9]'
    cp "$WORK"/mount/store.db* "$WORK/rescued"
    umount "$WORK/mount"
    same ok "$(sqlite3 "$WORK/rescued/store.db" 'PRAGMA integrity_check')"
    "$TRACECTL" -d "$WORK/rescued/store.db" verify
    (($("$TRACECTL" -d "$WORK/rescued/store.db" query --json "SELECT count(*) AS n FROM losses" | "$E2E/json" rows) > 0))
}

output_full() { # standard output cannot be written
    local status=0
    "$TRACECTL" query "SELECT * FROM events" >/dev/full 2>"$WORK/err" || status=$?
    cat "$WORK/err"
    same 3 "$status"
}

run_case "usage errors" usage_errors
run_case "a file that is no store" not_a_store
run_case "a truncated store" truncated_store
run_case "a store of a newer version" newer_store
run_case "SQL errors" sql_errors
run_case "no such run or thread" no_such_run
run_case "output that cannot be written" output_full
run_case "the store is as before" store_is_untouched
if ((EUID == 0)); then
    run_case "no permission" no_permission
    run_case "a read-only store" read_only_store
    run_case "disk full during an import" disk_full_on_import
fi
needs_capture
run_case "no such program" no_such_program
run_case "no such process" no_such_process
run_case "a program without symbols" no_symbols
run_case "disk full during a recording" disk_full_on_record
run_case "the store is still as before" store_is_untouched
finish
