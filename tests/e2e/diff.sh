#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# diff, as people and programs see it: the summary, widths, cut names, bodies of loops, pairs of threads, the picture, the
# pager. On imported traces.
. "$(dirname "$0")/lib.sh"

long='std::map<std::string,std::vector<int>>::insert(std::pair<int,int>)'
other='std::map<std::string,std::vector<int>>::insert(std::string)'

thread() { # run, thread, words
    local run=$1 name=$2 words=${*:3}
    shift 2
    # shellcheck disable=SC2086 # words are wanted
    mkdir -p "$WORK/$run" && "$E2E/u16" make "$WORK/$run" "$name" $words
}

# 0.0 lives on; 1.0 stays in its fourth receive; 2.0 gets a new call into its loop; 3.0 calls another function.
for run in normal faulty; do
    thread $run 0.0 main init - '5*( receive - send - )' finish - -
done
thread normal 1.0 main init - '5*( receive - send - )' finish - -
thread faulty 1.0 main init - '3*( receive - send - )' receive
thread normal 2.0 main init - '6*( read - parse - write - )' finish - -
thread faulty 2.0 main init - '6*( read - parse - check - write - )' finish - -
thread normal 3.0 main "$long" - finish - -
thread faulty 3.0 main "$other" - finish - -
for run in normal faulty; do
    "$TRACECTL" -q import --format u16 "$WORK/$run" -n $run
done

differs() { # output file, arguments of diff
    local out=$1 status=0
    shift
    "$TRACECTL" diff normal faulty "$@" >"$out" || status=$?
    cat "$out"
    same 1 "$status"
}

summary() {
    differs "$WORK/out"
    head -n 1 "$WORK/out" | grep -x '3 of 4 threads differ between run 1, normal .*, and run 2, faulty .*'
    grep -x 'Most changed: thread 1.0 never returned from receive.' "$WORK/out"
    grep -x 'Thread 2.0 also called check after parse.' "$WORK/out"
    grep -x 'Thread 3.0 made the same calls, of functions with other names (a guess).' "$WORK/out"
    grep -x 'Called only in the candidate run.*: check.*' "$WORK/out"
    grep -x 'Confidence: no recorded events are missing in either run.' "$WORK/out"
    # One screen.
    (($(sed '/^$/q' "$WORK/out" | wc -l) <= 20))
}

summary_json() {
    "$TRACECTL" --json diff normal faulty >"$WORK/diff.json" || true
    python3 - "$WORK/diff.json" <<'END'
import json, sys
document = json.load(open(sys.argv[1]))
summary = document["summary"]
groups = {group["threads"][0]: group for group in summary["groups"]}
assert set(groups) == {"1.0", "2.0", "3.0"}, groups
assert groups["1.0"]["kind"] == "never returned", groups["1.0"]
assert groups["1.0"]["last_common"]["function"] == "receive"
assert groups["1.0"]["normal_next"]["function"] == "send"
assert groups["1.0"]["faulty_next"] is None
assert groups["1.0"]["common_calls"] == 9  # main, init, 3 x 2, receive
assert groups["1.0"]["loop"]["iteration"] == 4
assert groups["2.0"]["kind"] == "calls added"
assert groups["3.0"]["kind"] in ("other calls", "renamed")
assert [f["function"] for f in summary["only_faulty_functions"]] == ["check"]
assert summary["doubts"]["unknown_threads"] == 0
assert summary["text"].startswith("3 of 4 threads differ")
END
}

bodies() {
    differs "$WORK/out" 2.0 --descend
    same '|L1^6L2^6' "$(grep -E '^\|' "$WORK/out" | tr -d ' ')"
    same '>check' "$(grep -E '^>' "$WORK/out" | tr -d ' ')"
    differs "$WORK/out" 2.0
    lacks -E '^>' "$WORK/out"
    "$TRACECTL" --json diff normal faulty 2.0 --descend >"$WORK/diff.json" || true
    same '{"entries":["check"],"op":"faulty"}' "$(json_get diffs.0.similar_loops.0.edits.1 <"$WORK/diff.json")"
    same '[]' "$(json_get diffs.0.same_loops <"$WORK/diff.json")"
}

hang_is_marked() {
    differs "$WORK/out" 1.0
    grep -E '^\| L[0-9] \^ 5 +L[0-9] \^ 3$' "$WORK/out"
    grep -E 'receive  <- never returned$' "$WORK/out"
}

widths() {
    local width
    for width in 40 60 100 200; do
        COLUMNS=$width differs "$WORK/out" 3.0
        # Between the heading and the legends no line is wider; different names do not look the same.
        sed -n '3,7p' "$WORK/out" | awk -v width="$width" 'length > width { print "too wide: " $0; exit 1 }'
        awk '/^\|/ { split($0, half, /  +/); if (half[1] == "| " half[2]) exit 1 }' "$WORK/out"
        # The full names are somewhere.
        grep -F "$long" "$WORK/out" >/dev/null
        grep -F "$other" "$WORK/out" >/dev/null
    done
    COLUMNS=60 differs "$WORK/out" 3.0
    grep -F '= '"$long" "$WORK/out"
}

pairs() {
    differs "$WORK/out" --pair 0.0,1.0
    grep -x 'threads 0.0 and 1.0 differ from each other in another way in the candidate run' "$WORK/out"
    grep -x 'in the baseline run 0.0 and 1.0 do the same' "$WORK/out"
    grep -E '^  0.0, candidate +1.0, candidate$' "$WORK/out"
    "$TRACECTL" --json diff normal faulty --pair 0.0,1.0 --pair 0.0,0.0 >"$WORK/diff.json" || true
    same '["0.0","1.0"]' "$(json_get pairs.0.threads <"$WORK/diff.json")"
    same true "$(json_get pairs.0.changed <"$WORK/diff.json")"
    same common "$(json_get pairs.0.normal.edits.0.op <"$WORK/diff.json")"
    same first "$(json_get pairs.0.faulty.edits.1.op <"$WORK/diff.json")"
    same false "$(json_get pairs.1.changed <"$WORK/diff.json")"
    "$TRACECTL" diff normal faulty --pair 0.0,0.0
    "$TRACECTL" diff normal normal --pair 0.0,1.0
    fails_with 3 "$TRACECTL" diff normal faulty --pair 0.0,9.9
    local status=0
    "$TRACECTL" diff normal faulty --pair 0.0 2>/dev/null || status=$?
    same 2 "$status"
}

# Each frame has the calls of both runs, and what only one run called is there.
flame_graph() {
    local normal faulty
    differs "$WORK/out" --flamegraph "$WORK/flame.svg"
    xmllint --noout "$WORK/flame.svg"
    normal=$(q "SELECT printf('%,d', sum(calls)) AS n FROM call_counts WHERE run_id = $(run_id normal)")
    faulty=$(q "SELECT printf('%,d', sum(calls)) AS n FROM call_counts WHERE run_id = $(run_id faulty)")
    grep -q "<title>all: $normal &#8594; $faulty calls</title>" "$WORK/flame.svg"
    same "$(q "SELECT count(DISTINCT coalesce(f.demangled, f.name)) AS n FROM call_counts JOIN functions f USING (function_id)")" \
        "$(sed -nE 's/^<g class="frame".* data-name="([^"]*)".*/\1/p' "$WORK/flame.svg" | grep -vx all | sort -u | wc -l)"
}

picture() {
    differs "$WORK/out" --svg "$WORK/diff.svg"
    python3 - "$WORK/diff.svg" "$long" <<'END'
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"
text = open(sys.argv[1], encoding="utf-8").read()
root = tree.fromstring(text)
width, height = float(root.get("width")), float(root.get("height"))
assert root.tag == SVG + "svg" and root.get("viewBox") == f"0 0 {width:g} {height:g}"

# Nothing from outside: neither links nor styles nor scripts.
assert not [e for e in root.iter() if e.tag in (SVG + "script", SVG + "image", SVG + "use", SVG + "style")]
assert text.count("http") == 1 and "href" not in text, "refers to something outside"

blocks = {}
for group in root.iter(SVG + "g"):
    box = group.find(SVG + "rect")
    assert 0 <= float(box.get("x")) and float(box.get("x")) + float(box.get("width")) <= width
    assert float(box.get("y")) + float(box.get("height")) <= height
    texts = [t.text for t in group.findall(SVG + "text")]
    blocks.setdefault(group.get("class"), []).append((texts[1], texts[0], box, group.find(SVG + "title").text))
names = {kind: [block[0] for block in found] for kind, found in blocks.items()}
assert "receive" in names["faulty"] and "finish" in names["normal"] and "init" in names["common"], names
# What a block is does not hang on its colour: the signs differ, and so do the borders.
signs = {kind: {block[1] for block in found} for kind, found in blocks.items()}
assert signs == {"common": {"="}, "normal": {"\u2212"}, "faulty": {"+"}}, signs
borders = {kind: {(b[2].get("stroke-dasharray"), b[2].get("stroke-width")) for b in found} for kind, found in blocks.items()}
assert len(set(map(frozenset, borders.values()))) == 3, borders
# And where it is: normal on the left, faulty on the right.
assert all(float(b[2].get("x")) < width / 2 for b in blocks["normal"])
assert all(float(b[2].get("x")) > width / 2 for b in blocks["faulty"])
# A name that is cut is there in full.
assert any(sys.argv[2] in block[3] for block in blocks["normal"]), blocks["normal"]
texts = [t.text for t in root.iter(SVG + "text")]
assert "never returned" in texts and "same loop" in texts and "similar" in texts
assert "L0 = [receive send]" in texts
END
    fails_with 3 "$TRACECTL" diff normal faulty --svg "$WORK/nowhere/diff.svg"
}

pager_and_colours() {
    # The pager gets colours, and the terminal's width.
    env -u NO_COLOR PAGER="cat >$WORK/paged" TERM=xterm "$E2E/terminal" "$TRACECTL" diff normal faulty 1.0 <<<end \
        >"$WORK/shown" || same 1 $?
    cat -v "$WORK/paged"
    grep -q $'\033\\[3[1-5]m' "$WORK/paged"
    lacks -q 'never returned' "$WORK/shown"
    # Elsewhere there is neither.
    "$TRACECTL" diff normal faulty 1.0 >"$WORK/plain" || true
    lacks -q $'\033' "$WORK/plain"
}

run_case "the summary" summary
run_case "the summary in JSON" summary_json
run_case "--descend shows what is new in a loop's body" bodies
run_case "a call that never returned is marked" hang_is_marked
run_case "columns at any width, long names cut" widths
run_case "--pair: how two threads relate" pairs
run_case "--svg" picture
run_case "--flamegraph" flame_graph
run_case "pager and colours" pager_and_colours
finish
