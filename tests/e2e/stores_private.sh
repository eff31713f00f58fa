#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A store is its owner's: others cannot read it, and the arguments of programs are not in it unless that is asked for.
. "$(dirname "$0")/lib.sh"

mkdir "$WORK/traces"
"$E2E/u16" make "$WORK/traces" 0.0 main '20*(' leaf - ')' -

is_private() { # file...
    local file
    for file in "$@"; do
        same "600 $file" "$(stat -c '%a %n' "$file")"
    done
}

modes() {
    local mask
    for mask in 000 022 277; do
        (
            umask "$mask"
            "$TRACECTL" -q -d "$WORK/$mask.db" import --format u16 "$WORK/traces" -n first
            "$TRACECTL" -q -d "$WORK/$mask.db" recover -o "$WORK/$mask-copy.db"
        )
        is_private "$WORK/$mask.db" "$WORK/$mask-copy.db"
    done
    # A file system that has no files without names: the store is made in another way.
    (
        umask 000
        cd "$WORK"
        : >empty.db
        chmod 640 empty.db # whoever makes the file says who may read it
        "$TRACECTL" -q -d empty.db import --format u16 traces -n first
    )
    same 640 "$(stat -c %a "$WORK/empty.db")"
}

# While a recording goes on: the log and its index, too, and a flight recorder's window.
while_it_records() {
    umask 000
    "$PROGRAMS/busy" 1000 1 >/dev/null &
    echo $! >>"$WORK/pids"
    busy=$!
    spawn "$TRACECTL" -q -d "$WORK/live.db" record -p "$busy" --flush-interval 0.05
    wait_until 60 test -s "$WORK/live.db-wal"
    is_private "$WORK"/live.db*
    kill -INT "$spawned"
    wait "$spawned"
    mkdir "$WORK/flight"
    spawn "$TRACECTL" -q -d "$WORK/flight/store.db" record --flight 1 -p "$busy"
    flight_files() { (($(find "$WORK/flight" -type f | wc -l) > 0)); }
    wait_until 60 flight_files
    while read -r file; do
        [[ ! -e $file ]] || same 600 "$(stat -c %a "$file")"
    done < <(find "$WORK/flight" -type f)
    kill -KILL "$spawned" "$busy"
}

finds() { # word
    grep -rqa "$1" "$STORE" "$STORE"-wal 2>/dev/null
}

arguments() {
    # shellcheck disable=SC2016 # the shell that is recorded expands it
    record first -- /bin/sh -c '"$0" 3 --password=hunter2; exec "$0" 4 --password=hunter2' "$PROGRAMS/forty" >/dev/null
    "$TRACECTL" show first
    finds forty
    finds hunter2 && fail "arguments are in the store"
    same /bin/sh "$(q "SELECT command FROM runs WHERE name = 'first'")"
    same "" "$(q "SELECT argv FROM processes WHERE argv LIKE '% %'")"
    record second --keep-arguments -- "$PROGRAMS/forty" 3 --password=hunter2 >/dev/null
    finds hunter2 || fail "they are not there when they are asked for"
    same "$PROGRAMS/forty 3 --password=hunter2" "$(q "SELECT command FROM runs WHERE name = 'second'")"
    same "$PROGRAMS/forty 3 --password=hunter2" "$(q "SELECT argv FROM processes WHERE argv LIKE '%hunter2'")"
}

run_case "a store has mode 0600, whatever the umask" modes
needs_capture
run_case "and so have the files beside it" while_it_records
run_case "arguments are kept only with --keep-arguments" arguments
finish
