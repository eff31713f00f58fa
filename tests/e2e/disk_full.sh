#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A full disk, a read-only one, and retention while a recording goes on: the target goes on whatever happens, the store
# stays valid, and what is missing is told.
. "$(dirname "$0")/lib.sh"
needs_capture

DISK=$WORK/mount
mkdir "$DISK"

new_disk() { # size
    if mountpoint -q "$DISK"; then
        wait_until 15 umount "$DISK"
    fi
    mount -t tmpfs -o "size=$1" tmpfs "$DISK"
    export TRACECTL_DB=$DISK/store.db
}

free_bytes() {
    df -B1 --output=avail "$DISK" | tail -n 1
}

# Fills the disk but for some bytes.
fill_but() { # bytes
    local free
    free=$(free_bytes)
    ((free > $1)) || return 0
    head -c $((free - $1)) /dev/zero >"$DISK/ballast"
}

store_is_valid() {
    "$TRACECTL" verify
    same ok "$(sqlite3 "$TRACECTL_DB" 'PRAGMA integrity_check')"
}

start_busy() {
    "$PROGRAMS/busy" 300000 2 >"$WORK/busy.out" &
    busy=$!
    echo "$busy" >>"$WORK/pids"
    wait_until 10 grep -q beat "$WORK/busy.out"
}

goes_on() {
    local before
    before=$(wc -l <"$WORK/busy.out")
    more_beats() { (($(wc -l <"$WORK/busy.out") > before)); }
    wait_until 15 more_beats || fail "the target stands still"
    text_is_clean "$busy"
    kill -TERM "$busy"
    wait_until 15 grep '^unharmed' "$WORK/busy.out"
}

# Recording with all times kept writes more than there is room for, and ends by itself.
stops() {
    local status=0 id
    new_disk 3m
    start_busy
    "$TRACECTL" record -n full -p "$busy" --budget none --time full --flush-interval 0.1 2>"$WORK/err" || status=$?
    cat "$WORK/err"
    same 3 "$status"
    same 1 "$(wc -l <"$WORK/err")"
    grep -q '^tracectl: the recording has ended early: .*no space left' "$WORK/err"
    goes_on
    store_is_valid
    id=$(run_id full)
    same 1 "$(q "SELECT count(*) AS n FROM losses WHERE run_id = $id AND cause = 'disk full'")"
    same 1 "$(q "SELECT ended_ns NOTNULL AS ended FROM runs WHERE run_id = $id")"
    (($(q "SELECT count(*) AS n FROM events WHERE run_id = $id") > 1000))
    # There is room again: the same store takes the next run.
    rm -f "$DISK/ballast"
    mount -o remount,size=20m "$DISK"
    record next -- "$PROGRAMS/forty" 3 >/dev/null
    store_is_valid
    same 1 "$(q "SELECT ended_ns NOTNULL AS ended FROM runs WHERE name = 'next'")"
}

# Older runs make room, as many as are needed, and not the one that is being recorded.
drops_oldest() {
    new_disk 12m
    for i in 1 2 3; do
        "$TRACECTL" -q record -n "old$i" --time full -- "$PROGRAMS/forty" 40 >/dev/null
    done
    store_is_valid
    fill_but 1500000
    start_busy
    spawn "$TRACECTL" --json record -n now -p "$busy" --budget none --time full --flush-interval 0.1 --on-full drop-oldest \
        --duration 60 >"$WORK/now.json"
    wait_until 30 oldest_is_gone
    kill -INT "$spawned"
    wait "$spawned" || status=$?
    cat "$WORK/now.json"
    rm -f "$DISK/ballast"
    store_is_valid
    goes_on
    q "SELECT run_id, name FROM runs"
    (($(q "SELECT count(*) AS n FROM runs WHERE name = 'now'") == 1))
    (($(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id now)") > 1000))
}

oldest_is_gone() {
    (($(q "SELECT count(*) AS n FROM runs WHERE name = 'old1'") == 0))
}

# Nothing is left that could go: the recording ends as with `stop`.
drops_all_and_stops() {
    local status=0
    new_disk 4m
    record old -- "$PROGRAMS/forty" 3 >/dev/null
    start_busy
    "$TRACECTL" record -n last -p "$busy" --budget none --time full --flush-interval 0.1 --on-full drop-oldest 2>"$WORK/err" ||
        status=$?
    cat "$WORK/err"
    same 3 "$status"
    goes_on
    store_is_valid
    same last "$(q 'SELECT name FROM runs')"
    q "SELECT cause, ns, count FROM losses"
    (($(q "SELECT count(*) AS n FROM losses WHERE cause = 'disk full'") == 1))
}

# Full from the beginning: no run, no harm.
full_from_the_start() {
    new_disk 2m
    head -c 4m /dev/zero >"$DISK/ballast" || true
    "$PROGRAMS/forty" 3 >"$WORK/plain"
    fails_with 3 "$TRACECTL" record -- "$PROGRAMS/forty" 3
    rm "$DISK/ballast"
    record now -- "$PROGRAMS/forty" 3 >"$WORK/out"
    cmp "$WORK/plain" "$WORK/out"
    store_is_valid
}

# Read-only: everything that only asks works, everything else is refused and leaves the file as it was.
read_only() {
    local before
    new_disk 8m
    record good -- "$PROGRAMS/forty" 3 >/dev/null
    before=$(sha256sum "$TRACECTL_DB")
    wait_until 15 mount -o remount,ro "$DISK"
    "$TRACECTL" runs
    "$TRACECTL" show good
    "$TRACECTL" verify
    (($(q "SELECT count(*) AS n FROM events") > 1000))
    fails_with 3 "$TRACECTL" gc --keep-runs 1
    fails_with 3 "$TRACECTL" rm good
    fails_with 3 "$TRACECTL" recover
    fails_with 3 "$TRACECTL" record -- "$PROGRAMS/forty" 3
    "$TRACECTL" recover -o "$WORK/copied.db"
    "$TRACECTL" -d "$WORK/copied.db" verify
    same "$before" "$(sha256sum "$TRACECTL_DB")"
    # A killed recorder's log lies beside the store and cannot be folded in: it is read all the same.
    mount -o remount,rw "$DISK"
    start_busy
    spawn "$TRACECTL" -q record -n cut -p "$busy" --budget none --flush-interval 0.05
    wait_until 15 has_events
    kill -KILL "$spawned"
    wait "$spawned" || true
    wait_until 15 mount -o remount,ro "$DISK" # the recorder's files are closed by now
    "$TRACECTL" verify
    (($(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id cut)") > 0))
    goes_on
}

# Not a byte is free, not even for the index of SQLite's log: what deletes works, and gives the space to others, who take it.
not_a_byte_free() {
    local before
    new_disk 6m
    mkdir -p "$WORK/traces"
    for thread in 0.0 0.1; do
        head -c 1000000 /dev/urandom | tr '\000-\377' '[\001*128][\002*128]' >"$WORK/traces/$thread.u16"
    done
    for name in first second third; do
        "$TRACECTL" -q import --format u16 "$WORK/traces" -n "$name"
    done
    take_all() { head -c 10m /dev/zero >>"$DISK/ballast" || true; }
    take_all
    (($(free_bytes) == 0))
    same 3 "$(q 'SELECT count(*) AS n FROM runs')"
    before=$(stat -c %s "$TRACECTL_DB")
    "$TRACECTL" rm first
    same 2 "$(q 'SELECT count(*) AS n FROM runs')"
    (($(stat -c %s "$TRACECTL_DB") < before && $(free_bytes) > 0))
    take_all
    before=$(stat -c %s "$TRACECTL_DB")
    "$TRACECTL" gc --keep-runs 1
    same third "$(q 'SELECT name FROM runs')"
    (($(stat -c %s "$TRACECTL_DB") < before && $(free_bytes) > 0))
    take_all
    "$TRACECTL" recover
    "$TRACECTL" verify
    "$TRACECTL" rm third
    rm "$DISK/ballast"
    store_is_valid
    same wal "$(sqlite3 "$TRACECTL_DB" 'PRAGMA journal_mode')"
}

# Killed at any of its writes: the store is whole for the next one who opens it, who may delete runs as well.
killed_without_a_byte() { # command...
    local call number status
    new_disk 6m
    for call in pwrite64:3 pwrite64:8 pwrite64:34 pwrite64:120 ftruncate:2 ftruncate:3; do
        number=${call#*:}
        rm -f "$DISK"/*
        cp "$WORK/three_runs.db" "$TRACECTL_DB"
        head -c 10m /dev/zero >"$DISK/ballast" || true
        (($(free_bytes) == 0))
        status=0
        strace -f -qq -o "$WORK/calls" -e trace="${call%:*}" -e inject="${call%:*}:signal=KILL:when=$number" \
            "$TRACECTL" -q "$@" || status=$?
        echo "$call: status $status"
        same 137 "$status"
        "$TRACECTL" verify
        "$TRACECTL" rm third
        same 0 "$(q "SELECT count(*) AS n FROM runs WHERE name = 'third'")"
        rm "$DISK/ballast"
        store_is_valid
        same wal "$(sqlite3 "$TRACECTL_DB" 'PRAGMA journal_mode')"
    done
    same 0 "$(find /dev/shm -maxdepth 1 -name 'tracectl-*.journal' -size +0 | wc -l)"
}

make_three_runs() {
    for name in first second third; do
        "$TRACECTL" -q -d "$WORK/three_runs.db" import --format u16 "$WORK/traces" -n "$name"
    done
}

has_events() {
    (($(q "SELECT count(*) AS n FROM events e JOIN runs r USING (run_id) WHERE r.name = 'cut'") > 0))
}

# The store never gets much longer than it may, however long the recording, and is no longer in the end.
keeps_size() {
    local keep=$((1500 * 1024)) size=0 i=0
    new_disk 64m
    while ((size <= 2 * keep)); do # how much a run takes depends on its times; a part of the file may be free pages
        "$TRACECTL" -q record -n "old$((++i))" --time full -- "$PROGRAMS/forty" 40 >/dev/null
        size=$(stat -c %s "$TRACECTL_DB")
    done
    echo "$size bytes before, of $i runs"
    record now --keep-size 1500K --flush-interval 0.05 -- "$PROGRAMS/forty" 200 >/dev/null
    store_is_valid
    size=$(stat -c %s "$TRACECTL_DB")
    echo "$size bytes after"
    ((size <= 1500 * 1024)) || fail "it is longer"
    same 1 "$(q "SELECT count(*) AS n FROM runs WHERE name = 'now'")"
    same 0 "$(q "SELECT count(*) AS n FROM runs WHERE name = 'old1'")"
    # The run that has just been recorded stays, if it alone is longer than that.
    record last --keep-size 10K -- "$PROGRAMS/forty" 200 >/dev/null
    store_is_valid
    same last "$(q "SELECT name FROM runs")"
}

run_case "disk full: the recording stops, the program goes on" stops
run_case "disk full: the oldest runs make room" drops_oldest
run_case "disk full: nothing left to drop" drops_all_and_stops
run_case "disk full from the start" full_from_the_start
run_case "disk full to the last byte: rm, gc and recover" not_a_byte_free
run_case "stores for what follows" make_three_runs
run_case "disk full to the last byte: rm is killed" killed_without_a_byte rm first
run_case "disk full to the last byte: gc is killed" killed_without_a_byte gc --keep-runs 1
run_case "a read-only file system" read_only
run_case "a size is kept while recording" keeps_size
finish
