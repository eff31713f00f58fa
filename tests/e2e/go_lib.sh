# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The buggy Go programs of tests/programs/go/bugs and their corrected twins, for scripts that have sourced lib.sh.
#
# All programs are one executable and all tests are another one, because linking takes most of the time; so there are
# four of a version of Go and a set of flags: with the bugs and without, programs and tests. What is compiled is kept
# beside the sample programs for other scripts and the next time: most of it is the standard library.

GO_BUGS=$ROOT/tests/programs/go/bugs
GO_CACHE=${PROGRAMS%/*}/go-cache

go_run() { # version, go's arguments...
    local version=$1
    shift
    # A CC of two words ("ccache gcc") has Go's linker make programs that the race detector's memory does not fit.
    CC=gcc GOCACHE=$GO_CACHE GOPATH=$WORK/go-path GOFLAGS=-mod=mod GOTOOLCHAIN=local GOENV=off GOPROXY=off \
        GO111MODULE=on CGO_ENABLED=${CGO_ENABLED:-0} "/usr/lib/go-$version/bin/go" "$@"
}

# Builds into a directory: programs_buggy, programs_fixed, tests_buggy, tests_fixed.
go_bugs_build() { # version, directory, go's options (not -tags)...
    local version=$1 directory=$2 variant
    shift 2
    mkdir -p "$directory"
    directory=$(realpath "$directory")
    for variant in buggy fixed; do
        (cd "$GO_BUGS" && go_run "$version" build "$@" -tags "$variant" -o "$directory/programs_$variant" ./programs)
        (cd "$GO_BUGS" && go_run "$version" test -c "$@" -tags "$variant" -o "$directory/tests_$variant" ./tests)
    done
}

# One line a bug, from the comments in the sources, tabs between:
# kind (program or test), name, verdict, goroutines that are left ('-': not said), always or sometimes, noticed or
# unnoticed (by the runtime: of global deadlocks; else '-'), cause, test functions ('-' of a program).
go_bugs_list() {
    awk '
        function put() {
            if (name != "")
                print kind, name, want, left, how, seen, cause, (tests == "" ? "-" : "^(" tests ")$")
        }
        BEGIN { OFS = "\t" }
        FNR == 1 {
            put()
            kind = FILENAME ~ /_test\.go$/ ? "test" : "program"
            name = FILENAME
            sub(/.*\//, "", name)
            sub(/_buggy(_test)?\.go$/, "", name)
            want = left = how = seen = cause = "-"
            tests = ""
        }
        $1 == "//" && $2 == "want:" {
            want = $3
            if (want == "leak") left = $4
            if (want == "global-deadlock") seen = $4 == "" ? "noticed" : $4
        }
        /^\/\/ (always|sometimes)$/ { how = $2 }
        /^\/\/ cause: / { cause = substr($0, length("// cause: ") + 1) }
        /^func Test/ {
            test = $2
            sub(/\(.*/, "", test)
            tests = tests (tests == "" ? "" : "|") test
        }
        END { put() }' "$GO_BUGS"/programs/*_buggy.go "$GO_BUGS"/tests/*_buggy_test.go
}

# The command that runs a bug, in the array go_bug_command.
# shellcheck disable=SC2034 # it is for the caller
go_bug_command() { # directory of go_bugs_build, buggy or fixed, kind, name, test functions
    if [[ $3 == program ]]; then
        go_bug_command=("$1/programs_$2" "$4")
    else
        go_bug_command=("$1/tests_$2" -test.run "$5")
    fi
}
