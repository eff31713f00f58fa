#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# record is transparent to a command: what it inherits, the signals that come meanwhile, and what it leaves running.
. "$(dirname "$0")/lib.sh"
needs_capture

# Runs a command as init would or a shell in the background, with everything that can be inherited unlike the default.
unusually() { # command...
    (
        trap '' HUP INT QUIT USR1 PIPE CHLD # an ignored SIGCHLD tells nobody how children end
        exec 7</dev/null
        umask 027
        ulimit -n 500 -c 0
        cd /usr
        exec nice -n 3 "$@"
    )
}

inherits_the_same() { # how, tracectl's command and options...
    local how=$1
    shift
    "$how" "$PROGRAMS/inherited" </dev/null >"$WORK/natively"
    "$how" "$TRACECTL" -q "$@" -- "$PROGRAMS/inherited" </dev/null >"$WORK/recorded" 2>"$WORK/err" || true
    grep -q 'group of its own: 0' "$WORK/natively"
    diff "$WORK/natively" "$WORK/recorded"
}

explored_executions_inherit_the_same() { # the second one, too; it is no Go program, which is known in the end only
    "$PROGRAMS/inherited" </dev/null >"$WORK/natively"
    "$TRACECTL" -v go explore --runs 2 -- "$PROGRAMS/inherited" </dev/null >"$WORK/recorded" 2>"$WORK/err" || true
    diff <(cat "$WORK/natively" "$WORK/natively") "$WORK/recorded"
}

on_a_terminal() {
    "$E2E/terminal" "$PROGRAMS/inherited" <<<end | grep -E '^group|^descriptor' | sed 's/, session [0-9][0-9]*//' >"$WORK/natively"
    grep -q "terminal's group: 1" "$WORK/natively"
    # The leader of the session is tracectl, and not the command.
    "$E2E/terminal" "$TRACECTL" -q record -- "$PROGRAMS/inherited" <<<end | grep -E '^group|^descriptor' |
        sed 's/, session [0-9][0-9]*//' >"$WORK/recorded"
    diff <(sed 's/own: 1/own: 0/g' "$WORK/natively") "$WORK/recorded"
    echo 'some input' | "$TRACECTL" -q record -- "$PROGRAMS/inherited" input | grep -q 'input 11: some input'
}

# Starts a recording of the service in a session of its own; $spawned is tracectl.
serve() { # run, command in front, options of record, -- and the service...
    local name=$1
    shift
    : >"$WORK/out"
    : >"$WORK/err"
    spawn env --default-signal=INT setsid "$@" >"$WORK/out" 2>"$WORK/err"
    wait_until 15 grep -q ready "$WORK/out"
}

ends_with() { # status; what serve started
    local status=0
    wait "$spawned" || status=$?
    same "$1" "$status"
}

calls_of() { # function, run
    q "SELECT coalesce(sum(calls), 0) AS n FROM call_counts WHERE run_id = $(run_id "$2") AND name = '$1'"
}

passed_on() { # signal, its number
    serve "to $1" "$TRACECTL" record -n "to $1" --exit-status -- "$PROGRAMS/signalled"
    kill -"$1" "$spawned"
    ends_with $((40 + $2))
    same "signal $2" "$(grep signal "$WORK/out")"
    same 1 "$(calls_of shut_down "to $1")"
    same 0 "$(q "SELECT count(*) AS n FROM losses WHERE run_id = $(run_id "to $1")")"
}

not_twice() { # to the whole group, as Ctrl-C, timeout and kill %1 do
    serve group "$TRACECTL" record -n group --exit-status -- "$PROGRAMS/signalled"
    kill -TERM -- "-$spawned"
    ends_with 55
    same "signal 15" "$(grep signal "$WORK/out")"
    same 1 "$(calls_of shut_down group)"
    timeout 3 "$TRACECTL" -q record -n timeout -- "$PROGRAMS/signalled" >"$WORK/out" || true # sends it in both ways
    same "signal 15" "$(grep signal "$WORK/out")"
    same 1 "$(calls_of shut_down timeout)"
}

ignored_stays_ignored() {
    serve nohup nohup "$TRACECTL" record -n nohup --exit-status -- "$PROGRAMS/signalled"
    kill -HUP "$spawned"
    kill -HUP -- "-$spawned"
    sleep 0.4 # longer than two signals that are one
    kill -HUP "$spawned"
    kill -TERM "$spawned"
    ends_with 55
    same "signal 15" "$(grep signal "$WORK/out")"
    same 1 "$(calls_of shut_down nohup)"
}

a_second_one_ends_the_recording() {
    serve second "$TRACECTL" record -n second --exit-status -- sh -c "trap '' TERM; '$PROGRAMS/signalled'; exit 5"
    kill -TERM "$spawned"
    sleep 0.4
    kill -TERM "$spawned"
    ends_with 143
    local pids
    pids=$(grep -oP 'the command is still running and no longer recorded \(tracectl record -p \K[0-9,]+' "$WORK/err")
    lives "${pids%%,*}"
    text_is_clean "${pids##*,}"
    kill -INT "${pids##*,}"
    wait_until 10 grep -q 'signal 2' "$WORK/out"
}

a_closed_terminal() { # whose session's leader is tracectl: the hang-up is for it alone
    # shellcheck disable=SC2016 # Python's
    python3 -c 'import os, pty, sys, time
pid, terminal = pty.fork()
if not pid:
    os.execvp(sys.argv[1], sys.argv[1:])
seen = b""
while b"ready" not in seen:
    seen += os.read(terminal, 1000)
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))' \
        "$TRACECTL" -q record -n hangup --exit-status -- "$PROGRAMS/signalled" >"$WORK/status"
    same 41 "$(<"$WORK/status")"
    same 1 "$(calls_of shut_down hangup)"
}

stopped_and_continued() { # Ctrl-Z and fg
    serve jobs "$TRACECTL" record -n jobs --exit-status -- "$PROGRAMS/signalled"
    kill -STOP -- "-$spawned"
    wait_until 5 grep -q '^State:.*T' "/proc/$spawned/status"
    kill -CONT -- "-$spawned"
    kill -TERM "$spawned"
    ends_with 55
    same 1 "$(calls_of shut_down jobs)"
}

daemon_is_reported() {
    local status=0
    : >"$WORK/out"
    "$TRACECTL" record -n daemon --exit-status -- "$PROGRAMS/signalled" daemon >"$WORK/out" 2>"$WORK/err" || status=$?
    same 3 "$status"
    local pid
    pid=$(grep -oP '1 of its processes is still running and no longer recorded \(tracectl record -p \K[0-9]+' "$WORK/err")
    text_is_clean "$pid"
    same 1 "$(q "SELECT count(*) AS n FROM losses WHERE run_id = $(run_id daemon) AND cause = 'processes outlived the command'")"
    same false "$("$TRACECTL" --json show daemon | json_get complete)"
    kill -TERM "$pid"
}

daemon_is_recorded() { # backend
    serve all "$TRACECTL" record -n "all-$1" --backend "$1" --until all -- "$PROGRAMS/signalled" daemon
    kill -TERM "$(sed -n 's/^ready //p' "$WORK/out")"
    ends_with 0
    same 1 "$(calls_of shut_down "all-$1")"
    same 0 "$(q "SELECT count(*) AS n FROM losses WHERE run_id = $(run_id "all-$1")")"
}

in_a_pid_namespace() { # what would not see the process says so, and runs nothing
    local arguments
    for arguments in 'record --life-cycle bpf -- touch' 'record --sync -- touch' 'record -p 1 --life-cycle bpf' 'go check -- touch' 'go explore -- touch' \
        'stat -p 1' 'top --batch --iterations=1 -p 1'; do
        rm -f "$WORK/touched"
        [[ $arguments != *touch ]] || arguments+=" $WORK/touched"
        # shellcheck disable=SC2086 # words
        fails_with 3 timeout 20 unshare --pid --fork --mount-proc "$TRACECTL" $arguments
        grep -q 'pid namespace' "$WORK/fails.err"
        [[ ! -e $WORK/touched ]]
    done
    printf '[daemon]\nstore = %s\nsocket = %s\n[target a]\nname = nothing\n' "$WORK/d.db" "$WORK/d.socket" >"$WORK/d.conf"
    fails_with 3 timeout 20 unshare --pid --fork --mount-proc "$TRACECTL" daemon -c "$WORK/d.conf"
    grep -q 'pid namespace' "$WORK/fails.err"
    # Its children will be in one, it is not.
    fails_with 3 timeout 20 unshare --pid "$TRACECTL" record -- touch "$WORK/touched"
    grep -q 'pid namespace' "$WORK/fails.err"
}

names_what_is_wrong() { # before the command runs
    local store
    while read -r store why; do
        fails_with 3 "$TRACECTL" record -d "${store/empty/}" -- touch "$WORK/touched"
        grep -q "$why" "$WORK/fails.err"
        fails_with 3 "$TRACECTL" runs -d "${store/empty/}"
    done <<LIST
$WORK/missing/x.db its folder does not exist
$WORK is a directory
:memory: not the name of a file
file:$WORK/x.db not the name of a file
empty without a name
LIST
    mkdir "$WORK/deleted"
    (
        cd "$WORK/deleted" && rmdir "$WORK/deleted"
        for store in x.db ../x.db; do # the kernel still follows ".."
            fails_with 3 "$TRACECTL" record -d "$store" -- touch "$WORK/touched"
            grep -q 'working folder has been deleted' "$WORK/fails.err"
            fails_with 3 "$TRACECTL" runs -d "$store"
            grep -q 'working folder has been deleted' "$WORK/fails.err"
        done
        "$TRACECTL" -q record -d "$WORK/full_path.db" -- true
    )
    printf '#!/missing/interpreter\n' >"$WORK/script"
    chmod +x "$WORK/script"
    fails_with 3 "$TRACECTL" record --exit-status -- "$WORK/script"
    grep -q 'by /missing/interpreter' "$WORK/fails.err"
    fails_with 3 "$TRACECTL" record --exit-status -- "$WORK"
    grep -q 'is a directory' "$WORK/fails.err"
    [[ ! -e $WORK/touched ]]
}

run_case "a command inherits what it would without tracectl" inherits_the_same unusually record
run_case "with uprobes, too" inherits_the_same unusually record --backend uprobe
run_case "a program under go check, too" inherits_the_same unusually go check
run_case "each execution of go explore, too" explored_executions_inherit_the_same
run_case "terminal and standard input are the command's" on_a_terminal
run_case "SIGTERM to tracectl is passed on, and the command recorded to its end" passed_on TERM 15
run_case "SIGHUP to tracectl is passed on" passed_on HUP 1
run_case "SIGINT to tracectl is passed on" passed_on INT 2
run_case "what the group was sent is not sent twice" not_twice
run_case "an ignored signal stays ignored" ignored_stays_ignored
run_case "a second signal ends the recording, and says that the command runs on" a_second_one_ends_the_recording
run_case "a closed terminal reaches the command" a_closed_terminal
run_case "stopped and continued" stopped_and_continued
run_case "processes that outlive the command are reported" daemon_is_reported
run_case "--until all records them" daemon_is_recorded uprobe
run_case "--until all with inline probes" daemon_is_recorded inline
run_case "inside a pid namespace nothing is run" in_a_pid_namespace
run_case "stores and commands that cannot be: named before anything runs" names_what_is_wrong
finish
