#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# libtracestore as other programs see it: what is installed, and nothing of this tree.
. "$(dirname "$0")/lib.sh"

PREFIX=$WORK/root/opt/tracectl
BUILD=$(dirname "$TRACECTL")
make -s -C "$ROOT" O="$BUILD" PREFIX=/opt/tracectl DESTDIR="$WORK/root" install >"$WORK/install.log" 2>&1 || {
    sed 's/^/# /' "$WORK/install.log"
    echo "not ok - make install"
    exit 1
}
export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig LD_LIBRARY_PATH=$PREFIX/lib
cp "$ROOT/docs/examples/two_recorders.c" "$WORK"
cd "$WORK"

flags() { # options for pkg-config...
    pkg-config --define-variable=prefix="$PREFIX" "$@"
}

compile() { # output, compiler's further words...
    local output=$1
    shift
    gcc -std=gnu11 -Wall -Wextra -Werror -o "$output" two_recorders.c "$@"
}

runs() { # program
    rm -f example.db*
    "./$1" example.db | tee "$1.out"
    same "foreground 800000 events inner 300000 outer 100000 background grows" "$(paste -sd ' ' <"$1.out")"
    "$TRACECTL" -d example.db verify
    same "background|1
foreground|1" "$("$TRACECTL" -d example.db query --json "SELECT name, ended_ns NOTNULL AS ended FROM runs ORDER BY name" |
        "$E2E/json" rows)"
}

shared() {
    # shellcheck disable=SC2046 # words are wanted
    compile shared $(flags --cflags --libs tracestore sqlite3)
    ldd shared | tee shared.ldd
    grep -qF "libtracestore.so.0 => $PREFIX" shared.ldd
    runs shared
}

static() {
    # shellcheck disable=SC2046
    compile static $(flags --cflags tracestore) "$PREFIX/lib/libtracestore.a" $(flags --static --libs-only-l sqlite3 libzstd zlib)
    ldd static | lacks libtracestore
    runs static
}

cplusplus() {
    printf '#include <tracestore.h>\nint main() { tracestore_free(nullptr); return trace_returns_parse("none") != TRACE_RETURNS_NONE; }\n' >plus.cc
    # shellcheck disable=SC2046
    g++ -Wall -Wextra -Werror -o plus plus.cc $(flags --cflags --libs tracestore)
    ./plus
}

exports() { # the functions that the header declares, and only these
    nm -D --defined-only "$PREFIX/lib/libtracestore.so.0" | awk '{ print $3 }' | sort >exported
    gcc -fsyntax-only -aux-info declared -include "$PREFIX/include/tracestore.h" -x c /dev/null
    grep -F "$PREFIX/include/tracestore.h" declared | grep -v static | grep -oE '^[^(]*' | awk '{ print $NF }' | tr -d '*' | sort -u >wanted
    (($(wc -l <wanted) > 40)) || fail "the header declares too little"
    diff wanted exported
}

installed() {
    "$PREFIX/bin/tracectl" --version
    [[ -s $PREFIX/share/man/man1/tracectl-sql.1 ]]
    for page in "$PREFIX"/share/man/man1/tracectl-*.1; do
        grep -q '^\.SH EXAMPLES$' "$page" || fail "no examples: $page"
    done
    for name in $("$TRACECTL" help go | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
        [[ -s $PREFIX/share/man/man1/tracectl-go-$name.1 ]] || fail "no page: go $name"
    done
    sqlite3 example.db ".load $PREFIX/lib/tracectl/tracestore" "SELECT max(seq) FROM events e JOIN threads USING (thread_id)
        JOIN runs ON runs.run_id = e.run_id WHERE runs.name = 'foreground'" | grep -qx 799999
    lacks -rF "$ROOT" "$PREFIX/include" "$PREFIX/lib/pkgconfig"
}

run_case "a program records and reads with the shared library while another records" shared
run_case "and with the static one" static
run_case "the header is good for C++" cplusplus
run_case "the shared library exports what the header declares" exports
run_case "executable, extension and manual are installed" installed
finish
