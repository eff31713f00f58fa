/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/ptrace/remote_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/arch/thread_registers.h"
#include "collector/process/map_lines.h"

#define AT_A_TIME 65536u /* bytes of code that are read in one go */
#define HANDLER_BYTES \
    16384u                /* below the place: more than the kernel needs for a handler, which may come \
                             before signals are blocked */
#define MAIN_BYTES 16384u /* between the main thread's stack pointer and the place */

/* The address of what was found in the bytes that stand at `address`, 0: nothing. */
static uint64_t address_of(const uint8_t *found, const uint8_t *bytes, uint64_t address)
{
    return found ? address + (uint64_t)(found - bytes) : 0;
}

/* Looks through memory from `start` to `end` for what has not been found yet. */
static void look_through(int memory, uint64_t start, uint64_t end, uint8_t *bytes, struct remote_code *code)
{
    while (start < end && !(code->call && code->sigreturn)) {
        size_t size = end - start < AT_A_TIME ? end - start : AT_A_TIME;

        if (pread(memory, bytes, size, (off_t)start) != (ssize_t)size)
            return;
        if (!code->call)
            code->call = address_of(code_find_call(bytes, size), bytes, start);
        if (!code->sigreturn)
            code->sigreturn = address_of(code_find_sigreturn(bytes, size), bytes, start);
        if (size < AT_A_TIME)
            return;
        start += size - CODE_SIGRETURN_BYTES; /* one may lie across the border */
    }
}

static bool is_c_library(const char *path)
{
    const char *name = strrchr(path, '/');

    return name && (!strncmp(name, "/libc.", 6) || !strncmp(name, "/libc-", 6));
}

/* Whether it is worth a look: code that the process itself cannot change meanwhile. */
static bool is_code(const struct map_line *mapping)
{
    return mapping->executable && !mapping->writable && (mapping->inode || !strcmp(mapping->name, "[vdso]"));
}

int remote_place_code(pid_t pid, int memory, struct remote_code *ret_code, struct error *err)
{
    AUTO_FREE uint8_t *bytes = malloc(AT_A_TIME);
    struct remote_code code = {0};
    struct map_line mapping;

    if (!bytes)
        return error_no_memory(err);
    for (int round = 0; round < 2 && !(code.call && code.sigreturn); round++) {
        AUTO_MAP_LINES struct map_lines maps = {0};
        int r = map_lines_open(pid, &maps);

        if (r)
            return error_set(err, r, NULL, "cannot read the maps of process %d", (int)pid);
        while (map_lines_next(&maps, &mapping))
            if (is_code(&mapping) && is_c_library(mapping.name) == !round)
                look_through(memory, mapping.start, mapping.end, bytes, &code);
    }
    if (!code.call || !code.sigreturn)
        return error_say(err, -ENOENT, "its code has no system call to borrow");
    *ret_code = code;
    return 0;
}

static bool is_zero(int memory, uint64_t address, size_t size)
{
    AUTO_FREE uint8_t *bytes = malloc(size);

    return bytes && pread(memory, bytes, size, (off_t)address) == (ssize_t)size && !bytes[0] &&
           !memcmp(bytes, bytes + 1, size - 1);
}

/* Finds the main thread's stack. */
static int find_stack(pid_t pid, uint64_t *ret_start, uint64_t *ret_end, struct error *err)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line mapping;
    int r = map_lines_open(pid, &maps);

    if (r)
        return error_set(err, r, NULL, "cannot read the maps of process %d", (int)pid);
    while (map_lines_next(&maps, &mapping)) {
        if (strcmp(mapping.name, "[stack]") != 0 || !mapping.writable)
            continue;
        *ret_start = mapping.start;
        *ret_end = mapping.end;
        return 0;
    }
    return error_say(err, -ENOSPC, "its main thread has no stack");
}

int remote_place_memory(pid_t pid, int memory, uint64_t main_sp, size_t size, uint64_t *ret_address,
                        struct error *err)
{
    uint64_t start = 0, end = 0, place;
    bool far_below;
    int r = find_stack(pid, &start, &end, err);

    if (r)
        return r;
    place = start + HANDLER_BYTES;
    if (place + size > end)
        return error_say(err, -ENOSPC, "its main thread's stack has no room");
    far_below = main_sp == UINT64_MAX || (main_sp < end && main_sp >= place + size + MAIN_BYTES);
    if (!far_below && !is_zero(memory, place, size))
        return error_say(err, -ENOSPC, "its main thread's stack is in use");
    *ret_address = place;
    return 0;
}
