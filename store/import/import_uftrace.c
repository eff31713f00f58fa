/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes what was found in a uftrace directory (import_uftrace.h says what it is) as a run. Functions are
 * registered when they are first called; a cache by address spares looking up map and symbol each time.
 */
#include "store/import/import_uftrace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "store/import/import_uftrace_plan.h"

#define CACHE_SIZE 4096u
#define FLUSH_BYTES (8u << 20)

DEFINE_CLEANUP(cleanup_writer, struct trace_writer *, trace_writer_free)

struct uftrace_write {
    struct uftrace_plan *plan;
    struct trace_writer *writer;
    char *(*demangle)(const char *name);
    struct error *err;
    uint64_t offset_ns; /* from uftrace's clock to CLOCK_REALTIME */

    /* the thread */
    const struct uftrace_thread *source;
    struct thread_writer *thread;
    struct uftrace_session *session;
    struct uftrace_stack stack;
    uint64_t last_ns;
    bool inferred;
    struct {
        uint64_t address;
        uint32_t function;
    } cache[CACHE_SIZE];
};

/* ------------------------------------------------------------------------------------------ functions */

static int register_image(const struct uftrace_write *write, const struct uftrace_map *map,
                          int64_t *ret_image_id)
{
    const struct trace_image_description image = {
        .path = map ? map->path : "uftrace", .build_id = map ? map->build_id : "", .kind = "import"};

    return trace_writer_image(write->writer, &image, ret_image_id, write->err);
}

static int register_named(const struct uftrace_write *write, int64_t image_id, const char *name,
                          uint64_t address, uint32_t *ret_function)
{
    AUTO_FREE char *demangled = write->demangle ? write->demangle(name) : NULL;
    const struct trace_function_description function = {
        .name = name, .demangled = demangled, .address = address};

    return trace_writer_function(write->writer, image_id, &function, ret_function, write->err);
}

/* A symbol of an image, or IMAGE+0xADDRESS where it has none there. */
static int register_in_map(const struct uftrace_write *write, const struct uftrace_map *map, uint64_t address,
                           uint32_t *ret_function)
{
    struct uftrace_symbols *symbols =
        map->symbols == SIZE_MAX ? NULL : &write->plan->files[map->symbols].symbols;
    struct uftrace_symbol *symbol = symbols ? uftrace_symbols_find(symbols, address - map->start) : NULL;
    AUTO_FREE char *name = NULL;
    int64_t image_id = symbols ? symbols->image_id : 0;
    int r = image_id ? 0 : register_image(write, map, &image_id);

    if (r < 0)
        return r;
    if (symbols)
        symbols->image_id = image_id;
    if (!symbol) {
        if (asprintf(&name, "%s+0x%llx", path_file_name(map->path),
                     (unsigned long long)(address - map->start)) < 0)
            return error_no_memory(write->err);
        return register_named(write, image_id, name, address - map->start, ret_function);
    }
    if (!symbol->id)
        r = register_named(write, image_id, symbol->name, symbol->address, &symbol->id);
    if (r == 0)
        *ret_function = symbol->id;
    return r;
}

static const struct uftrace_map *find_map(const struct uftrace_session *session, uint64_t address,
                                          uint64_t ns)
{
    for (size_t i = 0; session && i < session->maps.count; i++) {
        const struct uftrace_map *map = &session->maps.maps[i];

        if (address >= map->start && address < map->end && ns >= map->from_ns)
            return map;
    }
    return NULL;
}

static int find_function(struct uftrace_write *write, const struct uftrace_record *record,
                         uint32_t *ret_function)
{
    const size_t slot = (record->address ^ record->address >> 12) % CACHE_SIZE;
    const struct uftrace_map *map;
    int64_t image_id = 0;
    char name[32];
    int r;

    if (write->cache[slot].function && write->cache[slot].address == record->address) {
        *ret_function = write->cache[slot].function;
        return 0;
    }
    map = find_map(write->session, record->address, record->ns);
    if (!map) { /* not cached: a library may be opened there later */
        snprintf(name, sizeof(name), "0x%llx", (unsigned long long)record->address);
        r = register_image(write, NULL, &image_id);
        return r < 0 ? r : register_named(write, image_id, name, record->address, ret_function);
    }
    r = register_in_map(write, map, record->address, ret_function);
    if (r == 0) {
        write->cache[slot].address = record->address;
        write->cache[slot].function = *ret_function;
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ records */

static int take_inferred(struct uftrace_write *write, size_t count)
{
    int r = 0;

    if (!count)
        return 0;
    if (!write->inferred)
        r = thread_writer_infers(write->thread, write->err);
    write->inferred = true;
    while (r == 0 && count--)
        r = thread_writer_return(write->thread);
    return r == -ENOMEM ? error_no_memory(write->err) : r;
}

static int take_call(struct uftrace_write *write, const struct uftrace_record *record)
{
    uint32_t function = 0;
    int r = find_function(write, record, &function);

    if (r < 0)
        return r;
    r = thread_writer_call(write->thread, function);
    return r == -ENOMEM ? error_no_memory(write->err) : r;
}

static int take_step(struct uftrace_write *write, const struct uftrace_record *record)
{
    const uint64_t ns = record->ns + write->offset_ns;
    struct uftrace_step step = {0};
    int r = uftrace_stack_step(&write->stack, record, &step, write->err);

    if (r == 0)
        r = thread_writer_anchor(write->thread, ns) < 0 ? error_no_memory(write->err) : 0;
    if (r == 0)
        r = take_inferred(write, step.closes);
    if (r == 0 && step.opens)
        r = take_call(write, record);
    if (r == 0 && step.returns && thread_writer_return(write->thread) < 0)
        r = error_no_memory(write->err);
    if (r == 0 && step.unmatched)
        r = thread_writer_lost_by_kind(write->thread, ns, 1, 1, "an exit without its entry", write->err);
    return r;
}

/* The program of the session before is gone; what it had open never returns. */
static void change_session(struct uftrace_write *write, const struct uftrace_record *record)
{
    if (write->session && !uftrace_execs_between(write->plan, write->source->pid, write->last_ns, record->ns))
        return;
    write->session = uftrace_session_at(write->plan, write->source->pid, record->ns);
    write->stack.base = write->stack.count;
    memset(write->cache, 0, sizeof(write->cache));
}

static int take_record(void *context, const struct uftrace_record *record)
{
    struct uftrace_write *write = context;
    int r = 0;

    if (record->type == UFTRACE_EVENT)
        return 0;
    change_session(write, record);
    write->last_ns = record->ns;
    if (record->type == UFTRACE_LOST)
        r = thread_writer_lost(write->thread, record->ns + write->offset_ns, record->address,
                               "lost by uftrace", write->err);
    else
        r = take_step(write, record);
    if (r == 0 && trace_writer_pending_bytes(write->writer) > FLUSH_BYTES)
        r = trace_writer_flush(write->writer, clock_ns(CLOCK_REALTIME), write->err);
    return r;
}

/* ------------------------------------------------------------------------------------------ threads */

static int write_process(struct uftrace_write *write, int64_t *ret_process_id)
{
    const struct uftrace_session *session =
        uftrace_session_at(write->plan, write->source->pid, write->source->begins);
    const struct trace_process_description process = {
        .pid = write->source->pid,
        .rank = -1,
        .exe = session ? session->task->path : "",
        .argv = "",
        .started_ns = write->source->begins + write->offset_ns,
    };

    return trace_writer_process(write->writer, &process, ret_process_id, write->err);
}

static int write_thread(struct uftrace_write *write, int64_t process_id, const char *label)
{
    const struct trace_thread_description description = {
        .process_id = process_id,
        .tid = write->source->tid,
        .label = label,
        .started_ns = write->source->begins + write->offset_ns,
        .returns = write->plan->info.estimated ? TRACE_RETURNS_INFERRED : TRACE_RETURNS_PROBED,
    };
    int r = trace_writer_thread(write->writer, &description, &write->thread, write->err);

    write->session = NULL;
    write->inferred = write->plan->info.estimated;
    write->last_ns = write->source->begins;
    if (r == 0)
        r = uftrace_read_records(write->plan, write->source, take_record, write, write->err);
    if (r == 0)
        r = thread_writer_end(write->thread, write->last_ns + write->offset_ns, write->err);
    uftrace_stack_release(&write->stack);
    return r;
}

static int write_threads(struct uftrace_write *write)
{
    const struct uftrace_plan *plan = write->plan;
    size_t processes = 0, threads = 0;
    int64_t process_id = 0;
    char label[48];
    int r = 0;

    for (size_t i = 0; r == 0 && i < plan->thread_count; i++) {
        write->source = &plan->threads[i];
        if (!i || write->source->pid != write->source[-1].pid) {
            processes++;
            threads = !write->source->is_main; /* 0 is the main thread */
            r = write_process(write, &process_id);
        }
        snprintf(label, sizeof(label), "%zu.%zu", processes - 1, threads++);
        if (r == 0)
            r = write_thread(write, process_id, label);
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ the run */

/* The recording ended in the second `recorded`; without that, it ends now. */
static uint64_t clock_offset(const struct uftrace_plan *plan)
{
    const uint64_t ended =
        plan->info.recorded ? (uint64_t)plan->info.recorded * 1000000000u : clock_ns(CLOCK_REALTIME);

    return ended > plan->last_ns ? ended - plan->last_ns : 0;
}

static int write_run(struct uftrace_write *write)
{
    const struct uftrace_plan *plan = write->plan;
    int r = trace_writer_tag(write->writer, "times", "uftrace's, placed by the second in which it ended",
                             write->err);

    if (r == 0)
        r = write_threads(write);
    if (r == 0)
        r = trace_writer_end(write->writer, plan->last_ns + write->offset_ns, plan->info.exit_status,
                             write->err);
    return r;
}

int uftrace_plan_write(struct uftrace_plan *plan, struct tracestore *store, const char *name,
                       char *(*demangle)(const char *name), int64_t *ret_run_id, struct error *err)
{
    AUTO_FREE struct uftrace_write *write = calloc(1, sizeof(*write));
    CLEANUP(cleanup_writer) struct trace_writer *writer = NULL;
    struct trace_run_description run = {.options = "import --format uftrace"};
    struct error ignored = {0};
    int64_t run_id;
    int r;

    if (!write)
        return error_no_memory(err);
    *write = (struct uftrace_write){.plan = plan, .demangle = demangle, .err = err};
    write->offset_ns = clock_offset(plan);
    run.name = name ? name : path_file_name(plan->dir);
    run.command = plan->info.command;
    run.started_ns = plan->first_ns + write->offset_ns;
    r = trace_writer_begin(store, &run, NULL, &writer, err);
    if (r < 0)
        return r;
    run_id = trace_writer_run_id(writer);
    write->writer = writer;
    r = write_run(write);
    if (r == 0) {
        *ret_run_id = run_id;
        return 0;
    }
    trace_writer_abandon(writer, &ignored); /* `err` says what failed; a run that stays is unfinished */
    return r;
}
