#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The format is what docs/trace-format.md says: format_reader.py, written from that document alone, reads out of each
# store the events that tracectl does.
. "$(dirname "$0")/lib.sh"
export PYTHONDONTWRITEBYTECODE=1

columns="thread_id, seq, kind, function_id, depth, ns, ns_error, call_site, assumed"

tracectl_events() { # store
    "$TRACECTL" -d "$1" query --csv "SELECT $columns FROM events ORDER BY thread_id, seq"
}

# Both read the store, and see the same. Then $WORK/met says what of the format was met.
both_read() { # store
    tracectl_events "$1" >"$WORK/events.tracectl"
    "$E2E/format_reader.py" "$1" >"$WORK/events.reader" 2>"$WORK/met" || {
        tail -n 3 "$WORK/met"
        return 1
    }
    cat "$WORK/met"
    cmp "$WORK/events.tracectl" "$WORK/events.reader" || {
        diff "$WORK/events.tracectl" "$WORK/events.reader" | head -n 6
        return 1
    }
}

# A test that never meets what it is there for tests nothing.
met() { # what, at least so often
    awk -v what="$1" -v least="$2" '
        { count = $NF; sub(/ [0-9]+$/, ""); if ($0 == what && count + 0 >= least) found = 1 }
        END { exit !found }' "$WORK/met" || fail "fewer than $2: $1"
}

import_traces() { # directory
    "$TRACECTL" -d "$1.db" -q import --format u16 "$1" -n traces
}

known_answers() {
    "$E2E/format_reader.py" --answers "$ROOT/docs/trace-format.md" 2>"$WORK/met" || {
        cat "$WORK/met"
        return 1
    }
    met "answers of codec 1" 5
}

# So many words: calls out of so many functions, and returns, by a fixed seed. Of a thousand words (that find a call
# open) so many are returns, of the second half of the words perhaps another number.
noise() { # words, functions, seed, [returns in the first half, returns in the second half]
    awk -v words="$1" -v functions="$2" -v seed="$3" -v first="${4:-480}" -v second="${5:-${4:-480}}" 'BEGIN {
        for (i = 0; i < words; i++) {
            seed = (seed * 16807) % 2147483647
            back = depth > 0 && seed % 1000 < (i < words / 2 ? first : second)
            depth += back ? -1 : 1
            print back ? "-" : "f" int(seed / 1000) % functions
        }
    }'
}

make_thread() { # directory, thread; words on standard input
    local words
    mkdir -p "$1"
    mapfile -t words
    "$E2E/u16" make "$1" "$2" "${words[@]}"
}

# Tables of the model grow to their end, and there find no empty slot; more frames and a segment behind the first.
many_contexts() {
    noise 75000 200 1 | make_thread "$WORK/many" 0.0
    noise 6000 100 3 250 750 | make_thread "$WORK/many" 0.1
    import_traces "$WORK/many"
    both_read "$WORK/many.db"
    met "packed segments" 2
    met "tables grown" 80
    met "deepest" 1100
}

# Loops that are left for another word, for a word of the loop, for a new one, and where tables are about to grow.
loops() {
    local n
    for n in 230 300 401 777; do
        noise 300 $((n / 2)) "$n"
        printf '%s\n' "$n*(" a b - - c - ")"
        noise 40 5 "$n"
        printf '%s\n' "$n*(" a b - - c - ")" a c "new$n" - - - b
    done | make_thread "$WORK/loops" 0.0
    # left a little behind the word from which on they are believed
    for n in $(seq 105 2 165); do
        noise 30 40 "$n"
        printf '%s\n' "$n*(" "g$((n % 4))" h - - ")"
    done | make_thread "$WORK/loops" 0.1
    # of bodies that surprise, so that the voices disagree where the loop is left
    for n in $(seq 120 10 220); do
        echo "4*("
        noise "$n" 3 "$n"
        echo ")"
        noise 60 3 "$((n + 20))"
    done | make_thread "$WORK/loops" 0.3
    printf '%s\n' '3000*(' leaf - ')' leaf leaf - - '70*(' down ')' '700*(' x - ')' '71*(' - ')' |
        make_thread "$WORK/loops" 0.2
    # returns without their calls: what came before is lost
    printf '%s\n' - - main - '500*(' '3*(' inner - ')' outer - ')' last - - - | make_thread "$WORK/loops" 1.0
    noise 4000 3000 5 | make_thread "$WORK/loops" 2.0
    import_traces "$WORK/loops"
    both_read "$WORK/loops.db"
    met "believed runs" 40
    met "kind lost" 3
}

# The ring of words is full. Pieces that were heard before the loop come again behind it, the first ones 262,120 words
# later, each one word more: so that they lie at the ring's end and beyond it.
full_ring() {
    local i
    {
        for ((i = 1; i <= 26; i++)); do noise 24 20 "$i"; done
        printf '%s\n' '65374*(' a b - - ')'
        for ((i = 1; i <= 26; i++)); do noise 24 20 "$i" && echo far; done
        printf '%s\n' '200*(' a b - - ')'
    } | make_thread "$WORK/ring" 0.0
    # A loop that is longer than the ring, left and taken up again.
    printf '%s\n' '66000*(' a b - - ')' c - '200*(' a b - - ')' | make_thread "$WORK/ring" 0.1
    import_traces "$WORK/ring"
    both_read "$WORK/ring.db"
    met "believed words" 520000
}

# Each stream begins with a model that knows nothing, in which voices are equal and contexts few.
short_threads() {
    local thread i words
    mkdir "$WORK/short"
    printf '%s\n' '1 a' '2 b' '3 c' >"$WORK/short/names.info"
    RANDOM=1
    for ((thread = 0; thread < 300; thread++)); do
        words=
        for ((i = 0; i < 20; i++)); do words+="\\x0$((RANDOM % 4))\\x00"; done
        printf '%b' "$words" >"$WORK/short/0.$thread.u16"
    done
    # More than a match of codec 1 can be long.
    printf '%s\n' a '35000*(' b - ')' c | make_thread "$WORK/short" 0.300
    import_traces "$WORK/short"
    both_read "$WORK/short.db"
    met "segments of codec 1" 300
}

recorded() { # what must be met, options of record and the command...
    local what=$1 store=$WORK/recorded.db
    shift
    rm -f "$store"*
    "$TRACECTL" -d "$store" -q record "$@" >/dev/null
    both_read "$store"
    met "$what" 1
    met "segments of codec 1" 1
}

# The journal of a recorder that was killed, with segments that were closed before it.
journal() {
    local store=$WORK/killed.db busy recorder
    spawn "$PROGRAMS/busy" 20000 2 >"$WORK/busy.out"
    busy=$spawned
    wait_until 10 grep -q beat "$WORK/busy.out"
    spawn "$TRACECTL" -d "$store" -q record -n killed -p "$busy" --budget none --flush-interval 0.1 "$@"
    recorder=$spawned
    rows() { [[ $(sqlite3 "$store" "SELECT count(*) FROM journal") -gt 5 ]]; }
    wait_until 20 rows
    kill -KILL "$recorder"
    wait "$recorder" 2>/dev/null || true
    kill -TERM "$busy"
    both_read "$store"
    met "open segments" 2
    met chunks 6
}

run_case "the known answers of the document" known_answers
run_case "tables that grow to their end" many_contexts
run_case "loops, losses and many functions" loops
run_case "a full ring of words" full_ring
run_case "short threads" short_threads
needs_capture
run_case "a time for each event, and call sites" recorded "predicted sites" --call-sites --time full -- \
    "$PROGRAMS/million" 3000
run_case "10,000 levels" recorded "believed runs" -- "$PROGRAMS/recursion"
run_case "assumed calls with call sites" recorded "assumed calls" --returns infer --call-sites -- "$PROGRAMS/callbacks"
run_case "assumed calls" recorded "assumed calls" --returns infer \
    --functions '^(main|sort|before|after|compare|sign|done)$' -- "$PROGRAMS/alloca_frames"
run_case "inferred returns" recorded "kind return" --no-returns -- "$PROGRAMS/longjmp"
run_case "calls only" recorded "kind call" --returns none --call-sites -- "$PROGRAMS/callbacks"
run_case "many threads without times" recorded "kind return" --time none --call-sites -- "$PROGRAMS/threads"
run_case "call sites of many functions" recorded "predicted sites" --images all --call-sites -- "$PROGRAMS/call_lines"
run_case "events that were lost" recorded "kind lost" --backend uprobe --ring-size 4096 --call-sites -- "$PROGRAMS/million" 50000
run_case "a journal" journal
run_case "a journal with a time for each event, and call sites" journal --time full --call-sites
finish
