#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# For bash: subshells, pipes, job control, command substitution, traps, exec.
set -m
factorial() {
    (($1 < 2)) && echo 1 || echo $(($1 * $(factorial $(($1 - 1)))))
}
trap 'echo trapped' USR1
kill -USR1 $$
(
    echo subshell
    exit 3
) || echo "status $?"
seq 1 20 | sort -rn | head -n 3 | paste -sd ' '
sleep 0.1 &
jobs | wc -l
wait %1
echo "waited $?"
factorial 5
exec echo "end ${PIPESTATUS[*]}"
