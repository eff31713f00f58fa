#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Messages of programs that talk over UDP and TCP, on one host and in two network namespaces: each receive comes after
# its send, and both ends agree about the positions, also of bytes that are received together with the end of the
# stream.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_capture

NET=$PROGRAMS/sync_net
ONE=tracectl-$$-a
OTHER=tracectl-$$-b

remove_namespaces() {
    ip netns del "$ONE" 2>/dev/null || true
    ip netns del "$OTHER" 2>/dev/null || true
}

# The edges between the processes, in both directions, and to whom the sizes of the datagrams belong.
edges_agree() { # run
    local run
    run=$(run_id "$1")
    same '0' "$(q "SELECT count(*) FROM sync_events WHERE run_id = $run AND kind = 'lost'")"
    # From who asks: three datagrams and the bytes over TCP; back to him: three datagrams.
    same '3
4' "$(q "SELECT count(*) FROM hb_edges WHERE run_id = $run AND kind = 'message' AND from_thread <> to_thread
        GROUP BY to_thread ORDER BY 1")"
    # The send and the receive of TCP say the same position.
    same 1 "$(q "WITH ends AS (SELECT e.kind, e.other, e.result FROM sync_events e JOIN sync_channels c
        ON c.run_id = e.run_id AND c.channel = e.object AND c.kind = 2 WHERE e.run_id = $run AND phase = 'end'
        AND e.kind IN ('send', 'receive') AND e.result > 0) SELECT count(DISTINCT kind) = 2 AND count(*) = 2
        AND min(other) = max(other) AND min(result) = 10 AND max(result) = 10 FROM ends")"
    # Datagrams: each size once sent and once received, in both directions.
    same '20,21,22,30,31,32' "$(q "SELECT group_concat(result) FROM (SELECT e.result, count(*) AS n FROM sync_events e
        JOIN sync_channels c ON c.run_id = e.run_id AND c.channel = e.object AND c.kind = 3 WHERE e.run_id = $run
        AND phase = 'end' AND e.kind IN ('send', 'receive') GROUP BY 1 HAVING n = 2 ORDER BY 1)")"
}

on_one_host() {
    record host --sync -- sh -c "'$NET' serve 127.0.0.1 47811 & '$NET' ask 127.0.0.1 47811 && wait"
    edges_agree host
}

in_namespaces() {
    ip netns add "$ONE"
    ip netns add "$OTHER"
    ip -n "$ONE" link add va type veth peer name vb netns "$OTHER"
    ip -n "$ONE" addr add 10.99.0.1/24 dev va
    ip -n "$OTHER" addr add 10.99.0.2/24 dev vb
    ip -n "$ONE" link set va up
    ip -n "$OTHER" link set vb up
    record spaces --sync -- sh -c "ip netns exec '$ONE' '$NET' serve 10.99.0.1 47811 &
        ip netns exec '$OTHER' '$NET' ask 10.99.0.1 47811 && wait"
    edges_agree spaces
    same 1 "$(q "SELECT count(DISTINCT net) = 2 FROM sync_channels WHERE run_id = $(run_id spaces) AND kind IN (2, 3)")"
}

# The two programs recorded by themselves, at the same time: as parts of one test the messages have their senders.
in_two_runs() {
    spawn "$TRACECTL" -q record -n server --sync -- "$NET" serve 127.0.0.1 47812
    local server=$spawned run
    record client --sync -- "$NET" ask 127.0.0.1 47812
    wait "$server"
    "$TRACECTL" cascade --json client --sink main >"$WORK/alone.json" || true
    "$TRACECTL" cascade --json client+server --sink main >"$WORK/joined.json" || true
    same 3 "$(json_get runs.0.unmatched_messages <"$WORK/alone.json")"
    same 0 "$(json_get runs.0.unmatched_messages <"$WORK/joined.json")"
    same "[$(run_id client),$(run_id server)]" "$(json_get runs.0.parts <"$WORK/joined.json" | tr -d ' \n')"
    "$TRACECTL" -q record -d "$WORK/other.db" -n elsewhere --sync -- "$PROGRAMS/sync_counts" 1 >/dev/null
    fails_with 3 "$TRACECTL" cascade "client+$WORK/other.db:elsewhere" --sink main
}

run_case "datagrams and bytes between two programs" on_one_host
run_case "the same of programs that were recorded by themselves" in_two_runs
if ip netns add "$ONE" 2>/dev/null; then
    remove_namespaces
    trap 'remove_namespaces; cleanup' EXIT
    run_case "the same between two network namespaces" in_namespaces
else
    echo "ok - the same between two network namespaces # SKIP ip netns add does not work here"
fi
finish
