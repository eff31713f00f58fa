#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `record --sync` keeps of a program that counts its own locking and sending: all of it, no more and no less, also
# of a static program, in C++, of processes that already run; that both ends of a connection agree byte by byte; what is
# lost is said; a recorder that dies leaves nothing behind.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_capture

cc -O1 -g -pthread -static -o "$WORK/static" "$ROOT/tests/programs/sync_counts.c"

# The lines of the program's own counts are those of the run.
counts_agree() { # run, file with what the program has printed
    grep -q '|' "$2"
    same "$(grep '|' "$2" | sort)" "$(q "SELECT line FROM (SELECT object || '|' || kind || '|' || phase || '|' || count(*)
        AS line FROM sync_events WHERE run_id = $1 GROUP BY object, kind, phase)" | grep -Fx -f <(grep '|' "$2") | sort)"
    same 0 "$(q "SELECT count(*) FROM sync_events WHERE run_id = $1 AND kind = 'lost'")"
    same 0 "$(q "SELECT count(*) FROM losses WHERE run_id = $1")"
}

# What was declared; the handler ends by a jump into the sink.
declared_agree() { # run, file
    local beats events
    beats=$(sed -n 's/^beats //p' "$2")
    events=$(sed -n 's/^events //p' "$2")
    same "at $events|begin $beats|begin $beats|end $beats|end $beats" "$(q "SELECT group_concat(line, '|') FROM
        (SELECT phase || ' ' || count(*) AS line FROM sync_events WHERE run_id = $1
        AND kind IN ('sink', 'handler', 'enqueue') GROUP BY kind, phase ORDER BY line)")"
    same 150 "$(q "SELECT count(DISTINCT object) * 3 FROM sync_events WHERE run_id = $1 AND kind = 'enqueue'
        AND object BETWEEN 100 AND 149 AND other = 3")"
}

# Both ends of each connection have counted the same bytes to the same positions.
ends_agree() { # run
    local ends="SELECT c.kind, c.local, c.remote, e.kind AS what, min(other) AS first, max(other + result) AS behind,
        sum(result) AS bytes FROM sync_events e JOIN sync_channels c ON c.run_id = e.run_id AND c.channel = e.object
        WHERE e.run_id = $1 AND phase = 'end' AND result > 0 AND e.kind IN ('send', 'receive')
        GROUP BY c.channel, e.kind"
    same '2|15000|250000' "$(q "WITH ends AS ($ends) SELECT count(*), min(s.bytes), max(s.bytes) FROM ends s JOIN ends r
        ON s.local = r.remote AND s.remote = r.local AND s.what = 'send' AND r.what = 'receive'
        WHERE s.kind = 2 AND s.first = r.first AND s.behind = r.behind AND s.bytes = r.bytes
        AND s.behind - s.first = s.bytes")"
    same '4|0|70
5|0|900' "$(q "WITH ends AS ($ends) SELECT s.kind, s.first, s.bytes FROM ends s JOIN ends r
        ON s.local = r.remote AND s.remote = r.local AND s.what = 'send' AND r.what = 'receive'
        WHERE s.kind IN (4, 5) AND s.first = r.first AND s.behind = r.behind AND s.bytes = r.bytes ORDER BY s.kind")"
}

# Threads and processes: who made whom, and who waited for whom.
lives_agree() { # run
    same '3|3|3|1|1|1' "$(q "SELECT sum(kind = 'thread create'), sum(kind = 'thread join' AND phase = 'end'
        AND result = 0 AND other IN (1, 2, 3)), sum(kind = 'thread end' AND label <> '0.0'), sum(kind = 'fork'),
        sum(kind = 'wait' AND phase = 'end' AND result > 0), sum(kind = 'process exit' AND result = 0)
        FROM sync_events WHERE run_id = $1 AND label LIKE '0.%'")"
    same 1 "$(q "SELECT count(*) FROM sync_events f JOIN processes p ON p.pid = f.other AND p.run_id = f.run_id
        WHERE f.run_id = $1 AND f.kind = 'fork'")"
    # Results: a trylock that succeeds and one that does not, and locks that time out.
    same '1|1|3' "$(q "SELECT sum(kind = 'mutex trylock' AND result = 0), sum(kind = 'mutex trylock' AND result = 16),
        sum(kind = 'mutex timedlock' AND result = 110) FROM sync_events WHERE run_id = $1 AND phase = 'end'
        AND label LIKE '0.%'")"
}

# The events stand where the thread's calls are: each beginning of a sink is beside the call of it.
positions_fit() { # run
    local thread
    thread=$(q "SELECT thread_id FROM threads WHERE run_id = $1 AND label = '0.1'")
    same '50|50' "$(q "WITH beats AS MATERIALIZED (SELECT seq FROM events JOIN functions USING (function_id)
        WHERE thread_id = $thread AND kind = 'call' AND name = 'heartbeat'),
        sinks AS MATERIALIZED (SELECT position FROM sync_events WHERE run_id = $1 AND label = '0.1' AND kind = 'sink'
        AND phase = 'begin')
        SELECT count(*), sum(position IN beats OR position - 1 IN beats) FROM sinks")"
    same 'work' "$(q "SELECT DISTINCT f.name FROM sync_events s JOIN call_sites c USING (site_id)
        JOIN functions f USING (function_id) WHERE s.run_id = $1 AND s.kind = 'barrier wait' AND s.phase = 'begin'")"
}

counted() { # name, program
    record "$1" --sync --sink heartbeat --handler handle_event --enqueue put_event:ARG2 -- "$2" >"$WORK/$1.printed"
    counts_agree "$(run_id "$1")" "$WORK/$1.printed"
    declared_agree "$(run_id "$1")" "$WORK/$1.printed"
    ends_agree "$(run_id "$1")"
    lives_agree "$(run_id "$1")"
    positions_fit "$(run_id "$1")"
    "$TRACECTL" -q verify
}

attached() {
    spawn "$PROGRAMS/sync_counts" 20 60
    local run target=$spawned
    record attached --sync -p "$target" --budget none --duration 1
    lives "$target"
    kill -KILL "$target"
    run=$(run_id attached)
    same 0 "$(q "SELECT count(*) FROM losses WHERE run_id = $run")"
    # Every lock that was taken in between was given back, but for those under way at either end.
    same 1 "$(q "SELECT sum(kind = 'spin lock') > 100 AND abs(sum(kind = 'spin lock') - sum(kind = 'spin unlock')) <= 3
        AND abs(sum(kind = 'sem wait' AND phase = 'begin') - sum(kind = 'sem wait' AND phase = 'end')) <= 6
        FROM sync_events WHERE run_id = $run")"
    same 0 "$(q "SELECT from_start FROM sync_processes WHERE run_id = $run LIMIT 1")"
}

loses() {
    record loses --sync --ring-size 4096 -- "$PROGRAMS/sync_counts" 3000 >/dev/null
    local run lost
    run=$(run_id loses)
    lost=$(q "SELECT sum(result) FROM sync_events WHERE run_id = $run AND kind = 'lost'")
    ((lost > 0)) || fail "nothing was lost through a ring of 4096 bytes"
    same "$lost" "$(q "SELECT sum(count) FROM losses WHERE run_id = $run AND cause = 'synchronisation events: ring full'")"
}

committed() { # run's name
    (($(q "SELECT count(*) > 100 FROM sync_events WHERE run_id = $(run_id "$1")") == 1))
}

killed() {
    spawn "$PROGRAMS/sync_counts" 20 60
    local target=$spawned
    spawn "$TRACECTL" -q record -n killed --sync --flush-interval 0.2 -p "$target" --budget none
    local recorder=$spawned
    wait_until 30 committed killed
    kill -KILL "$recorder"
    wait "$recorder" || true
    lives "$target"
    text_is_clean "$target"
    kill -KILL "$target"
    "$TRACECTL" -q recover
    "$TRACECTL" -q verify
    committed killed
    same 1 "$(q "SELECT count(*) FROM losses WHERE run_id = $(run_id killed) AND cause = 'unfinished'")"
}

run_case "a program's locks, messages and threads are all there" counted dynamic "$PROGRAMS/sync_counts"
run_case "a static program's" counted static "$WORK/static"
run_case "a process that already runs" attached
run_case "the format is what its document says" process_events_agree "$TRACECTL_DB" 1000
run_case "what is lost is counted and marked" loses
run_case "a recorder that is killed" killed
finish
