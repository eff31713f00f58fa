#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Files that options name: never the store that is read, and never half of one.
. "$(dirname "$0")/lib.sh"

mkdir "$WORK/traces"
"$E2E/u16" make "$WORK/traces" 0.0 main '2000*(' leaf - ')' -
for name in first second; do
    "$TRACECTL" -q import --format u16 "$WORK/traces" -n "$name"
done
sqlite3 "$STORE" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
cd "$WORK"
ln -s store.db symlink
ln store.db hardlink
mkdir folder
ln -s folder/../store.db deep

forms=("export --format json first -o" "export --format csv first -o" "export --format dot first -o" "report first -o"
    "report first second -o" "diff first second --svg" "diff first second --flamegraph"
    "export --format flamegraph first -o" "stat first --svg")

# Every way to say the store, and what SQLite would take for a part of it.
the_store_is_refused() {
    local form name before
    before=$(sha256sum <store.db)
    for form in "${forms[@]}"; do
        for name in store.db symlink hardlink deep "$WORK/folder/../store.db" store.db-wal store.db-shm ./store.db-journal; do
            # shellcheck disable=SC2086 # words
            if "$TRACECTL" -q $form "$name" >out 2>err; then
                fail "$form $name is not refused"
            fi
            grep -q "^tracectl: cannot write $name: it belongs to the store that is being read" err || fail "$form $name: $(cat err)"
        done
    done
    same "$before" "$(sha256sum <store.db)"
    [[ ! -e store.db-journal && ! -s store.db-wal ]]
    fails_with 3 "$TRACECTL" recover -o store.db
    fails_with 3 "$TRACECTL" recover -o hardlink
    fails_with 3 "$TRACECTL" export --format otf2 first -o store.db
    "$TRACECTL" verify
}

# Of two stores, the second.
another_store_is_refused() {
    cp store.db other.db
    if "$TRACECTL" diff first other.db:second --svg other.db 2>err; then
        fail "it is not refused"
    fi
    cat err
    "$TRACECTL" -d other.db verify
}

# A disk on which there is no room for a new file: the old one stays, with nothing beside it.
a_failure_leaves_the_old_file() {
    local form
    mkdir -p mount
    mount -t tmpfs -o size=16k tmpfs mount
    echo old >mount/out
    for form in "export --format json first -o" "report first second -o"; do
        # shellcheck disable=SC2086 # words
        if "$TRACECTL" -q $form mount/out 2>err; then
            fail "there is no room for it"
        fi
        cat err
        grep -q '^tracectl: cannot write mount/out: no space left' err
        same old "$(cat mount/out)"
        same out "$(ls -A mount)"
    done
    umount mount
}

# As a signal would: the end comes in the middle of writing, by a limit on the sizes of files.
an_interrupted_one_leaves_the_old_file() {
    echo old >out.json
    for signal in "trap - XFSZ" "trap '' XFSZ"; do
        (
            eval "$signal"
            ulimit -f 8
            "$TRACECTL" -q export --format json first -o out.json
        ) && fail "the limit is not met"
        same old "$(cat out.json)"
        same "" "$(find . -name '.tracectl.*')"
    done
}

# Mode and owner of a file that is there, the umask for one that is not, links that stay.
keeps_what_the_file_had() {
    echo old >kept
    chmod 640 kept
    ((EUID)) || chown 1:1 kept
    "$TRACECTL" -q export --format csv first -o kept
    same 640 "$(stat -c %a kept)"
    ((EUID)) || same 1:1 "$(stat -c %u:%g kept)"
    grep -q leaf kept
    (
        umask 027
        "$TRACECTL" -q export --format csv first -o new
    )
    same 640 "$(stat -c %a new)"
    echo old >target
    ln -s target link
    "$TRACECTL" -q export --format csv first -o link
    [[ -L link ]]
    cmp target new
    ln -s nowhere dangling
    "$TRACECTL" -q export --format csv first -o dangling
    [[ -L dangling ]]
    cmp nowhere new
    same "" "$(find . -name '.tracectl.*')"
}

# What is no file: standard output by its name, pipes, a device that is full.
not_files() {
    "$TRACECTL" -q export --format csv first >plain
    "$TRACECTL" -q export --format csv first -o /dev/stdout | cmp - plain
    "$TRACECTL" -q export --format csv first -o /dev/stdout >through
    cmp through plain
    "$TRACECTL" -q export --format csv first -o >(cat >piped)
    wait_until 60 cmp -s piped plain
    mkfifo fifo
    cat fifo >fromfifo &
    "$TRACECTL" -q export --format csv first -o fifo
    wait
    cmp fromfifo plain
    fails_with 3 "$TRACECTL" export --format csv first -o /dev/full
    fails_with 3 "$TRACECTL" report first -o /dev/full
    fails_with 3 "$TRACECTL" diff first second --svg /dev/full
    [[ -c /dev/full ]]
    fails_with 3 "$TRACECTL" export --format csv first -o missing/out
    fails_with 3 "$TRACECTL" export --format csv first -o folder
}

run_case "the store that is read is refused, by whatever name" the_store_is_refused
run_case "and each of two stores" another_store_is_refused
if ((EUID == 0)); then
    run_case "a full disk leaves the old file" a_failure_leaves_the_old_file
fi
run_case "a command that cannot finish leaves the old file" an_interrupted_one_leaves_the_old_file
run_case "owner, mode and links of a file stay" keeps_what_the_file_had
run_case "standard output, pipes and devices" not_files
finish
