#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tracectl stat -p shows the stacks that debuggers and runtimes show, of programs compiled in every way, and the
# programs do not notice.
. "$(dirname "$0")/lib.sh"
needs_capture
. "$(dirname "$0")/go_lib.sh"

# Starts a program in the background and waits until it says that it is ready; its process id is in $spawned.
start() { # name of its output, command...
    local said=$WORK/$1.said
    shift
    "$@" >"$said" 2>&1 &
    spawned=$!
    echo "$spawned" >>"$WORK/pids"
    wait_until 20 grep -q '^\(ready\|stuck\)' "$said"
}

stop() {
    kill -KILL "$spawned"
    wait "$spawned" 2>/dev/null || true
}

sample() { # options...
    "$TRACECTL" --json stat "$@" >"$WORK/stat.json"
}

# What gdb says of the same process; $1 is the file with its names.
ask_gdb() {
    gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'set print frame-arguments none' -ex "file $1" \
        -ex "attach $spawned" -ex 'thread apply all bt' >"$WORK/gdb.txt" 2>"$WORK/gdb.err"
}

same_as_gdb() { # name, compiler's options...
    local name=$1
    shift
    g++ -pthread -g "$@" -o "$WORK/$name" "$ROOT/tests/programs/where.cc"
    start "$name" "$WORK/$name"
    ask_gdb "$WORK/$name"
    sample -p "$spawned"
    stop
    "$E2E/stat_check" gdb "$WORK/stat.json" "$WORK/gdb.txt" "$(realpath "$WORK/$name")"
}

# The code is where it was, under other names or none.
stripped() {
    nm -C "$WORK/fast" >"$WORK/nm.txt"
    strip -o "$WORK/stripped" "$WORK/fast"
    start stripped "$WORK/stripped"
    ask_gdb "$WORK/fast"
    sample -p "$spawned"
    stop
    "$E2E/stat_check" gdb "$WORK/stat.json" "$WORK/gdb.txt" "$(realpath "$WORK/stripped")" "$WORK/nm.txt"
}

deleted_in_a_container() {
    local root=$WORK/root library
    mkdir -p "$root"
    while read -r library; do
        install -D "$library" "$root$library"
    done < <(ldd "$WORK/fast" | grep -oE '/[^ ]+')
    install -D "$WORK/fast" "$root/bin/where"
    start container chroot "$root" /bin/where
    rm "$root/bin/where"
    ask_gdb "$WORK/fast"
    sample -p "$spawned"
    stop
    # Its path is not there any more, neither inside nor here.
    sed -i "s|$root||g" "$WORK/stat.json"
    "$E2E/stat_check" gdb "$WORK/stat.json" "$WORK/gdb.txt" /bin/where
}

rust() {
    cat >"$WORK/rusty.rs" <<'END'
use std::sync::{Arc, Mutex};
#[inline(never)]
fn takes_the_lock(lock: &Mutex<u32>) -> u32 { *lock.lock().unwrap() }
#[inline(never)]
fn sleeps() { loop { std::thread::sleep(std::time::Duration::from_secs(1000)); } }
fn main() {
    let lock = Arc::new(Mutex::new(1));
    let _held = lock.lock().unwrap();
    let other = lock.clone();
    std::thread::spawn(move || println!("{}", takes_the_lock(&other)));
    std::thread::spawn(sleeps);
    std::thread::sleep(std::time::Duration::from_millis(200));
    println!("ready");
    std::thread::sleep(std::time::Duration::from_secs(1000));
}
END
    rustc -O -g -o "$WORK/rusty" "$WORK/rusty.rs"
    start rusty "$WORK/rusty"
    sample -p "$spawned"
    "$TRACECTL" stat --stacks -p "$spawned" >"$WORK/rusty.txt"
    stop
    cat "$WORK/rusty.txt"
    grep -qE '^    rusty::takes_the_lock.* at rusty.rs:3$' "$WORK/rusty.txt"
    grep -qE '^    rusty::sleeps.* at rusty.rs:5$' "$WORK/rusty.txt"
    grep -qE '^    rusty::main.* at rusty.rs:14$' "$WORK/rusty.txt"
    lacks -q 'not known' "$WORK/rusty.txt"
}

goroutines() { # version of Go, go's options...
    local version=$1
    shift
    (cd "$ROOT/tests/programs/go/where" && CGO_ENABLED=1 go_run "$version" build "$@" -o "$WORK/go_where" .)
    start "go$version" "$WORK/go_where" 3000
    sample -p "$spawned"
    same 0 "$(json_get sampling.uncertain <"$WORK/stat.json")"
    kill -QUIT "$spawned"
    wait "$spawned" || true
    "$E2E/stat_check" go "$WORK/stat.json" "$WORK/go$version.said"
    grep -q '"sleep_in_c"' "$WORK/stat.json" || grep -q '"clock_nanosleep"' "$WORK/stat.json"
}

# Of a recording without any look at the live process, but for the one that it is compared with.
recorded_goroutines() {
    start recorded_go "$TRACECTL" record -n goroutines --go -- "$WORK/go_where" 20
    sample -p "$(pgrep -P "$spawned" -x go_where)"
    pkill -P "$spawned" -x go_where
    wait "$spawned" || true
    "$TRACECTL" --json stat goroutines >"$WORK/recorded.json"
    "$E2E/stat_check" goroutines "$WORK/stat.json" "$WORK/recorded.json"
}

# The threads of a process that are stopped or traced.
standing() {
    grep -lE '^(State:[[:space:]]*[tT]|TracerPid:[[:space:]]*[1-9])' /proc/"$spawned"/task/*/status 2>/dev/null | wc -l
}

killed_while_it_samples() {
    start spinning "$PROGRAMS/where" 6
    local tool killed=0
    for ((i = 0; i < 15; i++)); do
        "$TRACECTL" stat -p "$spawned" --samples 1000 --interval 0 >/dev/null 2>&1 &
        tool=$!
        sleep "0.0$((RANDOM % 90 + 10))"
        kill -KILL "$tool" && killed=$((killed + 1)) # it may be done where this shell was kept waiting
        wait "$tool" 2>/dev/null || true
        all_go_on() { (($(standing) == 0)); }
        wait_until 2 all_go_on
    done
    ((killed > 0))
    stop
}

stopped_stays_stopped() {
    start stopped "$PROGRAMS/where"
    kill -STOP "$spawned"
    stands_still() { grep -q '^State:[[:space:]]*T' "/proc/$spawned/status"; }
    wait_until 5 stands_still
    sample -p "$spawned"
    stands_still
    same "stopped" "$(json_get stacks.0.state <"$WORK/stat.json" | cut -d ' ' -f 1)"
    same 0 "$(json_get sampling.stopped <"$WORK/stat.json")"
    kill -CONT "$spawned"
    stop
}

# What sleeps is not stopped and not woken, among 2,000 threads; all of them are known.
two_thousand_threads() {
    mkfifo "$WORK/input"
    exec 8<>"$WORK/input"
    "$PROGRAMS/blocked" 2000 <"$WORK/input" >"$WORK/blocked.said" 8>&- &
    spawned=$!
    echo "$spawned" >>"$WORK/pids"
    wait_until 30 grep -q '^ready' "$WORK/blocked.said"
    sample -p "$spawned"
    same "2020 0" "$(json_get sampling.threads <"$WORK/stat.json") $(json_get sampling.uncertain <"$WORK/stat.json")"
    (($(json_get sampling.stopped <"$WORK/stat.json") <= 4)) || fail "too many were stopped"
    echo >&8
    says_turns() { grep -q '^turns' "$WORK/blocked.said"; }
    wait_until 10 says_turns
    same 0 "$(grep '^interrupted' "$WORK/blocked.said" | tail -n 1 | cut -d ' ' -f 2)"
    exec 8>&-
    stop
}

a_thread_that_moves() {
    start moves "$PROGRAMS/lost_wakeup" lost
    # Who has just said that it is stuck is on its way to where it waits.
    stands_still() {
        sample -p "$spawned" --samples 3 --interval 20
        lacks -q '"moved": true' "$WORK/stat.json"
    }
    wait_until 20 stands_still
    stop
    "$PROGRAMS/busy" 0 >/dev/null 2>&1 &
    spawned=$!
    # Only calls tell where it is, and most looks find it between two of them.
    is_seen_to_move() {
        sample -p "$spawned" --samples 20 --interval 5
        grep -q '"moved": true' "$WORK/stat.json"
    }
    wait_until 20 is_seen_to_move
    stop
}

ranks_of_a_launcher() {
    mpiexec -n 4 "$PROGRAMS/poisson_O2" 50 stall 2 1 >"$WORK/ranks.said" 2>&1 &
    spawned=$!
    echo "$spawned" >>"$WORK/pids"
    in_the_stall() {
        "$TRACECTL" stat --stacks -p "$spawned" >"$WORK/ranks.txt" 2>/dev/null && grep -q get_norm "$WORK/ranks.txt"
    }
    wait_until 20 in_the_stall
    cat "$WORK/ranks.txt"
    sample -p "$spawned"
    same "0.0 1.0 2.0 3.0" "$(grep -oE '"thread": "[0-9]+\.0"' "$WORK/stat.json" | grep -oE '[0-9]+\.0' | sort | paste -sd ' ')"
    awk '/^[0-9]+ thread/ { who = $3 } /get_norm/ { print who }' "$WORK/ranks.txt" | grep -x 2.0
    kill "$spawned"
    wait "$spawned" 2>/dev/null || true
}

wrong_uses() {
    local options
    for options in "" "-p nobody" "-p 1, --samples 2" "-p 1 --samples 0"; do
        # shellcheck disable=SC2086 # words are wanted
        "$TRACECTL" stat $options >"$WORK/out" 2>"$WORK/err" && fail "stat $options"
        same 1 "$(wc -l <"$WORK/err")"
    done
    fails_with 3 "$TRACECTL" stat -p 999999999
}

run_case "compiled without optimisation: as gdb has it" same_as_gdb slow -O0
run_case "optimised, without frame pointers: as gdb has it" same_as_gdb fast -O2 -fomit-frame-pointer
run_case "stripped: the same calls" stripped
run_case "a deleted program in a container" deleted_in_a_container
run_case "a program in Rust" rust
for version in 1.19 1.22 1.23; do
    run_case "all goroutines of a program of Go $version: as its runtime has them" goroutines "$version"
done
run_case "a stripped program of Go: the same" goroutines 1.23 -ldflags=-s
run_case "all goroutines of a recording: as they were in the live process" recorded_goroutines
run_case "kill -9 leaves no thread stopped" killed_while_it_samples
run_case "a stopped process stays so" stopped_stays_stopped
run_case "2,000 threads do not notice" two_thousand_threads
run_case "threads that move are told from those that do not" a_thread_that_moves
run_case "the launcher's pid stands for its ranks" ranks_of_a_launcher
run_case "wrong uses" wrong_uses
finish
