#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs whose files give rights (set-user-id, set-group-id, capabilities) have them in every recording, and their
# memory for records is nobody else's.
. "$(dirname "$0")/lib.sh"
needs_capture

NOBODY=$WORK/nobody
mkdir "$NOBODY"
chmod 755 "$WORK"
cp "$TRACECTL" "$NOBODY/tracectl"
for name in plain user group capable; do
    cp "$PROGRAMS/file_rights" "$NOBODY/$name"
done
chmod 4755 "$NOBODY/user"
chmod 2755 "$NOBODY/group"
setcap cap_net_raw,cap_sys_chroot+ep "$NOBODY/capable"
mkdir "$NOBODY/own"
chown 65534 "$NOBODY/own"
AS_NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# What it prints, as nobody runs it without a recorder; its status is 7.
natively() { # program
    local status=0
    "${AS_NOBODY[@]}" "$NOBODY/plain" "$NOBODY/$1" >"$WORK/native" || status=$?
    same 7 "$status"
    if [[ $1 != plain ]]; then
        grep -q 'program .* secure 1' "$WORK/native" || fail "this file system gives no rights"
    fi
}

calls_of() { # run: of each process of the program
    q "SELECT p.exe || ' ' || sum(c.calls) AS line FROM call_counts c JOIN threads USING (thread_id)
       JOIN processes p USING (process_id) JOIN functions f USING (function_id)
       WHERE p.run_id = $(run_id "$1") AND f.name = 'work' GROUP BY p.pid"
}

root_records() { # backend, program, its processes
    local status=0 run=$1-$2 i
    natively "$2"
    record "$run" --backend "$1" --exit-status -- "${AS_NOBODY[@]}" "$NOBODY/plain" "$NOBODY/$2" >"$WORK/out" || status=$?
    same 7 "$status"
    diff "$WORK/native" "$WORK/out"
    calls_of "$run" >"$WORK/calls"
    for ((i = 0; i < $3; i++)); do echo "$NOBODY/$2 5000"; done | diff - "$WORK/calls"
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id "$run")")"
}

# Why a program's code has no inline probes is said.
says_why() {
    q "SELECT value FROM tags WHERE run_id = $(run_id inline-user) AND key = 'backend:$NOBODY/user'" |
        grep "the kernel's probes: it runs with another user's rights (set-user-id)"
}

by_ptrace() { # name of the run, command...
    "${AS_NOBODY[@]}" "$NOBODY/tracectl" -d "$NOBODY/own/store.db" record --exit-status -n "$@"
}

# The kernel gives no rights to what an ordinary user traces: so it is not traced, and named.
user_records() { # program
    local status=0
    natively "$1"
    by_ptrace "$1" -- "$NOBODY/plain" "$NOBODY/$1" >"$WORK/out" 2>"$WORK/err" || status=$?
    same 7 "$status"
    diff "$WORK/native" "$WORK/out"
    same 1 "$(grep -c "note: process [0-9]* is not recorded: $1 runs with the rights of its file (set-user-id" "$WORK/err")"
    same 1 "$(TRACECTL_DB=$NOBODY/own/store.db q "SELECT count(*) AS n FROM tags JOIN runs USING (run_id)
        WHERE runs.name = '$1' AND key LIKE 'not recorded:%'")"
    same "" "$(TRACECTL_DB=$NOBODY/own/store.db q "SELECT exit_status FROM processes JOIN runs USING (run_id)
        WHERE runs.name = '$1' AND processes.exit_status NOTNULL")"
    # By a name relative to where it is, from a shell that waits for it, with what its environment and arguments say.
    (cd "$NOBODY" && by_ptrace "shell-$1" -- sh -c "./$1 | sed s/a/b/; cd /; exit 5") >"$WORK/out" 2>"$WORK/err" || status=$?
    same 5 "$status"
    sed s/a/b/ "$WORK/native" | diff - "$WORK/out"
    # As the command itself.
    status=0
    by_ptrace "direct-$1" -- "$NOBODY/$1" >"$WORK/out" 2>"$WORK/err" || status=$?
    same 3 "$status"
    diff "$WORK/native" "$WORK/out"
    grep "^tracectl: nothing was recorded: $1 runs with the rights of its file" "$WORK/err"
}

# One that wants no rights, or is on a file system that gives none, is recorded like any other.
user_records_those_without() {
    local status=0
    by_ptrace without -- setpriv --no-new-privs "$NOBODY/user" >"$WORK/out" 2>"$WORK/err" || status=$?
    same 7 "$status"
    grep 'program user: user 65534 65534.* secure 0' "$WORK/out"
    lacks 'is not recorded' "$WORK/err"
}

# Killed at any moment: the program runs, with its rights or without, and to its end.
killed() {
    local round recorder
    for round in {1..12}; do
        spawn "${AS_NOBODY[@]}" "$NOBODY/tracectl" -q -d "$NOBODY/own/killed$round.db" record -- sh -c \
            "echo >'$NOBODY/own/began$round'; '$NOBODY/user'; echo \$? >'$NOBODY/own/ended$round'" >"$WORK/out$round"
        recorder=$spawned
        wait_until 30 test -e "$NOBODY/own/began$round"
        sleep "0.00$((round % 10))"
        kill -KILL "$recorder" || true # it may have ended
        wait "$recorder" || true
        wait_until 60 test -s "$NOBODY/own/ended$round"
        same 7 "$(<"$NOBODY/own/ended$round")"
        grep -q '^program user: user 65534' "$WORK/out$round"
    done
}

for backend in auto inline uprobe; do
    run_case "root records a set-user-id program of nobody's: $backend" root_records "$backend" user 2
    run_case "the same, set-group-id: $backend" root_records "$backend" group 2
    run_case "the same, with capabilities: $backend" root_records "$backend" capable 2
done
run_case "it is said why such a program has no inline probes" says_why
for name in user group capable; do
    run_case "an ordinary user's recording leaves a program its rights: $name" user_records "$name"
done
run_case "an ordinary user records such a program where it gets no rights" user_records_those_without
run_case "a recorder that is killed leaves it running" killed
finish
