#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# doctor says what is possible, as anybody, and says the truth: what it calls possible is then done.
. "$(dirname "$0")/lib.sh"

chmod 755 "$WORK"
cp "$TRACECTL" "$WORK/tracectl"
cp "$PROGRAMS/million" "$WORK/million"

# Runs a command as nobody with some capabilities, "none" or "bpf,perfmon".
as_nobody() { # capabilities, command...
    local set=-all
    [[ $1 == none ]] || set=-all,+${1//,/,+}
    shift
    setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps="$set" --ambient-caps="$set" "$@"
}

# doctor's answer about one check in doctor.json: true or false.
answer() { # name
    python3 -c 'import json, sys
print(*[str(c["ok"]).lower() for c in json.load(open(sys.argv[2]))["checks"] if c["name"] == sys.argv[1]])' \
        "$1" "$WORK/doctor.json"
}

# Runs doctor under a command; status 0 or 3 is in $status.
examine() { # command that runs tracectl...
    status=0
    "$@" --json doctor >"$WORK/doctor.json" || status=$?
    cat "$WORK/doctor.json"
    ((status == 0 || status == 3))
}

as_json() {
    examine "$TRACECTL"
    for key in name ok detail remedy; do
        json_get "checks.0.$key" <"$WORK/doctor.json"
    done
    json_get probe_cost_ns <"$WORK/doctor.json"
    json_get empty_probe_cost_ns <"$WORK/doctor.json"
    # Every "no" has a remedy, no "yes" has one.
    python3 -c 'import json, sys
for check in json.load(open(sys.argv[1]))["checks"]:
    assert check["ok"] == (check["remedy"] is None), check
    assert check["detail"], check' "$WORK/doctor.json"
}

as_text() {
    local status=0
    "$TRACECTL" doctor >"$WORK/doctor.txt" || status=$?
    cat "$WORK/doctor.txt"
    if ((status == 0)); then
        grep -qx 'recording works' "$WORK/doctor.txt"
    else
        ((status == 3)) && grep -qxE 'recording (does not work|works by ptrace only: .*)' "$WORK/doctor.txt"
    fi
}

without_a_folder() { # for the store: then nothing records, by ptrace neither
    local status=0
    "$TRACECTL" -d "$WORK/missing/x.db" doctor >"$WORK/doctor.txt" || status=$?
    same 3 "$status"
    grep -q "^store .* no .*$WORK/missing: " "$WORK/doctor.txt"
    grep -qx 'recording does not work' "$WORK/doctor.txt"
}

unprivileged() {
    examine as_nobody none "$WORK/tracectl"
    same 3 "$status"
    for check in privileges 'other users' bpf programs tracepoints uprobes recorder; do
        same false "$(answer "$check")"
    done
    same true "$(answer 'user namespace')"
    same true "$(answer tracer)"
    json_get checks <"$WORK/doctor.json" | grep -q 'missing: CAP_BPF, CAP_PERFMON'
    json_get checks <"$WORK/doctor.json" | grep -q 'CAP_SYS_PTRACE, CAP_KILL'
}

# Each of the two is missed when it is the only one that is not there.
one_capability() { # the one that is there, the one that is not
    examine as_nobody "$1" "$WORK/tracectl"
    same 3 "$status"
    json_get checks <"$WORK/doctor.json" | grep -q "missing: $2\""
}

# What doctor asks for is enough to record one's own programs.
two_capabilities() {
    local folder=$WORK/nobody
    mkdir "$folder"
    chown 65534 "$folder"
    export TRACECTL_DB=$folder/store.db
    examine as_nobody bpf,perfmon "$WORK/tracectl"
    same 0 "$status"
    same true "$(answer privileges)"
    same false "$(answer 'other users')"
    as_nobody bpf,perfmon "$WORK/tracectl" -q record -n own -- "$WORK/million" 1000
    q "SELECT sum(calls) AS calls FROM call_counts WHERE name IN ('row', 'cell', 'leaf')" \
        >"$WORK/calls"
    same 1000 "$(cat "$WORK/calls")"
}

pid_namespace() {
    examine unshare --pid --fork --mount-proc "$TRACECTL"
    same 3 "$status"
    same false "$(answer 'process ids')"
    same true "$(answer privileges)"
}

run_case "doctor --json" as_json
run_case "doctor" as_text
run_case "a store without a folder" without_a_folder
if ((EUID == 0)); then
    run_case "without privileges doctor finds what is missing" unprivileged
    run_case "without CAP_PERFMON" one_capability bpf CAP_PERFMON
    run_case "without CAP_BPF" one_capability perfmon CAP_BPF
    needs_capture
    run_case "CAP_BPF and CAP_PERFMON are enough for one's own programs" two_capabilities
    run_case "in a pid namespace doctor says that recording cannot work" pid_namespace
fi
finish
