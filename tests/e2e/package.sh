#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The Debian package: lintian has nothing to say, it installs into an empty root, and what it brings works there.
. "$(dirname "$0")/lib.sh"

R=$WORK/root
mkdir -p "$R/var/lib/dpkg/info" "$R/var/lib/dpkg/updates" "$R/var/lib/dpkg/triggers" "$R/tmp"
touch "$R/var/lib/dpkg/status"
O=$(dirname "$TRACECTL") "$ROOT/tools/package" "$WORK/packages" >"$WORK/package.log" 2>&1 || {
    sed 's/^/# /' "$WORK/package.log"
    echo "not ok - the package is made"
    exit 1
}
DEB=$(tail -n 1 "$WORK/package.log")

lintian_is_content() {
    lintian --allow-root --fail-on error,warning "$DEB" >"$WORK/lintian" 2>&1 || {
        cat "$WORK/lintian"
        return 1
    }
}

# All that it depends on is installed here: the build needed it.
depends_on_what_there_is() {
    local package
    dpkg-deb -f "$DEB" Depends | grep -q libsqlite3-0
    for package in $(dpkg-deb -f "$DEB" Depends | sed 's/([^)]*)//g; s/,/ /g'); do
        same installed "$(dpkg-query -W -f '${db:Status-Status}' "$package")"
    done
}

installs() {
    # The root has no other package: dependencies are the case above.
    dpkg --root="$R" --log=/dev/null --force-depends,not-root,script-chrootless -i "$DEB" >"$WORK/dpkg.log" 2>&1 || {
        cat "$WORK/dpkg.log"
        return 1
    }
    same "ii  tracectl" "$(dpkg --root="$R" -l tracectl | tail -n 1 | cut -c 1-12)"
}

the_tool_runs() {
    same "$("$TRACECTL" version)" "$("$R/usr/bin/tracectl" version)"
    # Commands of "make" and of the package have the same pages.
    same "$(cd "$(dirname "$TRACECTL")/man" && ls)" "$(find "$R/usr/share/man/man1" -name '*.gz' -printf '%f\n' | sed 's/\.gz$//' | LC_ALL=C sort)"
    zcat "$R/usr/share/man/man1/tracectl.1.gz" | grep -q '^\.TH TRACECTL 1'
    mkdir "$WORK/traces"
    "$E2E/u16" make "$WORK/traces" 0.0 main '500*(' a b - - c - ')' -
    "$R/usr/bin/tracectl" -q import --format u16 "$WORK/traces" -n imported
    same imported "$("$R/usr/bin/tracectl" --json runs | json_get 0.name)"
    same imported "$(PYTHONPATH=$R/usr/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1 PATH=$R/usr/bin:$PATH TRACECTL='' \
        python3 -c 'import sys, tracectl; print(tracectl.open(sys.argv[1]).runs()[0]["name"])' "$STORE")"
}

the_extension_loads() {
    same 500 "$(sqlite3 -cmd ".load $R/usr/lib/tracectl/tracestore" "$STORE" \
        "SELECT count(*) FROM events JOIN functions USING (function_id) WHERE name = 'a' AND kind = 'call'")"
}

the_library_links() {
    local folder
    folder=$(find "$R/usr/lib" -name pkgconfig)
    printf '#include <tracestore.h>\nint main(void) { tracestore_free(0); return 0; }\n' >"$WORK/uses.c"
    # shellcheck disable=SC2046 # words are wanted
    gcc -o "$WORK/uses" "$WORK/uses.c" $(PKG_CONFIG_PATH=$folder pkg-config --define-variable=prefix="$R/usr" --cflags --libs tracestore)
    LD_LIBRARY_PATH=$R/usr/lib/tracectl "$WORK/uses"
}

the_daemon_is_configured() {
    # The configuration is valid and records nothing yet; each commented target is valid, too.
    same "" "$("$R/usr/bin/tracectl" daemon --check -c "$R/etc/tracectl/tracectl.conf")"
    sed 's/^# \([[a-z].*\)$/\1/' "$R/etc/tracectl/tracectl.conf" | grep -E '^(\[|[a-z-]+ = )' >"$WORK/all.conf"
    same "cache database web" "$("$R/usr/bin/tracectl" daemon --check -c "$WORK/all.conf" | cut -d : -f 1 | sort | paste -sd ' ')"
    grep -qx /etc/tracectl/tracectl.conf <(dpkg-deb --info "$DEB" conffiles)
    # What the unit starts is there.
    same /usr/bin/tracectl "$(sed -nE 's/^ExecStart(Pre)?=([^ ]*) .*/\2/p' "$R/lib/systemd/system/tracectl.service" | sort -u)"
}

completions_are_there() {
    cmp "$ROOT/tools/completion/tracectl.bash" "$R/usr/share/bash-completion/completions/tracectl"
    cmp "$ROOT/tools/completion/_tracectl" "$R/usr/share/zsh/vendor-completions/_tracectl"
    cmp "$ROOT/tools/completion/tracectl.fish" "$R/usr/share/fish/vendor_completions.d/tracectl.fish"
}

# Relative links of the pages lead to files of the package.
documents_are_complete() {
    local page link
    cd "$R/usr/share/doc/tracectl"
    for page in README.md docs/*.md; do
        while read -r link; do
            [[ -e $(dirname "$page")/$link ]] || echo "$page: $link"
        done < <(grep -oE '\]\([^)#]+' "$page" | cut -c 3- | grep -v ://)
    done >"$WORK/links"
    cat "$WORK/links"
    [[ ! -s $WORK/links ]]
}

removes() {
    dpkg --root="$R" --log=/dev/null --force-not-root,script-chrootless --purge tracectl >"$WORK/dpkg.log" 2>&1
    same "" "$(find "$R" -path "$R/var" -prune -o -type f -print)"
}

run_case "lintian: no error, no warning" lintian_is_content
run_case "dependencies are those of the build" depends_on_what_there_is
run_case "dpkg installs it" installs
run_case "the executable runs, and has its manual" the_tool_runs
run_case "sqlite3 loads the extension" the_extension_loads
run_case "a program is built with the library" the_library_links
run_case "the daemon has a unit and a configuration" the_daemon_is_configured
run_case "completions" completions_are_there
run_case "the pages refer to what is there" documents_are_complete
run_case "purging leaves no file" removes
finish
