#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Metrics, alert rules and the dashboard: promtool accepts them, rules fire when they should, and whatever the rules and
# the dashboard ask for exists.
. "$(dirname "$0")/lib.sh"
needs_capture

EXAMPLES=$ROOT/docs/examples

store_metrics() {
    record one -- "$PROGRAMS/million" 10 >/dev/null
    "$TRACECTL" serve --print /metrics >"$WORK/serve.metrics"
    grep -qx 'tracectl_store_runs 1' "$WORK/serve.metrics"
}

daemon_metrics() {
    local daemon
    spawn "$PROGRAMS/busy" 1000 >"$WORK/busy.out"
    cat >"$WORK/tracectl.conf" <<END
[daemon]
store = $WORK/daemon.db
socket = $WORK/control
scan = 0.2s
[target busy]
path = $(realpath "$PROGRAMS/busy")
END
    spawn "$TRACECTL" daemon -c "$WORK/tracectl.conf" 2>"$WORK/log"
    daemon=$spawned
    records() {
        "$TRACECTL" daemon --metrics -c "$WORK/tracectl.conf" >"$WORK/daemon.metrics" 2>/dev/null &&
            grep -q '^tracectl_probe_seconds{' "$WORK/daemon.metrics"
    }
    wait_until 60 records
    kill -TERM "$daemon"
    wait "$daemon"
}

# Of the server itself there are more; they are counted by its own process.
names_exist() {
    local name
    sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$WORK/serve.metrics" "$WORK/daemon.metrics" | sort -u >"$WORK/there"
    sed -n 's/.*"\(tracectl_serve_[a-z_]*\)".*/\1/p' "$ROOT"/cli/serve/*.c | sort -u >>"$WORK/there"
    grep -ohE 'tracectl_[a-z_]+' "$EXAMPLES/prometheus-alerts.yml" "$EXAMPLES/grafana-dashboard.json" | sort -u >"$WORK/wanted"
    (($(wc -l <"$WORK/wanted") > 15))
    while read -r name; do
        grep -qx "$name" "$WORK/there" || echo "no metric $name"
    done <"$WORK/wanted" | tee "$WORK/missing"
    [[ ! -s $WORK/missing ]]
}

dashboard() {
    python3 - "$EXAMPLES/grafana-dashboard.json" <<'END'
import json, sys

board = json.load(open(sys.argv[1]))
panels = board["panels"]
assert len({panel["id"] for panel in panels}) == len(panels)
cells = [(x, y) for panel in panels for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
         for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])]
assert len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24, "panels overlap"
assert all(target["expr"] for panel in panels for target in panel["targets"])
END
}

# What promtool warns of in metrics is style; "gauge" names that end in "seconds" are as they should be.
accepted_by_promtool() {
    cp "$EXAMPLES/prometheus-alerts.yml" "$E2E/alerts_test.yml" "$WORK"
    promtool check rules "$WORK/prometheus-alerts.yml"
    promtool test rules "$WORK/alerts_test.yml"
    promtool check metrics <"$WORK/serve.metrics"
    promtool check metrics <"$WORK/daemon.metrics"
}

run_case "metrics of a store" store_metrics
run_case "metrics of a daemon" daemon_metrics
run_case "what rules and dashboard ask for exists" names_exist
run_case "the dashboard is well-formed" dashboard
if command -v promtool >/dev/null; then
    run_case "promtool accepts metrics and rules, and rules fire" accepted_by_promtool
else
    echo "ok - promtool # SKIP prometheus is not installed"
fi
finish
