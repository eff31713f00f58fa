#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Inline probes in libraries: every call is recorded, and nothing of it stays in a process.
. "$(dirname "$0")/lib.sh"
needs_capture

LIBRARY=$WORK/libnumbers.so

# A constructor, a function that is chosen while the library is relocated, and what it is chosen by.
build_library() {
    cat >"$WORK/numbers.c" <<'C'
#define CALLED __attribute__((noipa))
long library_work(long n);
CALLED long library_leaf(long n) { return n; }
CALLED static int library_supports(void) { return 1; }
CALLED static long library_chosen_here(long sum) { return sum; }
static long (*library_resolve(void))(long) { return library_supports() ? library_chosen_here : 0; }
long library_chosen(long sum) __attribute__((ifunc("library_resolve")));
static volatile long constructed;
__attribute__((constructor)) static void library_begins(void) { constructed = library_leaf(1) + library_leaf(2); }
CALLED long library_work(long n)
{
    long sum = 0;

    for (long i = 1; i <= n; i++)
        sum += library_leaf(i);
    return library_chosen(sum);
}
C
    gcc -O2 -fPIC -shared -o "$LIBRARY" "$WORK/numbers.c"
    cat >"$WORK/linked.c" <<'C'
#include <stdio.h>
long library_work(long n);
int main(void)
{
    for (int i = 0; i < 100; i++)
        if (library_work(1000) != 500500)
            return 1;
    puts("library_leaf 100002\nlibrary_work 100");
    return 0;
}
C
    gcc -O2 -o "$WORK/linked" "$WORK/linked.c" "$LIBRARY"
    gcc -O2 -Wl,-z,lazy -o "$WORK/linked_lazy" "$WORK/linked.c" "$LIBRARY"
}

no_loss() { # run's name
    same "" "$(q "SELECT cause FROM losses WHERE run_id = $(run_id "$1")")"
}

by_inline() { # run's name, library
    q "SELECT value FROM tags WHERE run_id = $(run_id "$1") AND key LIKE 'backend:%/$2'" |
        grep '^[1-9][0-9]* functions by inline probes' >/dev/null
}

# The programs' own counts are those of the recording.
same_counts() { # run's name, images, command...
    local run=$1 images=$2
    shift 2
    record "$run" --exit-status --backend auto --when-behind wait --images "$images" -- "$@" >"$WORK/$run.printed"
    awk '/^library_/ { calls[$1] += $2 } END { for (name in calls) print name, calls[name] }' "$WORK/$run.printed" |
        sort >"$WORK/$run.said"
    no_loss "$run"
    q "SELECT f.name || ' ' || count(*) AS line FROM events e JOIN functions f USING (function_id)
       WHERE e.run_id = $(run_id "$run") AND e.kind = 'call' AND f.name IN ('library_leaf', 'library_work')
       GROUP BY f.name" | sort >"$WORK/$run.recorded"
    diff "$WORK/$run.said" "$WORK/$run.recorded"
}

counts() {
    same_counts "$@"
    by_inline "$1" libnumbers.so
}

# A library that a program loads while it runs has the kernel's probes: they are there whenever it comes back.
counts_by_uprobes() {
    same_counts "$@"
    q "SELECT value FROM tags WHERE run_id = $(run_id "$1") AND key LIKE 'backend:%/libnumbers.so'" |
        grep "^the kernel's probes: it was loaded while the program ran" >/dev/null
}

# Each call of the library is inside the call of the program that it comes from.
nested() { # run's name
    same "library_work main" "$(q "SELECT DISTINCT f.name || ' ' || g.name AS line FROM calls c
        JOIN functions f USING (function_id) JOIN calls p ON p.thread_id = c.thread_id AND p.seq = c.parent_seq
        JOIN functions g ON g.function_id = p.function_id
        WHERE c.run_id = $(run_id "$1") AND f.name = 'library_work'" | paste -sd ,)"
}

what_it_says() {
    "$TRACECTL" -q record --dry-run --backend auto --images all -- "$WORK/linked" >"$WORK/plan"
    grep '/libnumbers.so: [1-9][0-9]* functions by inline probes' "$WORK/plan" >/dev/null
    grep 'libc.so.6: no inline probes: the C library' "$WORK/plan" >/dev/null
    record says --backend auto --images all -- "$WORK/linked" >/dev/null
    # The recorder's own code in the program is none of its images.
    same "" "$(q "SELECT key FROM tags WHERE run_id = $(run_id says) AND key LIKE 'untraced:/memfd:%'")"
    q "SELECT value FROM tags WHERE run_id = $(run_id says) AND key LIKE 'backend:%/libc.so.6'" |
        grep "^the kernel's probes: the C library" >/dev/null
    q "SELECT value FROM tags WHERE run_id = $(run_id says) AND key LIKE 'backend:%/ld-linux%'" |
        grep "^the kernel's probes: the dynamic linker" >/dev/null
}

# A program that may not have inline probes has none in its libraries, whether it is recorded itself or not.
refused_for_the_program() {
    record limited --backend auto --images '*libnumbers*' -- prlimit --as=2000000000 "$WORK/linked" >/dev/null
    q "SELECT value FROM tags WHERE run_id = $(run_id limited) AND key LIKE 'backend:%/libnumbers.so'" |
        grep "^the kernel's probes: its address space is limited" >/dev/null
    same 100002 "$(q "SELECT sum(calls) AS n FROM call_counts WHERE run_id = $(run_id limited)
        AND name = 'library_leaf'")"
}

# Bytes of code that the process has and the library's file has not.
library_is_clean() { # pid
    python3 - "$1" "$LIBRARY" <<'PY'
import sys
pid, path = sys.argv[1:]
file = open(path, "rb").read()
with open(f"/proc/{pid}/mem", "rb", 0) as memory:
    for line in open(f"/proc/{pid}/maps"):
        words = line.split()
        if len(words) < 6 or words[5] != path or "x" not in words[1]:
            continue
        start, end = (int(word, 16) for word in words[0].split("-"))
        offset = int(words[2], 16)
        memory.seek(start)
        size = min(end - start, len(file) - offset)
        assert memory.read(size) == file[offset:offset + size], line
PY
}

attach_and_detach() {
    local pid round
    spawn "$PROGRAMS/uses_library" forever "$LIBRARY" >"$WORK/forever.out"
    pid=$spawned
    wait_until 60 grep -q ready "$WORK/forever.out"
    for round in 1 2 3 4 5; do
        record "attached_$round" --backend auto --images '*libnumbers*' -p "$pid" --budget none --duration 0.2
        by_inline "attached_$round" libnumbers.so
        library_is_clean "$pid"
        (($(q "SELECT sum(calls) AS n FROM call_counts WHERE run_id = $(run_id "attached_$round")
            AND name = 'library_leaf'") > 10))
    done
    ! grep -q "memfd:tracectl" "/proc/$pid/maps" || fail "an area is still mapped"
    kill -TERM "$pid"
    wait "$pid" || fail "it ended with status $?"
    grep -q '^unharmed' "$WORK/forever.out"
}

recorder_killed() {
    local pid recorder
    spawn "$PROGRAMS/uses_library" forever "$LIBRARY" >"$WORK/forever.out"
    pid=$spawned
    wait_until 60 grep -q ready "$WORK/forever.out"
    spawn "$TRACECTL" -q record --backend auto -n killed --images 'main,*libnumbers*' -p "$pid" --budget none
    recorder=$spawned
    wait_until 60 eval "! library_is_clean $pid 2>/dev/null"
    kill -KILL "$recorder"
    wait_until 60 library_is_clean "$pid"
    kill -TERM "$pid"
    wait "$pid" || fail "it ended with status $?"
    grep -q '^unharmed' "$WORK/forever.out"
}

build_library
run_case "a library that the program is linked with" counts linked '*libnumbers*' "$WORK/linked"
run_case "with the program's own functions" counts both 'main,*libnumbers*' "$WORK/linked"
run_case "and its callers are known" nested both
run_case "a library that is bound lazily" counts lazy 'main,*libnumbers*' "$WORK/linked_lazy"
present=(env LD_PRELOAD="$LIBRARY" "$PROGRAMS/uses_library")
run_case "threads and children" counts threads 'main,*libnumbers*' "${present[@]}" threads "$LIBRARY"
run_case "threads and children of a program that is not recorded" \
    counts threads_alone '*libnumbers*' "${present[@]}" threads "$LIBRARY"
for use in threads reload copies; do
    run_case "a library that is loaded later: $use" \
        counts_by_uprobes "later_$use" 'main,*libnumbers*' "$PROGRAMS/uses_library" "$use" "$LIBRARY"
done
# Another process has started with it: in this one, too, its probes are inline.
# shellcheck disable=SC2016 # for the other shell
after_another=(sh -c '"$0" && exec "$@"' "$WORK/linked" "$PROGRAMS/uses_library")
run_case "a library that is opened and closed" counts reload 'main,*libnumbers*' "${after_another[@]}" reload "$LIBRARY"
run_case "all libraries" counts reload_all all "${after_another[@]}" reload "$LIBRARY"
run_case "two copies of a library" counts copies 'main,*libnumbers*' "${after_another[@]}" copies "$LIBRARY"
run_case "what --dry-run and the tags say" what_it_says
run_case "what rules them out in the program" refused_for_the_program
run_case "a running process, five times, and its library is as before" attach_and_detach
run_case "a killed recorder leaves nothing behind" recorder_killed
finish
