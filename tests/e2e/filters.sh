#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Filters: sets of the user's own, images, source folders, marks; for reading a run and for recording one.
. "$(dirname "$0")/lib.sh"

mkdir "$WORK/trace" "$WORK/config" "$WORK/config/tracectl"
"$E2E/u16" make "$WORK/trace" 0.0 main MPI_Init - 4'*(' MPI_Send - memcpy - MPI_Barrier - ')' exchange_rows - -
"$TRACECTL" -q import --format u16 "$WORK/trace" -n small
export XDG_CONFIG_HOME=$WORK/config HOME=$WORK

kept() { # options of nlr: the functions that are left, in order of their names
    "$TRACECTL" nlr small "$@" | grep -oE '[A-Za-z_]{4,}' | grep -vxE 'thread|events|kept|entries' | sort -u | paste -sd ' '
}

sets_of_a_file() {
    printf '# mine\ntalk = mpicol, /^exchange_/\nrest = !talk, !mem\n' >"$WORK/sets"
    same "MPI_Barrier exchange_rows" "$(kept --filter talk --filter-file "$WORK/sets")"
    same "MPI_Init MPI_Send main" "$(kept --filter rest --filter-file "$WORK/sets")"
    same "MPI_Barrier exchange_rows memcpy" "$(kept --filter 11.talk.mem.0K10 --filter-file "$WORK/sets")"
    fails_with 2 "$TRACECTL" nlr small --filter talk
    echo 'talk = mpisr' >"$WORK/config/tracectl/filters"
    same "MPI_Send" "$(kept --filter talk)"
    same "MPI_Barrier exchange_rows" "$(kept --filter talk --filter-file "$WORK/sets")"
    rm "$WORK/config/tracectl/filters"
}

wrong_lines() {
    printf 'talk = mpicol\n\nmore = talks\n' >"$WORK/sets"
    fails_with 2 "$TRACECTL" nlr small --filter talk --filter-file "$WORK/sets"
    grep -F "$WORK/sets:3: there is no set 'talks'" "$WORK/fails.err"
    fails_with 2 "$TRACECTL" record --filter-file "$WORK/sets" -- true
    fails_with 3 "$TRACECTL" nlr small --filter mpi --filter-file "$WORK/nonesuch"
}

marks() {
    same "MPI_Barrier MPI_Init MPI_Send exchange_rows main" "$(kept --filter '!mem')"
    same "MPI_Barrier MPI_Init MPI_Send exchange_rows main" "$(kept --filter -mem)"
    same "MPI_Barrier MPI_Init" "$(kept --filter 'mpi,!mpisr')"
    "$TRACECTL" nlr --help | grep -F 'go-user'
}

recorded() { # options of record: what it recorded
    "$TRACECTL" -q record "$@" -- "$PROGRAMS/million" 100 >"$WORK/out" 2>&1
    q "SELECT DISTINCT name FROM call_counts WHERE run_id = (SELECT max(run_id) FROM runs) ORDER BY name" | paste -sd ' '
}

while_recording() {
    needs_capture
    echo 'own = source:tests/programs/, !/^leaf$/' >"$WORK/sets"
    same "cell main row" "$(recorded --filter own --filter-file "$WORK/sets")"
    same "cell row" "$("$TRACECTL" nlr latest --filter 'source:million.c,!/main/,image:million' |
        grep -oE '\<(cell|row|main)\>' | sort -u | paste -sd ' ')"
    same "exit" "$(recorded --functions '^(exit|strtoul)$' --filter 'image:libc.so*,!/^strtoul$/')"
    fails_with 2 "$TRACECTL" record --filter 11.mem.0K10 -- true
    fails_with 2 "$TRACECTL" record --filter 'mem,!returns' -- true
    fails_with 2 "$TRACECTL" record --filter nonesuch -- true
}

run_case "sets of the user's file" sets_of_a_file
run_case "wrong lines are named" wrong_lines
run_case "sets with a mark are left out" marks
run_case "the same sets choose what is recorded" while_recording
finish
