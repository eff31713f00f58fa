#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Files that somebody else has chosen: holes of terabytes, files that unpack to terabytes, FIFOs. None of them is waited
# for, and what is given up is said by name.
. "$(dirname "$0")/lib.sh"
needs_capture

# None of this takes a tenth of a second; without limits it takes hours. A machine may be very busy.
within() {
    timeout -k 1 60 "$@"
}

# A program without build id that names a debug file, and the file's name.
program() { # name
    cat >"$WORK/$1.c" <<'END'
__attribute__((noinline)) int doubled(int n) { __asm__ volatile(""); return 2 * n; }
int main(int argc, char **argv) { return doubled(argc + 2) != 6; }
END
    gcc -O1 -g -Wl,--build-id=none -o "$WORK/$1.full" "$WORK/$1.c"
    objcopy --only-keep-debug "$WORK/$1.full" "$WORK/$1.debug"
    objcopy --strip-all --add-gnu-debuglink="$WORK/$1.debug" "$WORK/$1.full" "$WORK/$1"
}

plan() { # program: prints what a recording would probe
    within "$TRACECTL" record --dry-run -- "$1"
}

sum_of_a_small_file() {
    program small
    plan "$WORK/small" | grep -w doubled
}

sum_of_a_hole() {
    program hole
    truncate -s 8T "$WORK/hole.debug"
    plan "$WORK/hole" | grep "hole.debug: 8.0 TB of debug information without a build id were not read (more than 256 MB)"
}

sum_of_a_large_file() { # no hole, but too much to read before a program may start
    program large
    fallocate -l 300M "$WORK/large.debug"
    plan "$WORK/large" | grep "large.debug: 300 MB of .* were not read"
    rm "$WORK/large.debug"
}

sum_of_a_fifo() {
    program fifo
    rm "$WORK/fifo.debug"
    mkfifo "$WORK/fifo.debug"
    plan "$WORK/fifo" >/dev/null
}

image_that_is_a_hole() {
    program image
    truncate -s 8T "$WORK/image.full"
    plan "$WORK/image.full" | grep -w doubled # its headers are at the beginning
}

# edit FILE FIELD VALUE: changes the header of section SECTION, or of the file, in place.
edit() {
    python3 - "$@" <<'END'
import struct, sys

path, section, *fields = sys.argv[1:]
with open(path, "r+b") as file:
    head = bytearray(file.read(64))
    table, = struct.unpack_from("<Q", head, 40)
    count, names = struct.unpack_from("<HH", head, 60)
    def header(index):
        file.seek(table + 64 * index)
        return bytearray(file.read(64))
    strings, = struct.unpack_from("<Q", header(names), 24)
    for index in range(count):
        entry = header(index)
        file.seek(strings + struct.unpack_from("<I", entry)[0])
        if file.read(64).split(b"\0")[0].decode() == section:
            break
    places = {"flags": 8, "offset": 24, "size": 32}
    for field in fields:
        name, value = field.split("=")
        if name == "unpacked":
            at, = struct.unpack_from("<Q", entry, 24)
            file.seek(at + 8)
            file.write(struct.pack("<Q", int(value, 0)))
        else:
            struct.pack_into("<Q", entry, places[name], int(value, 0))
    file.seek(table + 64 * index)
    file.write(entry)
END
}

tables_of_terabytes() {
    program tables
    edit "$WORK/tables.full" .symtab size=0x40000000000
    truncate -s 8T "$WORK/tables.full"
    plan "$WORK/tables.full" | grep "4.0 TB of symbols and other tables were not read (more than 1.0 GB)"
}

debug_information_of_terabytes() {
    program info
    edit "$WORK/info.full" .debug_info size=0x40000000000
    truncate -s 8T "$WORK/info.full"
    "$TRACECTL" record --dry-run -- "$WORK/info.full" | grep -w doubled
    within "$TRACECTL" record -n info -- "$WORK/info.full" 2>"$WORK/info.err"
    same 1 "$(grep -c "info.full: 4.0 TB of debug information were not read (more than 1.0 GB)" "$WORK/info.err")"
    same 1 "$(q "SELECT count(*) AS n FROM tags WHERE key LIKE 'not read:%'")"
}

debug_information_that_unpacks_to_terabytes() {
    program packed
    gcc -O1 -g -gz=zlib -o "$WORK/packed.full" "$WORK/packed.c"
    edit "$WORK/packed.full" .debug_info unpacked=0x40000000000
    within "$TRACECTL" record -n packed -- "$WORK/packed.full" 2>"$WORK/packed.err"
    grep "packed.full: 4.0 TB of debug information were not read" "$WORK/packed.err"
}

# dwz's third file, which libdw opens by itself.
shared_debug_information_in_a_fifo() {
    program shared
    mkfifo "$WORK/names_nothing"
    { printf '%s\0' "$WORK/names_nothing"; printf '01234567890123456789'; } >"$WORK/link"
    objcopy --add-section .gnu_debugaltlink="$WORK/link" "$WORK/shared.full"
    within "$TRACECTL" record -n shared -- "$WORK/shared.full" 2>"$WORK/shared.err"
    grep "shared.full: debug information was not read (its .gnu_debugaltlink leads nowhere)" "$WORK/shared.err"
}

imports() {
    mkfifo "$WORK/trace.json"
    fails_with 3 within "$TRACECTL" import --format chrome "$WORK/trace.json"
    fails_with 3 within "$TRACECTL" import --format chrome /dev/zero
    truncate -s 8T "$WORK/hole.json"
    fails_with 3 within "$TRACECTL" import --format chrome "$WORK/hole.json"
    mkdir "$WORK/words" "$WORK/directory"
    mkfifo "$WORK/words/0.0.u16" "$WORK/directory/info"
    fails_with 3 within "$TRACECTL" import --format u16 "$WORK/words"
    rm "$WORK/words/0.0.u16"
    truncate -s 8T "$WORK/words/0.0.u16"
    fails_with 3 within "$TRACECTL" import --format u16 "$WORK/words"
    fails_with 3 within "$TRACECTL" import --format uftrace "$WORK/directory"
    rm "$WORK/directory/info"
    truncate -s 8T "$WORK/directory/info"
    fails_with 3 within "$TRACECTL" import --format uftrace "$WORK/directory"
}

filter_sets() {
    mkfifo "$WORK/sets"
    mkdir "$WORK/traces"
    "$E2E/u16" make "$WORK/traces" 0.0 main a -
    "$TRACECTL" -q -d "$WORK/sets.db" import --format u16 "$WORK/traces" -n one
    fails_with 2 within "$TRACECTL" -d "$WORK/sets.db" nlr 1 --filter-file "$WORK/sets"
}

run_case "the sum of a small debug file is compared" sum_of_a_small_file
run_case "a debug file that is a hole of terabytes is not summed up, and named" sum_of_a_hole
run_case "a large debug file without build id is not summed up, and named" sum_of_a_large_file
run_case "a debug file that is a FIFO is not waited for" sum_of_a_fifo
run_case "a program whose rest is a hole is traced" image_that_is_a_hole
run_case "tables of terabytes are not read, and named" tables_of_terabytes
run_case "debug information of terabytes is not read, and named once" debug_information_of_terabytes
run_case "debug information that unpacks to terabytes is not unpacked, and named" \
    debug_information_that_unpacks_to_terabytes
run_case "shared debug information in a FIFO is not waited for" shared_debug_information_in_a_fifo
run_case "FIFOs, devices and holes are not imported" imports
run_case "filter sets in a FIFO are not waited for" filter_sets
finish
