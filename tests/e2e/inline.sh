#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# record --backend inline: the calls are those that uprobes record, and nothing of it stays in a process.
. "$(dirname "$0")/lib.sh"
needs_capture

# The calls of a run in their order, a line for each thread; which thread has which label is not told.
calls_of() { # run's name
    q "SELECT t.label || ' ' || f.name AS line FROM events e JOIN threads t USING (thread_id)
       JOIN functions f USING (function_id) WHERE e.run_id = $(run_id "$1") AND e.kind = 'call'
       ORDER BY e.thread_id, e.seq" |
        awk '{ calls[$1] = calls[$1] " " $2 } END { for (label in calls) print calls[label] }' | sort
}

backend_of() { # run's name
    q "SELECT value FROM tags WHERE run_id = $(run_id "$1") AND key LIKE 'backend:%'"
}

no_loss() { # run's name
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id "$1")")"
}

same_as_uprobes() { # program
    local name
    name=$(basename "$1")
    record "u_$name" --returns infer -- "$1" >"$WORK/u.out"
    record "i_$name" --backend inline -- "$1" >"$WORK/i.out"
    cmp "$WORK/u.out" "$WORK/i.out"
    backend_of "i_$name" | grep '^[1-9][0-9]* functions by inline probes' >/dev/null
    no_loss "i_$name"
    calls_of "u_$name" >"$WORK/u.calls"
    calls_of "i_$name" >"$WORK/i.calls"
    (($(wc -c <"$WORK/u.calls") > 500))
    cmp "$WORK/u.calls" "$WORK/i.calls"
}

# A program that counts its own calls, some of which uprobes cannot see.
as_the_program_says() {
    record counted --backend inline -- "$PROGRAMS/threads" | sort >"$WORK/said"
    no_loss counted
    q "SELECT f.name || ' ' || count(*) AS line FROM events JOIN functions f USING (function_id)
       WHERE events.run_id = $(run_id counted) AND kind = 'call' AND f.name NOT LIKE '%@plt' AND f.name != '_start'
       GROUP BY f.name" | sort >"$WORK/recorded"
    diff "$WORK/said" "$WORK/recorded"
}

# Buffers would take a part of what a command may map at all: auto says so and does without, inline refuses.
limited_address_space() {
    local limit=(prlimit --as=2000000000)
    record limited --backend auto -- "${limit[@]}" "$PROGRAMS/threads" >/dev/null
    q "SELECT value FROM tags WHERE run_id = $(run_id limited) AND key LIKE 'backend:%/threads'" |
        grep "^the kernel's probes: its address space is limited" >/dev/null
    "${limit[@]}" "$TRACECTL" record --backend auto --dry-run -- "$PROGRAMS/threads" >"$WORK/limited.dry"
    grep 'no inline probes: its address space is limited' "$WORK/limited.dry" >/dev/null
    fails_with 3 "${limit[@]}" "$TRACECTL" record --backend inline -- "$PROGRAMS/threads"
    grep '^tracectl: cannot use inline probes: .*address space is limited' "$WORK/fails.err" >/dev/null
    same 0 "$(wc -c <"$WORK/fails.out")"
}

# Children by vfork work on their parent's memory: the calls are nevertheless their own.
children_of_python() {
    local backend
    for backend in uprobe inline; do
        record "py_$backend" --backend "$backend" --returns infer -- \
            "$1" -I -S -c 'import subprocess; [subprocess.run(["/bin/true"], check=True) for _ in range(3)]'
        no_loss "py_$backend"
        q "SELECT t.label || ' ' || f.name AS line FROM events e JOIN threads t USING (thread_id)
           JOIN functions f USING (function_id) WHERE e.kind = 'call' AND e.thread_id IN (SELECT thread_id
           FROM threads WHERE run_id = $(run_id "py_$backend") AND label NOT LIKE '0.%')
           ORDER BY e.thread_id, e.seq" >"$WORK/$backend.children"
    done
    backend_of py_inline | grep '^[1-9][0-9]* functions by inline probes' >/dev/null
    (($(wc -l <"$WORK/inline.children") > 300))
    cmp "$WORK/uprobe.children" "$WORK/inline.children"
}

# Before a recording: which function gets what, and why not an inline probe.
dry_run() {
    "$TRACECTL" --json record --dry-run --backend auto -- "$PROGRAMS/recursion" >"$WORK/plan.json"
    python3 - "$WORK/plan.json" <<'PY'
import json, sys
(image,) = json.load(open(sys.argv[1]))
inline = [probe for probe in image["plan"] if probe["backend"] == "inline"]
assert image["inline"] == len(inline) > 0
assert image["backends"].startswith(f"{len(inline)} functions by inline probes, ")
assert all(probe.get("not_inline") for probe in image["plan"] if probe["backend"] != "inline")
assert "main" in {probe["function"] for probe in inline}
PY
    "$TRACECTL" -q record --dry-run --backend auto -- "$PROGRAMS/static_hello" | grep 'no inline probes: a static program' >/dev/null
    "$TRACECTL" -q record --dry-run --backend auto --returns sites -- "$PROGRAMS/million" |
        grep 'no inline probes: --returns probe or sites' >/dev/null
}

# auto leaves to the kernel's probes what cannot have others, and says why; inline insists.
options_that_rule_it_out() {
    local status=0
    record sites --backend auto --returns sites -- "$PROGRAMS/million" 10 >/dev/null
    backend_of sites | grep "^the kernel's probes: --returns probe or sites" >/dev/null
    "$TRACECTL" record --backend inline --returns probe -- "$PROGRAMS/million" 10 2>"$WORK/err" || status=$?
    same 2 "$status"
    grep -q 'cannot be used with --returns probe' "$WORK/err"
}

# With inline probes each call has its time, in the order of the calls, within those of the recording and of the kernel's
# probes.
every_call_has_its_time() {
    local id plain before after
    before=$(date +%s%N)
    record timed --backend inline --time full -- "$PROGRAMS/million" 20000 >/dev/null
    after=$(date +%s%N)
    id=$(run_id timed)
    backend_of timed | grep '^[0-9]* functions by inline probes' >/dev/null
    record plain --backend inline -- "$PROGRAMS/million" 20000 >/dev/null
    plain=$(run_id plain)
    same 0 "$(q "SELECT count(*) FROM (SELECT seq, kind, function_id, depth FROM events WHERE run_id = $id
        EXCEPT SELECT seq, kind, function_id, depth FROM events WHERE run_id = $plain)")"
    same 0 "$(q "SELECT sum(kind = 'call' AND ns_error > 0) FROM events WHERE run_id = $id")"
    same 0 "$(q "SELECT count(*) FROM (SELECT ns < lag(ns) OVER (ORDER BY seq) AS back FROM events
        WHERE run_id = $id) WHERE back")"
    same 1 "$(q "SELECT min(ns) > $before AND max(ns) < $after FROM events WHERE run_id = $id")"
    same 1 "$(q "SELECT count(DISTINCT ns) > 19000 FROM events WHERE run_id = $id AND kind = 'call'")"
}

# More calls than there is room for are counted, to the last one.
losses_are_counted() {
    local id
    record crowded --backend inline --when-behind lose --ring-size 32K -- "$PROGRAMS/million" 300000 >/dev/null
    id=$(run_id crowded)
    record roomy --backend inline -- "$PROGRAMS/million" 300000 >/dev/null
    no_loss roomy
    (($(q "SELECT sum(calls) AS n FROM losses WHERE run_id = $id") > 0))
    same "$(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id roomy) AND kind = 'call'")" \
        "$(q "SELECT (SELECT count(*) FROM events WHERE run_id = $id AND kind = 'call') +
              (SELECT sum(calls) FROM losses WHERE run_id = $id) AS n")"
}

# Which calls are open when a recording ends is read off the stacks: threads that sleep have the same answer.
open_at_the_end() {
    local backend both
    mkfifo "$WORK/held" # the program ends with its standard input, which is when the recordings are over
    exec 9<>"$WORK/held"
    for backend in uprobe inline; do
        "$TRACECTL" -q record -n "open_$backend" --backend "$backend" --duration 1 -- \
            "$PROGRAMS/blocked" <"$WORK/held" >/dev/null 9>&-
    done
    exec 9>&-
    both=$(q "WITH open AS (SELECT t.run_id, t.label, group_concat(f.name || ' ' || c.state) AS calls FROM calls c
                  JOIN threads t USING (thread_id) JOIN functions f USING (function_id)
                  WHERE c.state <> 'returned' AND t.returns = 'settled' GROUP BY t.thread_id)
              SELECT count(*) || ' ' || sum(u.calls = i.calls) AS line FROM open u JOIN open i USING (label)
              WHERE u.run_id = $(run_id open_uprobe) AND i.run_id = $(run_id open_inline)")
    ((${both% *} >= 10))
    same "${both% *}" "${both#* }"
}

start_busy() {
    spawn "$PROGRAMS/busy" "$@" >"$WORK/busy.out"
    wait_until 10 grep -q beat "$WORK/busy.out"
}

end_busy() { # pid
    kill -TERM "$1"
    wait "$1" || fail "busy ended with status $?"
    grep -q '^unharmed' "$WORK/busy.out"
}

# Pages of code that the process has of its own, in KiB.
copied_code() { # pid
    awk -v exe="$(readlink "/proc/$1/exe")" '/^[0-9a-f]+-/ { ours = $2 ~ /x/ && $6 == exe }
        ours && $1 == "Anonymous:" { sum += $2 } END { print sum + 0 }' "/proc/$1/smaps"
}

no_copied_code() { # pid
    (($(copied_code "$1") == 0))
}

on_a_running_process() {
    local pid round
    start_busy 20000 3
    pid=$spawned
    same 0 "$(copied_code "$pid")"
    for round in 1 2 3; do
        record "running_$round" --backend inline -p "$pid" --budget none --duration 0.2
        text_is_clean "$pid"
        wait_until 15 no_copied_code "$pid"
        backend_of "running_$round" | grep 'by inline probes' >/dev/null
        # Three calls a turn, one inside the other and one behind it.
        same "both plus_one plus_two" "$(q "SELECT DISTINCT f.name FROM events JOIN functions f USING (function_id)
            WHERE run_id = $(run_id "running_$round") AND f.name NOT LIKE '%@plt' AND f.name != 'beat'
            ORDER BY 1" | paste -sd ' ')"
    done
    end_busy "$pid"
}

recorder_killed() {
    local pid recorder
    start_busy 1000
    pid=$spawned
    spawn "$TRACECTL" -q record --backend inline -n killed -p "$pid" --budget none
    recorder=$spawned
    wait_until 10 is_probed "$pid"
    (($(copied_code "$pid") > 0))
    kill -KILL "$recorder"
    text_is_clean "$pid"
    wait_until 15 no_copied_code "$pid"
    record after_killed --backend inline -p "$pid" --budget none --duration 0.2
    text_is_clean "$pid"
    (($(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id after_killed)") > 100))
    end_busy "$pid"
}

# What the program had recorded when it was killed is there.
target_killed() {
    local recorder pid
    spawn "$TRACECTL" -q record --backend inline -n shot -- "$PROGRAMS/busy" 1000 >"$WORK/busy.out"
    recorder=$spawned
    wait_until 10 grep -q beat "$WORK/busy.out"
    sleep 0.3
    pid=$(pgrep -P "$recorder" busy)
    kill -KILL "$pid"
    wait "$recorder"
    no_loss shot
    same 137 "$(q "SELECT exit_status FROM runs WHERE name = 'shot'")"
    (($(q "SELECT count(*) AS n FROM events WHERE run_id = $(run_id shot)") > 200))
}

# Children that are born while their parent is given its probes have theirs, too.
born_meanwhile() { # budget
    local name=born_$1
    spawn "$PROGRAMS/nursery" 300 >"$WORK/nursery.out"
    sleep 0.2
    record "$name" --backend inline -p "$spawned" --budget "$1" --duration 4
    kill -KILL "$spawned"
    grep 'all there' "$WORK/nursery.out" >/dev/null
    same 301 "$(q "SELECT count(DISTINCT t.process_id) AS n FROM events e JOIN threads t USING (thread_id)
                   JOIN functions f USING (function_id)
                   WHERE e.run_id = $(run_id "$name") AND e.kind = 'call' AND f.name = 'work'")"
}

for program in recursion_nonpie signals callbacks longjmp contexts exceptions tail_calls forks; do
    run_case "calls of $program are those that uprobes record" same_as_uprobes "$PROGRAMS/$program"
done
run_case "a program's own counts" as_the_program_says
if [ -x /usr/bin/python3 ]; then
    run_case "the calls of python3's children by vfork" children_of_python /usr/bin/python3
fi
run_case "--dry-run" dry_run
run_case "options that rule out inline probes" options_that_rule_it_out
run_case "a limited address space rules inline probes out" limited_address_space
run_case "the time of every call" every_call_has_its_time
run_case "losses are counted to the last call" losses_are_counted
run_case "calls that are open at the end" open_at_the_end
run_case "a running process, three times, and its code is as before" on_a_running_process
run_case "children that are born meanwhile" born_meanwhile none
run_case "children that are born meanwhile, with a budget" born_meanwhile 5
run_case "a killed recorder leaves nothing behind" recorder_killed
run_case "a killed target's calls are kept" target_killed
finish
