#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The sessions of README.md print what README.md shows. With UPDATE=1 README.md gets what they print now.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$E2E/go_lib.sh"
needs_capture

mkdir "$WORK/bin" "$WORK/here"
ln -s "$TRACECTL" "$WORK/bin/tracectl"
for program in odd_even_sort release_1 release_2; do ln -s "$PROGRAMS/$program" "$WORK/bin/"; done
(cd "$GO_BUGS" && go_run 1.22 build -tags buggy -o "$WORK/bin/samples" ./programs)

unset NO_COLOR
export PATH=$WORK/bin:$PATH COLUMNS=110
cd "$WORK/here"
exec_sessions=("$E2E/readme_sessions")
[[ -z ${UPDATE-} ]] || exec_sessions+=(--update)
"${exec_sessions[@]}" "$ROOT/README.md"
