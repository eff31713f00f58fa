#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# report: pages that need nothing but themselves, parsed, and shown by a real browser. On imported traces with the shape
# of the odd/even sort of sixteen ranks.
. "$(dirname "$0")/lib.sh"

ALL=(summary facts losses ranking differences similarity clusters lattice loops glossary)
ALONE=(facts losses similarity clusters lattice loops glossary)

make_run() { # name, what rank 5 does
    local dir=$WORK/$1 rank begin='main MPI_Init - MPI_Comm_rank - sort' end='- MPI_Finalize - -'
    local even='MPI_Send - MPI_Recv -' odd='MPI_Recv - MPI_Send -' exchange
    mkdir "$dir"
    # shellcheck disable=SC2086 # words are wanted
    "$E2E/u16" make "$dir" 5.0 $begin $2
    for rank in 0 1 2 15; do
        exchange=$even
        ((rank % 2 == 0)) || exchange=$odd
        # shellcheck disable=SC2086 # words are wanted
        "$E2E/u16" make "$dir" "$rank.0" $begin "$((rank % 15 ? 16 : 8))*(" $exchange ')' $end
    done
    for rank in 3 7 9 11 13; do cp "$dir/1.0.u16" "$dir/$rank.0.u16"; done
    for rank in 4 6 8 10 12 14; do cp "$dir/2.0.u16" "$dir/$rank.0.u16"; done
    "$TRACECTL" -q import --format u16 "$dir" -n "$1"
}

# Names that would be markup, if they were not escaped, and 600 threads of which next to none are equal.
make_hostile() { # name, seed of the thread that changes
    mkdir "$WORK/hostile"
    python3 - "$WORK/hostile" "$2" <<'END'
import random, struct, sys
directory, seed = sys.argv[1:]
names = ["<script>alert('x')</script>", 'a"b&c\'d', "std::map<int, std::less<int> >::find(int const&)", "]]>", "\x01<b>"]
names += [f"function_{i}" for i in range(60)]
with open(directory + "/names.info", "w") as file:
    file.writelines(f"{i + 1} {name}\n" for i, name in enumerate(names))
for thread in range(600):
    rng = random.Random(int(seed) if thread == 77 else thread)
    ids = [rng.randrange(len(names)) + 1 for _ in range(900 if thread == 77 else 9)]
    words = [word for number in ids for word in (number, 0)]
    with open(f"{directory}/{thread // 4}.{thread % 4}.u16", "wb") as file:
        file.write(struct.pack(f"<{len(words)}H", *words))
END
    "$TRACECTL" -q import --format u16 "$WORK/hostile" -n "$1"
    rm -r "$WORK/hostile"
}

make_run normal '16*( MPI_Recv - MPI_Send - ) - MPI_Finalize - -'
make_run swapped '7*( MPI_Recv - MPI_Send - ) 9*( MPI_Send - MPI_Recv - ) - MPI_Finalize - -'
make_run stuck '7*( MPI_Recv - MPI_Send - ) MPI_Recv'
make_hostile '<i>normal</i>' 77
make_hostile '<i>faulty</i>' 1234

page() { # file, report's arguments...
    local file=$WORK/$1
    shift
    "$TRACECTL" report "$@" -o "$file"
    "$E2E/page_check" text "$file" >"$file.text"
}

comparison() {
    page swapped.html normal swapped --filter mpi
    "$E2E/page_check" page "$WORK/swapped.html" "${ALL[@]}"
    cat "$WORK/swapped.html.text"
    # Facts, losses, the summary, the first of the consensus, what of it is drawn, the loops.
    grep -x 'swapped (run 2)' "$WORK/swapped.html.text"
    grep -c '^Nothing is missing: ' "$WORK/swapped.html.text" | grep -x 2
    grep '^Most changed: thread 5.0 made the same calls in another order: ' "$WORK/swapped.html.text"
    same "▶ 5.0" "$(grep -m 1 '^▶ ' "$WORK/swapped.html.text")"
    grep -x 'L1 ran 7 times instead of 16, then L0 ran 9 times.' "$WORK/swapped.html.text"
    grep -A 1 -x 'L1' "$WORK/swapped.html.text" | grep -x 'MPI_Recv MPI_Send'
    # Equal threads share a row; 5.0 has one of its own.
    grep -x '1.0, 3.0, … (6)' "$WORK/swapped.html.text"
    grep -E '^B-score of the two trees: 0\.' "$WORK/swapped.html.text"
}

hang() {
    page stuck.html normal stuck
    "$E2E/page_check" page "$WORK/stuck.html" "${ALL[@]:0:3}" progress "${ALL[@]:3}"
    grep -x 'At the end of stuck: thread 5\.0 is in MPI_Recv\.' "$WORK/stuck.html.text"
    grep -x 'never returned' "$WORK/stuck.html.text"
}

more_normal_runs() {
    page baseline.html normal swapped --baseline normal --filter mpi
    "$E2E/page_check" page "$WORK/baseline.html" "${ALL[@]}"
    grep -x 'Baseline run 2' "$WORK/baseline.html.text"
    grep 'outside the range of the baseline runs' "$WORK/baseline.html.text"
    lacks 'Only one baseline run' "$WORK/baseline.html.text"
}

nothing_differs() {
    page same.html normal normal
    "$E2E/page_check" page "$WORK/same.html" "${ALL[@]}"
    grep '^No thread stands out' "$WORK/same.html.text"
    grep '^No thread differs' "$WORK/same.html.text"
    lacks '▶ ' "$WORK/same.html.text"
}

one_run() {
    page normal.html normal --filter mpi
    "$E2E/page_check" page "$WORK/normal.html" "${ALONE[@]}"
    lacks -E 'B-score|diffNLR|Faulty' "$WORK/normal.html.text"
    "$TRACECTL" report normal --filter mpi -o - | cmp - "$WORK/normal.html"
    same "$WORK/normal.html" "$("$TRACECTL" --json report normal -o "$WORK/normal.html" | json_get file)"
}

# What was not seen is said in words: a loss of each kind, and a function that was not watched.
losses() {
    cp "$STORE" "$WORK/lossy.db"
    sqlite3 "$WORK/lossy.db" "INSERT INTO losses(run_id, thread_id, ns, cause, count) SELECT 1, min(thread_id), 5,
        'ring full', 1234 FROM threads WHERE run_id = 1; INSERT INTO losses(run_id, ns, cause) VALUES (1, 6, 'disk full');
        INSERT INTO blind(run_id, function_id, from_ns, to_ns, cause) SELECT 1, function_id, 1, 0, 'muted' FROM functions
        WHERE name = 'sort' LIMIT 1"
    page lossy.html "$WORK/lossy.db:normal"
    "$E2E/page_check" page "$WORK/lossy.html" "${ALONE[@]}"
    grep -A 8 '^Run: normal$' "$WORK/lossy.html.text"
    grep -x '1,234 events were lost at 1 place: the program made calls faster than the recorder could read them.' "$WORK/lossy.html.text"
    grep -x 'An unknown number of events were lost at 1 place: there was no space on the disk.' "$WORK/lossy.html.text"
    grep '^1 function was not recorded all the time, .*: sort\.$' "$WORK/lossy.html.text"
    lacks '^Nothing is missing' "$WORK/lossy.html.text"
}

hostile_and_large() {
    page large.html '<i>normal</i>' '<i>faulty</i>' --filter everything --attributes sing.noFreq --linkage ward
    "$E2E/page_check" page "$WORK/large.html" "${ALL[@]}"
    grep -F "<script>alert('x')</script>" "$WORK/large.html.text" >/dev/null
    grep -x '<i>faulty</i> (run 5)' "$WORK/large.html.text"
    # What is left out is said, and the page stays small.
    grep '^Omitted from the matrices: ' "$WORK/large.html.text"
    grep -E ' Drawn are the [0-9]+ with at least [0-9]+ threads' "$WORK/large.html.text"
    grep -E '^[0-9]+ more entries are omitted' "$WORK/large.html.text"
    grep ' merges are not drawn' "$WORK/large.html.text"
    (($(stat -c %s "$WORK/large.html") < 1500000))
}

# ------------------------------------------------------------------------------------------ the browser

# A profile of its own, and no display. The console's messages are lines of the log.
browse() { # page, log, option...
    local page=$1 log=$2
    shift 2
    timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
        --user-data-dir="$WORK/profile" --enable-logging=stderr --v=0 --virtual-time-budget=2000 \
        "$@" "file://$page" >"$log.out" 2>"$log"
}

in_a_browser() {
    local name
    for name in swapped large; do
        # A whole page, at half its size: enough to see what is on it, and soon read.
        browse "$WORK/$name.html" "$WORK/log" --window-size=1200,5000 --force-device-scale-factor=0.5 \
            --screenshot="$WORK/$name.png"
        lacks CONSOLE "$WORK/log"
        "$E2E/page_check" picture "$WORK/$name.png" 600 500
    done
    # The page as the browser has parsed it has the same texts, all of them.
    browse "$WORK/swapped.html" "$WORK/log" --dump-dom
    "$E2E/page_check" text "$WORK/log.out" | diff - "$WORK/swapped.html.text"
}

# That the checks above can fail: the console does speak of what is forbidden, and a blank page is found out.
browser_complains() {
    sed 's|</main>|<script>alert(1)</script></main>|' "$WORK/swapped.html" >"$WORK/bad.html"
    browse "$WORK/bad.html" "$WORK/log" --dump-dom
    grep CONSOLE "$WORK/log"
    lacks -q . <("$E2E/page_check" page "$WORK/bad.html" "${ALL[@]}" >/dev/null && echo passes)
    echo '<!DOCTYPE html><title>blank</title>' >"$WORK/blank.html"
    browse "$WORK/blank.html" "$WORK/log" --window-size=600,300 --screenshot="$WORK/blank.png"
    lacks -q . <("$E2E/page_check" picture "$WORK/blank.png" 600 2 >/dev/null && echo passes)
}

on_paper() {
    browse "$WORK/swapped.html" "$WORK/log" --print-to-pdf="$WORK/page.pdf"
    lacks CONSOLE "$WORK/log"
    (($(grep -ac '/Type */Page\b' "$WORK/page.pdf") >= 3))
}

refusals() {
    local arguments status
    for arguments in "report normal" "report -o $WORK/x" "report a b c -o $WORK/x" "report normal -o - --json" \
        "report normal --baseline swapped -o $WORK/x" "report normal --filter mpi --filter mem -o $WORK/x" \
        "report normal swapped --filter nonesuch -o $WORK/x"; do
        status=0
        # shellcheck disable=SC2086 # words are wanted
        "$TRACECTL" $arguments || status=$?
        same 2 "$status"
    done
    [[ ! -e $WORK/x ]]
    fails_with 3 "$TRACECTL" report normal nonesuch -o "$WORK/x"
    fails_with 3 "$TRACECTL" report normal -o "$WORK/no/such/directory"
    fails_with 3 "$TRACECTL" report normal -o /dev/full
}

run_case "two runs" comparison
run_case "a call that never returned" hang
run_case "several normal runs" more_normal_runs
run_case "nothing differs" nothing_differs
run_case "one run" one_run
run_case "losses in words" losses
run_case "hostile names, many threads" hostile_and_large
if command -v chromium >/dev/null || [[ ${CI:-} == true ]]; then
    run_case "in a browser" in_a_browser
    run_case "the browser's complaints are heard" browser_complains
    run_case "on paper" on_paper
else
    echo "ok - in a browser # SKIP chromium is not installed"
fi
run_case "what is refused" refusals
finish
