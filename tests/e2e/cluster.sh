#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# cluster: the tree of a run's threads, its rows, and the flat clusters. On imported traces, so that nothing has to be
# recorded.
. "$(dirname "$0")/lib.sh"

# Six threads: three call the same, two one function more, and one has only main in common with the others.
mkdir "$WORK/six" "$WORK/one"
for thread in 0.0 0.2 1.0; do
    "$E2E/u16" make "$WORK/six" "$thread" main f -  g - -
done
for thread in 0.1 1.1; do
    "$E2E/u16" make "$WORK/six" "$thread" main f -  g -  h - -
done
"$E2E/u16" make "$WORK/six" 2.0 main x -  y -  z - -
"$E2E/u16" make "$WORK/one" 0.0 main -
"$TRACECTL" -q import --format u16 "$WORK/six" -n six
"$TRACECTL" -q import --format u16 "$WORK/one" -n one

# A part of a document, on one line, numbers with nine digits.
json_text() {
    python3 -c '
import json, sys
value = json.load(sys.stdin, parse_float=lambda text: round(float(text), 9))
for key in sys.argv[1].split("."):
    value = value[int(key) if key.isdigit() else key]
print(json.dumps(value, separators=(",", ":")))' "$1"
}

# Similar are the two kinds by 3/4, and the last one to them by 1/6 and 1/7. The rows are what SciPy makes of that.
rows_are_scipys() {
    "$TRACECTL" --json cluster six --linkage single --clusters 2 >"$WORK/single.json"
    same '["0.0","0.1","0.2","1.0","1.1","2.0"]' "$(json_text threads <"$WORK/single.json")"
    same '[[0,2,0.0,2],[3,6,0.0,3],[1,4,0.0,2],[7,8,0.25,5],[5,9,0.833333333,6]]' \
        "$(json_text merges <"$WORK/single.json")"
    same '[["0.0","0.1","0.2","1.0","1.1"],["2.0"]]' "$(json_text clusters <"$WORK/single.json")"
    same single "$(json_get linkage <"$WORK/single.json")"
    same sing.noFreq "$(json_get attributes <"$WORK/single.json")"
    same '[]' "$(json_text unknown <"$WORK/single.json")"
    "$TRACECTL" --json cluster six --linkage complete >"$WORK/complete.json"
    same '[5,9,0.857142857,6]' "$(json_text merges.4 <"$WORK/complete.json")"
    same null "$(json_text clusters <"$WORK/complete.json")"
    same ward "$("$TRACECTL" --json cluster six | json_get linkage)"
}

tree_as_text() {
    diff - <("$TRACECTL" cluster six --linkage average --clusters 3) <<'TREE'
run 1: 6 threads by sing.noFreq, average linkage

0.0, 0.2, 1.0 (3) ---------------------+
                                       +------------------------------------------------+ 0.25
0.1, 1.1 (2)      ---------------------+                                                |
                                                                                        | 0.842857
2.0               ----------------------------------------------------------------------+

cluster 1 (3): 0.0, 0.2, 1.0
cluster 2 (2): 0.1, 1.1
cluster 3 (1): 2.0
TREE
    LC_ALL=C.UTF-8 "$TRACECTL" cluster six --linkage average | grep -E '^2\.0 +(─)+┘$'
}

other_objects() {
    same '[["0"],["1"],["2"]]' "$("$TRACECTL" --json cluster six --processes --clusters 3 | json_text clusters)"
    same '[0,1,0.0,2]' "$("$TRACECTL" --json cluster six --processes | json_text merges.0)"
    # With f alone, all threads but the last are equal, and it has nothing.
    same '[["0.0","0.1","0.2","1.0","1.1"],["2.0"]]' \
        "$("$TRACECTL" --json cluster six --custom '^f$' --clusters 2 | json_text clusters)"
    same '[]' "$("$TRACECTL" --json cluster one | json_text merges)"
    same '[["0.0"]]' "$("$TRACECTL" --json cluster one --clusters 1 | json_text clusters)"
    same 0.0 "$("$TRACECTL" cluster one | tail -n 1)"
}

what_cannot_be() {
    local wrong status
    fails_with 3 "$TRACECTL" cluster six --clusters 7
    fails_with 3 "$TRACECTL" cluster nonesuch
    for wrong in '--clusters 0' '--clusters 2x' '--clusters -1' '--linkage middle' one; do
        status=0
        # shellcheck disable=SC2086 # words are wanted
        "$TRACECTL" cluster six $wrong || status=$?
        same 2 "$status"
    done
}

run_case "rows are those of SciPy's linkage matrix" rows_are_scipys
run_case "the tree as text, equal threads in one line" tree_as_text
run_case "processes, filters, a single thread" other_objects
run_case "what cannot be is said" what_cannot_be
finish
