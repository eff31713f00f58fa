#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `go check -p`: services under load whose goroutines leak, come and go, wait in a pool, or for a deadline; how many the
# service says that it has; what is left of the recorder when it has gone, and when it was killed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$E2E/go_lib.sh"

SERVICE=$WORK/service
SECONDS_OBSERVED=4

# Starts a service; $spawned is its process id.
serve() { # name
    spawn "$SERVICE" serve >"$WORK/$1.address"
    wait_until 10 test -s "$WORK/$1.address"
}

ask() { # service's name, path
    "$SERVICE" get "$(<"$WORK/$1.address")$2"
}

load() { # service's name, path, seconds
    "$SERVICE" load "$(<"$WORK/$1.address")$2" "$3" 20 >"$WORK/$1.answers"
}

# Recordings of both services at once, and of one that nobody uses apart.
observe() {
    local status=0
    ask leaking /goroutines >"$WORK/before"
    "$TRACECTL" --json go check -p "$leaking,$sound" --duration $((SECONDS_OBSERVED + 2)) >"$WORK/both.json" &
    checks=($!)
    "$TRACECTL" -d "$WORK/other.db" --json go check -p "$patient" --detail schedule --duration $((SECONDS_OBSERVED + 1)) \
        >"$WORK/patient.json" &
    checks+=($!)
    wait_until 10 is_probed "$leaking"
    wait_until 10 is_probed "$sound"
    wait_until 10 is_probed "$patient"
    load leaking /forgetful "$SECONDS_OBSERVED" &
    loads=($!)
    load patient /patient $((SECONDS_OBSERVED - 1)) &
    loads+=($!)
    load sound /careful $((SECONDS_OBSERVED - 2))
    load sound /pool $((SECONDS_OBSERVED - 2))
    wait "${loads[@]}"
    for check in "${checks[@]}"; do
        wait "$check" || status=$?
        echo "$status" >>"$WORK/statuses"
        status=0
    done
}

leak_is_found() {
    same "1 0" "$(tr '\n' ' ' <"$WORK/statuses" | sed 's/ $//')"
    same leak "$(json_get verdict <"$WORK/both.json")"
    same 0 "$(json_get lost <"$WORK/both.json")"
    same "chan send" "$(json_get leaked.0.wait_reason <"$WORK/both.json")"
    json_get leaked.0.created_at <"$WORK/both.json" | grep -q "main.go:$(line_of 'go compute(1, answer) // left over')"
    same "$(line_of 'answer <- number')" "$(json_get leaked.0.line <"$WORK/both.json")"
    same main.forgetful "$(json_get leaked.0.created_by <"$WORK/both.json")"
    json_get leaked.0.last_user.place <"$WORK/both.json" | grep -q "main.go:"
    (($(json_get leaked_count <"$WORK/both.json") >= 20))
}

line_of() { # text in the source
    grep -nF "$1" "$ROOT/tests/programs/go/service/main.go" | head -n 1 | cut -d: -f1
}

# Of the programs observed, the one whose verdict is a leak is the leaking one only.
others_are_none() {
    python3 - "$WORK/both.json" "$WORK/patient.json" <<'SCRIPT'
import json
import sys

both, patient = (json.load(open(name)) for name in sys.argv[1:])
suspects = [group for group in both["groups"] if group["suspicion"] != "none"]
assert suspects and all(group["suspicion"] == "leak" for group in suspects), suspects
assert len({group["program"] for group in suspects}) == 1, suspects
assert {group["created_at"].rsplit("/", 1)[-1] for group in suspects} and len(suspects) == 1, suspects
assert sum(program["created"] > 50 for program in both["programs"]) == 2, both["programs"]
assert patient["verdict"] == "pass" and not patient["leaked"], patient["verdict"]
grows = [group for group in patient["groups"] if group["suspicion"] == "grows"]
assert len(grows) == 1 and grows[0]["wait_reason"] == "chan receive" and grows[0]["count"] > 50, grows
assert grows[0]["growth"] == grows[0]["count"], grows
SCRIPT
}

# All that was made and has not ended is what the service has more than before.
counts_are_the_services_own() {
    local more made ended program
    more=$(($(ask leaking /goroutines) - $(<"$WORK/before")))
    program=$(json_get leaked.0.goroutine <"$WORK/both.json")
    program=$([[ $(json_get programs.0.program <"$WORK/both.json") == "${program%%.*}" ]] && echo 0 || echo 1)
    made=$(json_get "programs.$program.created" <"$WORK/both.json")
    ended=$(json_get "programs.$program.ended" <"$WORK/both.json")
    same "$more" "$((made - ended))"
    same "$more" "$(<"$WORK/leaking.answers")"
}

nothing_is_left() {
    text_is_clean "$leaking"
    text_is_clean "$sound"
    text_is_clean "$patient"
    same 42 "$(ask sound /pool)"
}

text_names_places() {
    "$TRACECTL" -d "$WORK/text.db" go check -p "$leaking" --duration 1 >"$WORK/text"
    grep -q '^pass$' "$WORK/text"
    grep -q 'the number of idle older ones is unknown' "$WORK/text"
    "$TRACECTL" -d "$WORK/text.db" go tree latest >/dev/null
}

kill_is_harmless() {
    local recorder
    "$TRACECTL" -d "$WORK/killed.db" go check -p "$sound" >/dev/null &
    recorder=$!
    wait_until 10 is_probed "$sound"
    load sound /pool 1 &
    sleep 0.5
    kill -KILL "$recorder"
    wait
    text_is_clean "$sound"
    same 42 "$(ask sound /pool)"
    "$TRACECTL" -d "$WORK/killed.db" verify >/dev/null
}

# A thousandth of what the service needs pays for nothing that happens all the time.
budget_is_kept() {
    load sound /pool 4 &
    "$TRACECTL" -d "$WORK/budget.db" --json go check -p "$sound" --budget 0.1 --duration 3 >"$WORK/budget.json"
    wait
    python3 - "$WORK/budget.json" <<'SCRIPT'
import json
import sys

program = json.load(open(sys.argv[1]))["programs"][0]
seconds = program["seconds_with"]
assert seconds.get("nothing", 0) + seconds.get("lives", 0) + seconds.get("schedule", 0) > 1, seconds
assert 2.5 < sum(seconds.values()) < 4, seconds
SCRIPT
    "$TRACECTL" -d "$WORK/budget.db" query --csv "SELECT count(*) > 2 FROM go_events WHERE kind = 'detail'" | grep -qx 1
    text_is_clean "$sound"
}

# A service that dies while it is observed.
death_is_a_crash() {
    local check status=0
    "$TRACECTL" -d "$WORK/dead.db" --json go check -p "$patient" --duration 20 >"$WORK/dead.json" &
    check=$!
    wait_until 10 is_probed "$patient"
    kill -KILL "$patient"
    wait "$check" || status=$?
    same 1 "$status"
    same crash "$(json_get verdict <"$WORK/dead.json")"
    same true "$(json_get programs.0.has_ended <"$WORK/dead.json")"
}

duration_needs_a_process() {
    local status=0
    "$TRACECTL" go check --duration 1 -- true 2>"$WORK/usage" || status=$?
    same 2 "$status"
    grep -q -- '--duration needs -p' "$WORK/usage"
}

needs_capture
(cd "$ROOT/tests/programs/go/service" && go_run 1.22 build -ldflags='-s -w' -o "$SERVICE" .)
serve leaking && leaking=$spawned
serve sound && sound=$spawned
serve patient && patient=$spawned

run_case "three services are observed under load" observe
run_case "a leak has its place, its maker and who used the channel last" leak_is_found
run_case "a pool, and goroutines that wait for a deadline, are no leak" others_are_none
run_case "counts are the service's own" counts_are_the_services_own
run_case "nothing is left in the services" nothing_is_left
run_case "the text says what is not known" text_names_places
run_case "a recorder that is killed harms nobody" kill_is_harmless
run_case "a budget that is too small takes probes away" budget_is_kept
run_case "what is no Go program is refused" fails_with 3 "$TRACECTL" go check -p $$ --duration 1
run_case "a service that dies has crashed" death_is_a_crash
run_case "a duration without a process is refused" duration_needs_a_process
finish
