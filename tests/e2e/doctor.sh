#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# doctor says what is possible, as anybody.
. "$(dirname "$0")/lib.sh"

as_json() {
    "$TRACECTL" --json doctor >"$WORK/doctor.json" || (($? == 1 || $? == 3))
    for key in name ok detail remedy; do
        json_get "checks.0.$key" <"$WORK/doctor.json"
    done
    json_get probe_cost_ns <"$WORK/doctor.json"
}

as_text() {
    "$TRACECTL" doctor || (($? == 1 || $? == 3))
}

as_nobody() {
    chmod 755 "$WORK"
    cp "$TRACECTL" "$WORK/tracectl"
    local status=0
    setpriv --reuid=65534 --regid=65534 --clear-groups "$WORK/tracectl" --json doctor >"$WORK/doctor.json" || status=$?
    cat "$WORK/doctor.json"
    ((status == 1 || status == 3))
    json_get checks <"$WORK/doctor.json" | grep '"ok":false'
}

run_case "doctor --json" as_json
run_case "doctor" as_text
if ((EUID == 0)); then
    run_case "doctor without privileges finds what is missing" as_nobody
fi
finish
