#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What Go programs say of themselves, by three versions of Go, whole and stripped, position-independent and with the
# race detector: `go model` against the comments in the source, `go layout` of stripped programs against DWARF.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SOURCE=$ROOT/tests/programs/go/usages
export GOCACHE=$WORK/cache GOPATH=$WORK/path GOFLAGS=-mod=mod GOTOOLCHAIN=local GOENV=off GOPROXY=off GO111MODULE=on

build() { # version, name, go's options...
    local version=$1 name=$2
    shift 2
    (cd "$SOURCE" && "/usr/lib/go-$version/bin/go" build "$@" -o "$WORK/$name" .)
}

model_is_right() { # name
    "$TRACECTL" go model --json "$WORK/$1" >"$WORK/$1.json"
    "$E2E/go_model_check" usages "$SOURCE/main.go" <"$WORK/$1.json"
}

# The offsets as one line; those that only DWARF or the table know would have "code": false.
offsets_of() { # name
    "$TRACECTL" go layout --json "$WORK/$1" | json_get offsets
}

layout_is_right() { # stripped, whole
    local whole
    whole=$(offsets_of "$2")
    same "$whole" "$(offsets_of "$1")"
    "$TRACECTL" go layout --json "$WORK/$2" | json_get dwarf | grep -qx true
    "$TRACECTL" go layout --json "$WORK/$1" | json_get dwarf | grep -qx false
    grep -q '"g.goid"' <<<"$whole"
    lacks 'false' <<<"$whole"
    same "$("$TRACECTL" go layout --json "$WORK/$1" | json_get wait_reasons)" \
        "$("$TRACECTL" go layout --json "$WORK/$2" | json_get wait_reasons)"
    "$TRACECTL" go layout --json "$WORK/$1" | json_get wait_reasons | grep -q '"chan receive","chan send"'
}

both() { # version, go's options...
    build "$1" "whole$1" "${@:2}"
    build "$1" "bare$1" -ldflags='-s -w' "${@:2}"
    model_is_right "whole$1"
    model_is_right "bare$1"
    layout_is_right "bare$1" "whole$1"
    if [[ $1 == 1.19 ]]; then
        offsets_of bare1.19 | grep '"g.parentGoid":null'
    else
        offsets_of "bare$1" | lacks 'null'
    fi
}

independent() {
    build 1.22 pie -buildmode=pie
    strip -o "$WORK/bare_pie" "$WORK/pie"
    model_is_right pie
    model_is_right bare_pie
    layout_is_right bare_pie pie
}

race_detector() {
    build 1.22 race -race
    model_is_right race
    strip -o "$WORK/bare_race" "$WORK/race"
    model_is_right bare_race
    layout_is_right bare_race race
}

fast_paths() {
    "$TRACECTL" go model --json "$WORK/bare1.19" | "$E2E/go_model_check" locks "$WORK/bare1.19"
    "$TRACECTL" go model --json "$WORK/bare1.23" | "$E2E/go_model_check" locks "$WORK/bare1.23"
}

texts() {
    "$TRACECTL" go model "$WORK/bare1.22" >"$WORK/text"
    grep -E 'main\.go:[0-9]+ +main\.selects +channel +select +recv \(line [0-9]+\), send .*, default$|no cases' "$WORK/text"
    grep -E 'main\.others +goroutine +go +starts main\.others\.func1$' "$WORK/text"
    grep -E 'main\.tell +channel +send +at 2 places' "$WORK/text"
    lacks -E '/(runtime|sync|time)/' "$WORK/text"
    "$TRACECTL" go model --all "$WORK/bare1.22" | grep -E '/sync/.* +mutex +unlock '
    "$TRACECTL" go layout "$WORK/bare1.22" | grep -E '^g\.goid +152 +code, confirmed by the table of versions$'
    "$TRACECTL" go --help | grep -E '^  model '
    "$TRACECTL" help go model | grep -e '--all'
}

refusals() {
    fails_with 3 "$TRACECTL" go model "$TRACECTL"
    fails_with 3 "$TRACECTL" go layout "$TRACECTL"
    fails_with 3 "$TRACECTL" go model "$WORK/not there"
    # One version's code under another one's name: fields are not where they should be, and both are told.
    LC_ALL=C sed 's/go1\.23\.5/go1.22.5/g' "$WORK/bare1.23" >"$WORK/liar"
    fails_with 3 "$TRACECTL" go layout "$WORK/liar"
    grep -E 'g\.atomicstatus is 152 by the code of go1\.22\.5, but 144 by' "$WORK/fails.err"
    # A function that must be there is not.
    LC_ALL=C sed 's/runtime\.park_m/runtime.pork_m/g' "$WORK/bare1.23" >"$WORK/incomplete"
    fails_with 3 "$TRACECTL" go layout "$WORK/incomplete"
    grep -F 'runtime.park_m' "$WORK/fails.err"
}

# Without paths, no folder tells what the standard library is.
run_case "go 1.19, without paths: model and layout, stripped and not" both 1.19 -trimpath
run_case "go 1.22: model and layout, stripped and not" both 1.22
run_case "go 1.23: model and layout, stripped and not" both 1.23
run_case "position-independent" independent
run_case "fast paths of inlined locks" fast_paths
run_case "tables and help" texts
run_case "what is not understood is refused" refusals
if command -v gcc >/dev/null; then
    run_case "with the race detector" race_detector
fi
chmod -R u+w "$WORK/path" 2>/dev/null || true
finish
