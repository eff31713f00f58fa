#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Exports are opened by their consumers, or read as strictly as these do, and hold what `query` tells.
. "$(dirname "$0")/lib.sh"
needs_capture

mkdir "$WORK/odd" "$WORK/small" "$WORK/large"
"$E2E/u16" make "$WORK/odd" 0.0 'operator""_x(char; int)' '"quoted\back", <t>' - - 'line {} \\n' '50*(' leaf - ')' 'never back'
"$E2E/u16" make "$WORK/odd" 1.0 'émile' 'leaf' - -
"$E2E/u16" random "$WORK/small" 0.0 100000 5
"$E2E/u16" random "$WORK/large" 0.0 2000000 5
"$TRACECTL" -q import --format u16 "$WORK/odd" -n odd

recordings() {
    record threads -- "$PROGRAMS/threads"
    record signals --call-sites -- "$PROGRAMS/signals"
    record full --time full -- "$PROGRAMS/callbacks"
    record deep -- "$PROGRAMS/recursion"
    record bare --no-returns -- "$PROGRAMS/signals"
    record ranks --filter mpi -- mpiexec -n 2 "$PROGRAMS/odd_even_sort" normal
} >/dev/null

# What export_check must say of a run.
wanted() { # run
    cat "$WORK/wanted.$1"
}

# That, by SQL.
ask_wanted() { # run
    local id title="t.label || CASE t.name WHEN '' THEN '' ELSE ' ' || t.name END"
    id=$(run_id "$1")
    q "SELECT $title || ' call ' || coalesce(f.demangled, f.name) || ' ' || count(*) AS line FROM calls c
       JOIN threads t USING (thread_id) JOIN functions f USING (function_id) WHERE c.run_id = $id
       GROUP BY t.thread_id, coalesce(f.demangled, f.name)"
    q "SELECT $title || ' return ' || count(*) AS line FROM events e JOIN threads t USING (thread_id)
       WHERE e.run_id = $id AND e.kind = 'return' GROUP BY t.thread_id"
    q "SELECT $title || ' unreturned ' || o.name || ' ' || o.state AS line FROM open_calls o
       JOIN threads t USING (thread_id) WHERE o.run_id = $id"
    q "SELECT $title || ' lost ' || coalesce(l.count, 'unknown') || ' ' || l.cause AS line FROM losses l
       JOIN threads t USING (thread_id) WHERE l.run_id = $id AND l.seq IS NOT NULL"
    q "SELECT 'gap [lost] ' || cause AS line FROM losses WHERE run_id = $id AND seq IS NULL"
    q "SELECT 'gap [not observed] ' || coalesce(f.demangled, f.name) AS line FROM blind b
       JOIN functions f USING (function_id) WHERE b.run_id = $id"
}

export_run() { # run, format, further arguments...
    local run=$1 format=$2
    shift 2
    rm -rf "$WORK/out.$format"
    "$TRACECTL" -q export "$run" "$@" --format "$format" -o "$WORK/out.$format"
}

summary_of() { # format; of what export_run made
    local file=$WORK/out.$1
    case $1 in
    perfetto)
        protoc --proto_path="$E2E" --decode=Trace perfetto.proto <"$file" >"$file.txt"
        file=$file.txt
        ;;
    otf2)
        otf2-print -Werror -A "$file/traces.otf2" >"$file.txt"
        file=$file.txt
        ;;
    esac
    "$E2E/export_check" "$1" "$file"
}

# Whole, for formats that have all of it.
holds() { # format, run
    export_run "$2" "$1"
    diff <(wanted "$2" | sort) <(summary_of "$1" | sort)
}

# otf2-print shows no markers, and a call of a thread without returns has a leave at once.
otf2_holds() { # run
    export_run "$1" otf2
    diff <(wanted "$1" | grep -v '^gap ' | sort) <(summary_of otf2 | sort)
    otf2-print -I "$WORK/out.otf2/traces.otf2" >"$WORK/info.txt"
    same "$(wanted "$1" | grep -c '^gap ' || true)" "$(awk '/TRACECTL::GAPS/ { found = 1 }
        found && /Property value/ { print $3; exit }' "$WORK/info.txt")"
}

# ';' parts frames, so it is ':' in names; the losses of a thread are one number.
folded_holds() { # run
    export_run "$1" folded
    diff <(wanted "$1" | grep -vE '^[^ ]+( .*)? (return [0-9]+$|unreturned )' | tr ';' ':' | sort) \
        <(summary_of folded | sort)
}

# A profile has no gaps; its calls are those of folded stacks.
speedscope_holds() { # run
    export_run "$1" speedscope
    diff <(wanted "$1" | grep -vE '^gap |^[^ ]+( .*)? (return [0-9]+$|unreturned )' | sort) <(summary_of speedscope | sort)
}

# Calls of each function on all threads, "COUNT NAME".
calls_by_function() { # run
    q "SELECT sum(c.calls) || ' ' || coalesce(f.demangled, f.name) AS line FROM call_counts c JOIN functions f USING (function_id)
       WHERE c.run_id = $(run_id "$1") GROUP BY coalesce(f.demangled, f.name)" | sort
}

# As callgrind_annotate adds them up; what it calls a file may be "???".
callgrind_holds() { # run
    export_run "$1" callgrind
    callgrind_annotate --auto=no --threshold=100 "$WORK/out.callgrind" >"$WORK/annotated"
    diff <(calls_by_function "$1") \
        <(sed -nE 's/^ *([0-9,]+) \([^)]*\)  [^ ]*:([^ ].*)$/\1 \2/p' "$WORK/annotated" | tr -d , | grep -v '^0 ' | sort)
}

# As pprof of Go adds them up.
pprof_holds() { # run
    local pprof
    pprof=$(compgen -G '/usr/lib/go-1.2*/pkg/tool/linux_*/pprof' | tail -n 1)
    export_run "$1" pprof
    "$pprof" -symbolize=none -top -nodecount=100000 -nodefraction=0 -edgefraction=0 "$WORK/out.pprof" >"$WORK/top"
    diff <(calls_by_function "$1") <(awk 'listed && $1 > 0 { print $1, $6 } $1 == "flat" { listed = 1 }' "$WORK/top" | sort)
    same "$(q "SELECT count(DISTINCT t.label) AS n FROM call_counts c JOIN threads t USING (thread_id)
        WHERE c.run_id = $(run_id "$1")")" \
        "$("$pprof" -symbolize=none -tags "$WORK/out.pprof" 2>/dev/null | grep -cE '^ +[0-9.]+ +\( *[0-9.]+%\):')"
}

# "NAME: COUNT calls, PERCENT" of each frame is what folded stacks add up to, and so are the widths.
flame_graph_holds() { # run
    export_run "$1" flamegraph
    export_run "$1" folded
    xmllint --noout "$WORK/out.flamegraph"
    python3 - "$WORK/out.flamegraph" "$WORK/out.folded" <<'END'
import collections, re, sys, xml.etree.ElementTree as tree

wanted, total = collections.Counter(), 0
for line in open(sys.argv[2], encoding="utf-8"):
    stack, count = line.rstrip("\n").rsplit(" ", 1)
    frames = stack.split(";")
    if frames[0] in ("[not observed]", "[lost]"):
        continue
    total += int(count)
    for depth in range(2, len(frames) + 1):
        wanted["all", *frames[1:depth]] += int(count)
wanted["all",] = total

svg = "{http://www.w3.org/2000/svg}"
got, path = {}, []
height = None
for frame in tree.parse(sys.argv[1]).iter(svg + "g"):
    rect, title = frame.find(svg + "rect"), frame.find(svg + "title").text
    name, count = re.fullmatch(r"(.*): ([0-9,]+) calls, [0-9.]+ %", title, re.S).groups()
    y, width = float(rect.get("y")), float(rect.get("width"))
    height = height or y
    depth = round((height - y) / 17)
    path[depth:] = [name.replace(";", ":")]
    got[tuple(path)] = int(count.replace(",", ""))
    assert abs(width - 1180 * got[tuple(path)] / total) < 0.02, (name, width)
narrow = {p: n for p, n in wanted.items() if 1180 * n / total < 0.1}
assert got == {p: n for p, n in wanted.items() if p not in narrow}, (got, wanted)
END
}

csv_holds() { # run
    export_run "$1" csv
    rm -f "$WORK/csv.db"
    sqlite3 "$WORK/csv.db" '.mode csv' ".import $WORK/out.csv e" 2>"$WORK/import.err"
    cat "$WORK/import.err"
    [[ ! -s $WORK/import.err ]]
    diff <(q "SELECT t.label, e.seq, e.kind, e.depth, coalesce(f.demangled, f.name) AS name, e.ns, e.ns_error,
              CASE e.kind WHEN 'call' THEN (SELECT state FROM calls c WHERE c.thread_id = e.thread_id AND c.seq = e.seq)
              END AS state, e.line, CASE e.kind WHEN 'call' THEN e.assumed END AS assumed FROM (SELECT e.*, s.line FROM events e LEFT JOIN call_sites s ON s.site_id = e.call_site
              WHERE e.run_id = $(run_id "$1")) e JOIN threads t USING (thread_id) LEFT JOIN functions f
              ON f.function_id = e.function_id ORDER BY t.thread_id, e.seq" | sort) \
        <(sqlite3 -separator '|' "$WORK/csv.db" "SELECT thread, seq, kind, depth, function, ns, ns_error, state, line, assumed
              FROM e WHERE seq <> ''" | sort)
    diff <(wanted "$1" | grep -c '^gap ' || true) <(sqlite3 "$WORK/csv.db" "SELECT count(*) FROM e WHERE seq = ''")
}

dot_holds() { # run
    export_run "$1" dot
    dot -Tsvg "$WORK/out.dot" >"$WORK/out.svg"
    grep -q '</svg>' "$WORK/out.svg"
    same "$(q "SELECT sum(calls) AS n FROM call_graph WHERE run_id = $(run_id "$1")")" \
        "$(sed -nE 's/^ +[a-z0-9]+ -> .*\[label="([0-9]+)"\];$/\1/p' "$WORK/out.dot" | awk '{ n += $1 } END { print n }')"
    same "$(q "SELECT count(*) AS n FROM call_graph WHERE run_id = $(run_id "$1")")" "$(grep -c -e ' -> ' "$WORK/out.dot")"
}

calls_of() { # line of a summary per call, summed up
    awk '$0 ~ / call / { n += $NF } END { print n + 0 }'
}

# Paths deeper than a thousand are one frame: their calls are still counted.
deep_stacks() {
    export_run deep folded
    same "$(wanted deep | calls_of)" "$(summary_of folded | calls_of)"
    grep -q ';\[deeper\] ' "$WORK/out.folded"
    (($(awk '{ print gsub(/;/, "") }' "$WORK/out.folded" | sort -n | tail -n 1) <= 1001))
}

# All time of a thread from its first event to its last is in some frame.
folded_time() {
    export_run full folded --weight time
    export_run full chrome
    same "$(python3 -c '
import json, sys
times = [e["ts"] for e in json.load(open(sys.argv[1]), parse_float=str)["traceEvents"] if "ts" in e and e.get("s") != "g"]
times = [int(t.replace(".", "")) for t in times]
print(max(times) - min(times))' "$WORK/out.chrome")" \
        "$(grep -v '^\[' "$WORK/out.folded" | awk '{ n += $NF } END { print n }')"
}

call_sites_are_there() {
    export_run signals chrome
    export_run signals perfetto
    summary_of perfetto >/dev/null
    grep -q '"file":".*signals.c","line":[1-9]' "$WORK/out.chrome"
    grep -q 'file: ".*signals.c"' "$WORK/out.perfetto.txt"
    export_run signals otf2
    summary_of otf2 >/dev/null
    grep -q 'signals.c' "$WORK/out.otf2.txt"
}

ranks_are_named() {
    export_run ranks chrome
    grep -q '"name":"rank 1 odd_even_sort (pid' "$WORK/out.chrome"
    export_run ranks perfetto
    grep -aq 'rank 0 odd_even_sort' "$WORK/out.perfetto"
}

# Begun in the middle, calls and returns are still pairs.
part_of_a_thread() {
    local thread=0.0 first=100 last=300
    export_run signals json "$thread" --seq "$first..$last"
    same "$((last - first + 1))" "$(python3 -c 'import json, sys
print(len(json.load(open(sys.argv[1]))["threads"][0]["events"]))' "$WORK/out.json")"
    for format in chrome perfetto otf2; do
        export_run signals "$format" "$thread" --seq "$first..$last"
        summary_of "$format" >"$WORK/summary"
    done
    export_run signals folded "$thread" --seq "$first..$last"
    same "$(q "SELECT count(*) AS n FROM events e JOIN threads t USING (thread_id) WHERE e.run_id = $(run_id signals)
        AND t.label = '$thread' AND e.kind = 'call' AND e.seq BETWEEN $first AND $last")" \
        "$(summary_of folded | calls_of)"
}

seconds() { # nanoseconds
    printf '%d.%09d' $(($1 / 1000000000)) $(($1 % 1000000000))
}

# Two halves of the time have all events between them; a time of which there is none has none.
part_of_the_time() {
    local ends half all
    ends=$(q "SELECT max(ns) - (SELECT started_ns FROM runs r WHERE r.run_id = $(run_id full)) AS n FROM events
              WHERE run_id = $(run_id full)")
    half=$((ends * 5 / 9))
    all=$("$TRACECTL" --json export full -f csv -o "$WORK/out.csv" | json_get events)
    same "$all" "$(($("$TRACECTL" --json export full -f csv -o "$WORK/a.csv" --to "$(seconds "$half")" | json_get events) +
        $("$TRACECTL" --json export full -f csv -o "$WORK/b.csv" --from "$(seconds $((half + 1)))" | json_get events)))"
    same 0 "$("$TRACECTL" --json export full -f csv -o "$WORK/c.csv" --from 100000 | json_get events)"
}

flat() { # format
    local small large
    small=$("$E2E/peak_memory" "$TRACECTL" -d "$WORK/flat.db" -q export 1 -f "$1" -o "$WORK/small.$1")
    large=$("$E2E/peak_memory" "$TRACECTL" -d "$WORK/flat.db" -q export 2 -f "$1" -o "$WORK/large.$1")
    echo "$small KiB for 100,000 events, $large KiB for 2,000,000"
    rm -rf "$WORK/large.$1"
    ((large < small + 24576)) # the stacks of folded, up to their limit
}

refusals() {
    local status=0
    "$TRACECTL" export odd --format unheard 2>/dev/null || status=$?
    same 2 "$status"
    status=0
    "$TRACECTL" export odd --format otf2 2>/dev/null || status=$?
    same 2 "$status"
    mkdir -p "$WORK/taken/something"
    fails_with 3 "$TRACECTL" export odd --format otf2 -o "$WORK/taken"
    fails_with 3 "$TRACECTL" export odd --format otf2 -o "$WORK/odd/names.info/below"
    fails_with 3 "$TRACECTL" export odd --format csv -o "$WORK/no/where"
    fails_with 3 "$TRACECTL" export odd 7.7 --format csv
    fails_with 3 "$TRACECTL" export nothing --format csv
    fails_with 3 "$TRACECTL" export odd --format folded --weight time
    fails_with 3 "$TRACECTL" export odd --format csv --from 1
    fails_with 3 "$TRACECTL" export deep --format csv -o /dev/full
    status=0
    "$TRACECTL" export deep --format csv >/dev/full 2>"$WORK/full.err" || status=$?
    cat "$WORK/full.err"
    same 3 "$status"
}

# The events of a run, threads by their labels: an import may number them in another order.
events_of() { # run
    "$TRACECTL" query --csv "SELECT t.label, e.seq, e.kind,
        coalesce(f.demangled, f.name), e.depth, e.assumed, l.count, l.cause
        FROM events e JOIN threads t USING (thread_id) LEFT JOIN functions f USING (function_id)
        LEFT JOIN losses l ON l.thread_id = e.thread_id AND l.seq = e.seq AND e.kind = 'lost'
        WHERE e.run_id = $(run_id "$1") ORDER BY 1, 2"
}

chrome_comes_back() { # run
    export_run "$1" chrome
    "$TRACECTL" import --format chrome "$WORK/out.chrome" -n "$1-again"
    events_of "$1" >"$WORK/events.before"
    events_of "$1-again" >"$WORK/events.after"
    (($(wc -l <"$WORK/events.before") > 10))
    cmp "$WORK/events.before" "$WORK/events.after" || {
        diff "$WORK/events.before" "$WORK/events.after" | head -n 8
        return 1
    }
    same "$(q "SELECT group_concat(state || n) AS s FROM (SELECT state, count(*) AS n FROM calls
            WHERE run_id = $(run_id "$1") GROUP BY 1)")" \
        "$(q "SELECT group_concat(state || n) AS s FROM (SELECT state, count(*) AS n FROM calls
            WHERE run_id = $(run_id "$1-again") GROUP BY 1)")"
}

recordings
for run in odd threads signals full deep bare ranks; do
    ask_wanted "$run" >"$WORK/wanted.$run"
    run_case "chrome of $run" holds chrome "$run"
    run_case "chrome of $run comes back" chrome_comes_back "$run"
    run_case "perfetto of $run" holds perfetto "$run"
    run_case "otf2 of $run" otf2_holds "$run"
    [[ $run == deep ]] || run_case "folded of $run" folded_holds "$run"
    [[ $run == deep ]] || run_case "speedscope of $run" speedscope_holds "$run"
done
for run in odd signals bare; do
    run_case "json of $run" holds json "$run"
    run_case "csv of $run" csv_holds "$run"
    run_case "dot of $run" dot_holds "$run"
done
for run in odd threads signals; do
    run_case "flame graph of $run" flame_graph_holds "$run"
done
for run in threads full ranks; do
    run_case "callgrind of $run" callgrind_holds "$run"
    run_case "pprof of $run" pprof_holds "$run"
done
run_case "folded stacks of deep recursion" deep_stacks
run_case "folded stacks by time" folded_time
run_case "call sites are exported" call_sites_are_there
run_case "ranks have names" ranks_are_named
run_case "part of a thread" part_of_a_thread
run_case "part of the time" part_of_the_time
"$TRACECTL" -q -d "$WORK/flat.db" import --format u16 "$WORK/small"
"$TRACECTL" -q -d "$WORK/flat.db" import --format u16 "$WORK/large"
for format in chrome perfetto folded speedscope pprof callgrind otf2 csv json; do
    run_case "memory of $format is flat" flat "$format"
done
run_case "what cannot be exported is refused" refusals
finish
