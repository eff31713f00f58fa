#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Calls of library functions, whichever linker made the stubs of a program, and of programs without stubs.
. "$(dirname "$0")/lib.sh"
needs_capture

SOURCE=$ROOT/tests/programs/library_calls.c

build() { # NAME, compiler, its options...
    local name=$1 compiler=$2
    shift 2
    "$compiler" -D_GNU_SOURCE -O1 -fno-builtin "$@" -o "$WORK/$name" "$SOURCE"
}

# What the program $WORK/NAME says of itself, and what is recorded of it. musl calls pread64 by its other name.
record_counts() { # NAME, options of record...
    local name=$1
    shift
    record "$name" "$@" -- "$WORK/$name" | sed 's/ /@plt /' | sort >"$WORK/$name.said"
    q "SELECT name || ' ' || sum(calls) AS n FROM call_counts WHERE run_id = $(run_id "$name") AND name LIKE '%@plt'
        GROUP BY name" | sed 's/^pread@/pread64@/' | sort >"$WORK/$name.got"
    [[ -s $WORK/$name.said ]]
}

counted() { # NAME, options of record...
    record_counts "$@"
    same '' "$(comm -23 "$WORK/$1.said" "$WORK/$1.got")"
}

kind() { # NAME, compiler, its options...
    build "$@"
    strip -o "$WORK/$1-stripped" "$WORK/$1"
    counted "$1"
    counted "$1-stripped" --backend inline
}

# A function whose address is taken may be called in other ways: it is reported, and not half recorded.
without_stubs() {
    build noplt gcc -fno-plt
    record_counts noplt
    same "strdup@plt 7" "$(comm -23 "$WORK/noplt.said" "$WORK/noplt.got")"
    same strdup@plt "$(q "SELECT f.name AS n FROM blind b JOIN functions f USING (function_id) WHERE run_id = $(run_id noplt)")"
}

run_case "bfd, lazy" kind bfd gcc -fuse-ld=bfd -Wl,-z,lazy
run_case "bfd, not a PIE" kind bfd-nopie gcc -fuse-ld=bfd -no-pie -fno-pie -Wl,-z,lazy
run_case "bfd, stubs for IBT" kind bfd-ibt gcc -fuse-ld=bfd -fcf-protection -Wl,-z,ibtplt,-z,now
run_case "gold" kind gold gcc -fuse-ld=gold
run_case "lld" kind lld gcc -fuse-ld=lld -Wl,-z,now
run_case "lld, stubs for IBT" kind lld-ibt gcc -fuse-ld=lld -fcf-protection -Wl,-z,force-ibt
run_case "lld, retpolines, lazy" kind lld-retpoline gcc -fuse-ld=lld -Wl,-z,retpolineplt
run_case "lld, retpolines, not a PIE" kind lld-retpoline-nopie gcc -fuse-ld=lld -no-pie -fno-pie -Wl,-z,retpolineplt,-z,now
run_case "mold" kind mold gcc -fuse-ld=mold
run_case "mold, not a PIE" kind mold-nopie gcc -fuse-ld=mold -no-pie -fno-pie -Wl,-z,now
run_case "musl" kind musl musl-gcc
run_case "calls without a stub" without_stubs
finish
