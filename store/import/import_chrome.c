/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The second pass: events in the order of threads and times become calls and returns (import_chrome.h). */
#include "store/import/import_chrome.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "store/import/import_chrome_plan.h"

#define FLUSH_BYTES (8u << 20)

DEFINE_CLEANUP(cleanup_writer, struct trace_writer *, trace_writer_free)

/* A call that is open. */
struct frame {
    int64_t until; /* it ends by then, because it does or a call around it */
    bool whole;    /* it is an X */
    bool own_end;  /* and `until` is where it says that it ends */
};

struct chrome_write {
    struct chrome_plan *plan;
    struct trace_writer *writer;
    char *(*demangle)(const char *name);
    struct error *err;
    int64_t offset_ns; /* from the file's time to ns since 1970 */
    int64_t image_id;
    uint32_t *functions; /* the store's, by name; 0: not registered yet */

    /* the thread */
    const struct chrome_thread *source; /* NULL: none yet */
    struct thread_writer *thread;
    struct frame *frames;
    size_t depth, capacity;
    int64_t last_ns;
    bool inferred;
    uint64_t clipped; /* calls whose ends were not where the file has them */
};

static uint64_t stored_time(const struct chrome_write *write, int64_t ns)
{
    return (uint64_t)(ns + write->offset_ns);
}

static int no_memory(const struct chrome_write *write, int r)
{
    return r == -ENOMEM ? error_no_memory(write->err) : r;
}

static int find_function(struct chrome_write *write, uint32_t name, uint32_t *ret_function)
{
    const char *text = write->plan->names[name];
    AUTO_FREE char *demangled = NULL;
    struct trace_function_description function = {.name = text};
    int r = 0;

    if (!write->functions[name]) {
        demangled = write->demangle ? write->demangle(text) : NULL;
        function.demangled = demangled;
        r = trace_writer_function(write->writer, write->image_id, &function, &write->functions[name],
                                  write->err);
    }
    *ret_function = write->functions[name];
    return r;
}

/* ------------------------------------------------------------------------------------------ calls */

static int infer(struct chrome_write *write)
{
    if (write->inferred)
        return 0;
    write->inferred = true;
    return thread_writer_infers(write->thread, write->err);
}

/* The innermost call ends, at `ns`. `seen`: the file says so. */
static int close_call(struct chrome_write *write, int64_t ns, bool seen)
{
    int r = seen ? 0 : infer(write);

    write->clipped += !seen;
    write->depth--;
    if (r == 0)
        r = thread_writer_anchor(write->thread, stored_time(write, ns));
    if (r == 0)
        r = thread_writer_return(write->thread);
    return no_memory(write, r);
}

/* Ends the calls that are over by `ns`. */
static int close_until(struct chrome_write *write, int64_t ns)
{
    int r = 0;

    while (r == 0 && write->depth && write->frames[write->depth - 1].until <= ns) {
        const struct frame *frame = &write->frames[write->depth - 1];

        r = close_call(write, frame->until, frame->own_end);
    }
    return r;
}

static int put_call(struct chrome_write *write, const struct chrome_event *event)
{
    uint32_t function;
    int r = find_function(write, event->name, &function);

    if (r == 0)
        r = event->detail & CHROME_ASSUMED ? thread_writer_call_assumed(write->thread, function, 0)
                                           : thread_writer_call(write->thread, function);
    return no_memory(write, r);
}

static int open_call(struct chrome_write *write, const struct chrome_event *event)
{
    const bool whole = event->kind == CHROME_WHOLE;
    int64_t around = write->depth ? write->frames[write->depth - 1].until : INT64_MAX;
    int64_t until = whole ? event->ns + event->duration : INT64_MAX;
    int r = array_reserve(&write->frames, &write->capacity, write->depth + 1);

    if (r < 0)
        return no_memory(write, r);
    write->frames[write->depth++] = (struct frame){
        .until = until < around ? until : around, .whole = whole, .own_end = whole && until <= around};
    if (event->detail & CHROME_UNKNOWN)
        r = infer(write);
    return r < 0 ? r : put_call(write, event);
}

/* An E: the innermost B ends, and with it what is open inside. */
static int end_call(struct chrome_write *write, const struct chrome_event *event)
{
    size_t begins = write->depth;
    int r = 0;

    while (begins && write->frames[begins - 1].whole)
        begins--;
    if (!begins)
        return thread_writer_lost_by_kind(write->thread, stored_time(write, event->ns), 1, 1,
                                          "an end without its beginning", write->err);
    while (r == 0 && write->depth > begins)
        r = close_call(write, event->ns, false);
    return r < 0 ? r : close_call(write, event->ns, true);
}

static int take_event(struct chrome_write *write, const struct chrome_event *event)
{
    int r;

    if (event->kind == CHROME_INSTANT && write->source->slices)
        return 0;
    r = close_until(write, event->ns);
    write->last_ns = event->ns;
    if (r == 0)
        r = no_memory(write, thread_writer_anchor(write->thread, stored_time(write, event->ns)));
    if (r < 0)
        return r;
    switch (event->kind) {
    case CHROME_BEGIN:
    case CHROME_WHOLE:
        return open_call(write, event);
    case CHROME_END:
        return end_call(write, event);
    case CHROME_LOST:
        return thread_writer_lost(write->thread, stored_time(write, event->ns), (uint64_t)event->detail,
                                  write->plan->names[event->name], write->err);
    case CHROME_INSTANT:
        return put_call(write, event);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ threads */

static int end_thread(struct chrome_write *write)
{
    int64_t last_ns = write->last_ns;
    int r;

    if (!write->source)
        return 0;
    if (write->depth && write->frames[0].until < INT64_MAX)
        last_ns = write->frames[0].until;
    r = close_until(write, INT64_MAX - 1);
    write->depth = 0;
    write->source = NULL;
    return r < 0 ? r : thread_writer_end(write->thread, stored_time(write, last_ns), write->err);
}

static const char *name_or_none(const struct chrome_plan *plan, uint32_t name)
{
    return name == CHROME_NO_NAME ? "" : plan->names[name];
}

static int begin_process(struct chrome_write *write, struct chrome_process *process, int64_t ns)
{
    const struct trace_process_description description = {
        .pid = process->pid,
        .rank = -1,
        .exe = name_or_none(write->plan, process->name),
        .argv = "",
        .started_ns = stored_time(write, ns),
    };

    return process->id ? 0 : trace_writer_process(write->writer, &description, &process->id, write->err);
}

/* Exports of ours put the label in front of the name. */
static const char *without_label(const char *name, const char *label)
{
    size_t length = strlen(label);

    if (strncmp(name, label, length) != 0 || (name[length] && name[length] != ' '))
        return name;
    return name + length + (name[length] == ' ');
}

static int begin_thread(struct chrome_write *write, const struct chrome_event *event)
{
    struct chrome_plan *plan = write->plan;
    const struct chrome_thread *source = &plan->threads[event->thread];
    struct chrome_process *process = &plan->processes[source->process];
    char label[48];
    struct trace_thread_description description = {
        .tid = source->tid,
        .label = label,
        .started_ns = stored_time(write, event->ns),
        .returns = source->slices ? TRACE_RETURNS_PROBED : TRACE_RETURNS_NONE,
    };
    int r = end_thread(write);

    snprintf(label, sizeof(label), "%lld.%lld", (long long)process->number, (long long)source->number);
    description.name = without_label(name_or_none(plan, source->name), label);
    if (r == 0)
        r = begin_process(write, process, event->ns);
    description.process_id = process->id;
    if (r == 0)
        r = trace_writer_thread(write->writer, &description, &write->thread, write->err);
    write->inferred = false;
    if (r == 0)
        write->source = source;
    return r;
}

static int take_row(struct chrome_write *write, const struct chrome_event *event)
{
    int r = 0;

    if (event->thread < 0)
        return trace_writer_loss(write->writer, stored_time(write, event->ns), (uint64_t)event->detail,
                                 write->plan->names[event->name], write->err);
    if (write->source != &write->plan->threads[event->thread])
        r = begin_thread(write, event);
    if (r == 0)
        r = take_event(write, event);
    if (r == 0 && trace_writer_pending_bytes(write->writer) > FLUSH_BYTES)
        r = trace_writer_flush(write->writer, clock_ns(CLOCK_REALTIME), write->err);
    return r;
}

/* ------------------------------------------------------------------------------------------ the run */

static int write_rows(struct chrome_write *write)
{
    AUTO_STATEMENT *rows = NULL;
    int result, r = chrome_plan_select(write->plan, &rows, write->err);

    while (r == 0 && (result = sqlite3_step(rows)) != SQLITE_DONE) {
        struct chrome_event event = chrome_plan_event(rows);

        r = result == SQLITE_ROW ? take_row(write, &event)
                                 : db_fail(write->plan->spool, write->err, "cannot read the import file");
    }
    return r < 0 ? r : end_thread(write);
}

static int write_tag(struct chrome_write *write, const char *key, uint64_t count)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)count);
    return count ? trace_writer_tag(write->writer, key, text, write->err) : 0;
}

static int write_run(struct chrome_write *write)
{
    static const struct trace_image_description image = {.path = "chrome", .build_id = "", .kind = "import"};
    int r = trace_writer_image(write->writer, &image, &write->image_id, write->err);

    if (r == 0)
        r = write_rows(write);
    if (r == 0)
        r = write_tag(write, "import: events of other kinds", write->plan->passed_over);
    if (r == 0)
        r = write_tag(write, "import: ends moved", write->clipped);
    if (r == 0)
        r = trace_writer_end(write->writer, stored_time(write, write->plan->last_ns), -1, write->err);
    return r;
}

/* The file's time 0 in ns since 1970; no event may come to lie before that. */
static int64_t clock_offset(const struct chrome_plan *plan)
{
    int64_t offset =
        plan->started_ns ? (int64_t)plan->started_ns : (int64_t)clock_ns(CLOCK_REALTIME) - plan->last_ns;

    return offset < 1 - plan->first_ns ? 1 - plan->first_ns : offset;
}

int chrome_plan_write(struct chrome_plan *plan, struct tracestore *store, const char *name,
                      char *(*demangle)(const char *name), int64_t *ret_run_id, struct error *err)
{
    AUTO_FREE char *command = NULL;
    AUTO_FREE uint32_t *functions = calloc(plan->name_count + 1, sizeof(*functions));
    CLEANUP(cleanup_writer) struct trace_writer *writer = NULL;
    struct chrome_write write = {.plan = plan,
                                 .demangle = demangle,
                                 .err = err,
                                 .offset_ns = clock_offset(plan),
                                 .functions = functions};
    struct trace_run_description run = {.options = "import --format chrome",
                                        .name = name ? name : path_file_name(plan->path)};
    struct error ignored = {0};
    int r;

    if (!functions || asprintf(&command, "import %s", plan->path) < 0)
        return error_no_memory(err);
    run.command = command;
    run.started_ns = plan->started_ns ? plan->started_ns : stored_time(&write, plan->first_ns);
    r = trace_writer_begin(store, &run, NULL, &writer, err);
    if (r < 0)
        return r;
    write.writer = writer;
    r = write_run(&write);
    free(write.frames);
    if (r == 0)
        *ret_run_id = trace_writer_run_id(writer);
    else
        trace_writer_abandon(writer, &ignored); /* `err` says what failed; a run that stays is unfinished */
    return r;
}
