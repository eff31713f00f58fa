/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `tracectl import --format uftrace` reads: the first byte says which of the files it is, the rest is
 * that file. A reader refuses and says why, or accepts; records keep calls and returns in pairs.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "store/import/import_uftrace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum input { INPUT_INFO, INPUT_TASKS, INPUT_MAPS, INPUT_SYMBOLS, INPUT_RECORDS };

static void expect_reason(int r, const struct error *err)
{
    if (r < 0 && !err->message[0])
        abort();
}

static void try_info(const uint8_t *data, size_t size)
{
    struct uftrace_info info;
    struct error err = {0};
    int r = uftrace_info_parse(data, size, "info", &info, &err);

    expect_reason(r, &err);
    if (r < 0)
        return;
    if (!info.command || info.recorded < 0 || info.exit_status < -1 || info.exit_status > 255)
        abort();
    uftrace_info_release(&info);
}

static void try_tasks(const char *text, size_t size)
{
    struct uftrace_tasks tasks = {0};
    struct error err = {0};

    expect_reason(uftrace_tasks_parse(text, size, "task.txt", &tasks, &err), &err);
    for (size_t i = 0; i < tasks.count; i++)
        if ((tasks.tasks[i].kind == UFTRACE_SESSION || tasks.tasks[i].kind == UFTRACE_DLOPEN) &&
            !tasks.tasks[i].path)
            abort();
    uftrace_tasks_release(&tasks);
}

static void try_maps(const char *text, size_t size)
{
    struct uftrace_maps maps = {0};
    struct error err = {0};

    expect_reason(uftrace_maps_parse(text, size, "sid-0.map", &maps, &err), &err);
    for (size_t i = 0; i < maps.count; i++)
        if (maps.maps[i].end <= maps.maps[i].start || !maps.maps[i].path)
            abort();
    uftrace_maps_release(&maps);
}

static void try_symbols(const char *text, size_t size)
{
    struct uftrace_symbols symbols = {0};
    struct error err = {0};

    expect_reason(uftrace_symbols_parse(text, size, "a.sym", &symbols, &err), &err);
    for (size_t i = 0; i < symbols.count; i++) {
        const uint64_t address = symbols.symbols[i].address;
        const struct uftrace_symbol *found = uftrace_symbols_find(&symbols, address);

        if (i && address < symbols.symbols[i - 1].address)
            abort();
        if (found && found->address != address)
            abort();
    }
    uftrace_symbols_release(&symbols);
}

static void try_records(const uint8_t *data, size_t size)
{
    struct uftrace_stack stack = {0};
    struct error err = {0};
    size_t depth = 0;

    for (; size >= UFTRACE_RECORD_BYTES; size -= UFTRACE_RECORD_BYTES, data += UFTRACE_RECORD_BYTES) {
        struct uftrace_record record;
        struct uftrace_step step;

        if (!uftrace_record_parse(data, &record) || uftrace_stack_step(&stack, &record, &step, &err) < 0)
            break;
        if (step.closes > depth)
            abort();
        depth -= step.closes;
        if (step.returns && !depth)
            abort();
        depth += step.opens;
        depth -= step.returns;
        if (depth != stack.count)
            abort();
    }
    uftrace_stack_release(&stack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;

    if (!size)
        return 0;
    switch ((enum input)(data[0] % 5)) {
    case INPUT_INFO:
        try_info(data + 1, size - 1);
        break;
    case INPUT_TASKS:
        try_tasks(text, size - 1);
        break;
    case INPUT_MAPS:
        try_maps(text, size - 1);
        break;
    case INPUT_SYMBOLS:
        try_symbols(text, size - 1);
        break;
    case INPUT_RECORDS:
        try_records(data + 1, size - 1);
        break;
    }
    return 0;
}
