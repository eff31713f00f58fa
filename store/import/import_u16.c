/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Import of `.u16` directories (import_u16.h says what they are).
 *
 * Two passes: the first checks every byte, the second writes. A file that changes in between makes the second
 * pass fail; the run is then removed again.
 */
#include "store/import/import_u16.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "store/import/import_plan.h"

DEFINE_CLEANUP(cleanup_writer, struct trace_writer *, trace_writer_free)

struct u16_write {
    struct u16_plan *plan;
    struct trace_writer *writer;
    char *(*demangle)(const char *name);
    int64_t image_id, process_id;
    struct u16_names *names;      /* NULL: words have no names */
    size_t names_index;           /* of the .info file that they are from */
    bool began;                   /* `names` is set */
    uint32_t ids[U16_WORDS];      /* store's function_id of a word, 0: not yet called */
    uint32_t ordinals[U16_WORDS]; /* number_names */
    struct error *err;
};

static int compare_names(const void *left, const void *right, void *context)
{
    const struct u16_names *names = context;
    const uint32_t *a = left, *b = right;
    int order = strcmp(names->names[*a], names->names[*b]);

    return order ? order : *a < *b ? -1 : *a > *b;
}

/* Functions are known by name: the same name in two traces is the same function, whatever its number. Where
 * one .info file gives a name to several numbers (static functions), the first keeps address 0 and the others
 * get 1, 2 ... in the order of their numbers, so that they stay apart. `ordinals` has U16_WORDS items. */
static int number_names(const struct u16_names *names, uint32_t *ordinals)
{
    AUTO_FREE uint32_t *sorted = malloc((names->count + 1) * sizeof(*sorted));
    size_t count = 0;

    if (!sorted)
        return -ENOMEM;
    for (uint32_t word = 1; word < U16_WORDS; word++)
        if (names->names[word])
            sorted[count++] = word;
    qsort_r(sorted, count, sizeof(*sorted), compare_names, (void *)names);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(names->names[sorted[i]], names->names[sorted[i - 1]]))
            ordinals[sorted[i]] = ordinals[sorted[i - 1]] + 1;
    return 0;
}

/* Functions are registered when they are called first, so that their numbers are near to each other where
 * their calls are. */
static int register_function(void *context, uint32_t word)
{
    struct u16_write *write = context;
    char number[32];
    AUTO_FREE char *demangled = NULL;
    struct trace_function_description function = {.name = number};

    snprintf(number, sizeof(number), "function_%u", word);
    if (write->names) {
        function.name = write->names->names[word];
        function.address = write->ordinals[word];
    }
    if (write->demangle)
        demangled = write->demangle(function.name);
    function.demangled = demangled;
    return trace_writer_function(write->writer, write->image_id, &function, &write->ids[word], write->err);
}

/* From here on words mean what a file's .info, if it has one, says. */
static int begin_names(struct u16_write *write, const struct u16_file *file)
{
    int r;

    if (write->began && write->names_index == file->names_index)
        return 0;
    write->began = true;
    write->names_index = file->names_index;
    memset(write->ids, 0, sizeof(write->ids));
    memset(write->ordinals, 0, sizeof(write->ordinals));
    r = u16_plan_names(write->plan, file, &write->names, write->err);
    if (r == 0 && write->names && number_names(write->names, write->ordinals) < 0)
        r = error_no_memory(write->err);
    return r;
}

static int write_process(struct u16_write *write, const struct u16_file *file, uint64_t now)
{
    struct trace_process_description process = {
        .pid = (int32_t)file->pid,
        .rank = -1,
        .exe = file->numbered ? "" : file->group,
        .argv = "",
        .started_ns = now,
    };

    return trace_writer_process(write->writer, &process, &write->process_id, write->err);
}

static int write_file(struct u16_write *write, struct u16_file *file, uint64_t now)
{
    struct trace_thread_description description = {
        .process_id = write->process_id,
        .tid = (int32_t)file->tid,
        .started_ns = now,
        .returns = TRACE_RETURNS_PROBED,
    };
    struct u16_pass pass = {.writer = write->writer,
                            .ids = write->ids,
                            .know = register_function,
                            .context = write,
                            .err = write->err};
    char label[48];
    int r = begin_names(write, file);

    snprintf(label, sizeof(label), "%llu.%llu", (unsigned long long)file->process,
             (unsigned long long)file->thread);
    description.label = label;
    if (r == 0)
        r = trace_writer_thread(write->writer, &description, &pass.thread, write->err);
    pass.names = write->names;
    if (r == 0)
        r = u16_pass_file(write->plan, file, &pass);
    if (r == 0)
        r = thread_writer_end(pass.thread, clock_ns(CLOCK_REALTIME), write->err);
    return r;
}

static int write_files(struct u16_write *write)
{
    static const struct trace_image_description image = {.path = "u16", .build_id = "", .kind = "import"};
    struct u16_plan *plan = write->plan;
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = trace_writer_image(write->writer, &image, &write->image_id, write->err);

    for (size_t i = 0; r == 0 && i < plan->file_count; i++) {
        if (!i || plan->files[i].process != plan->files[i - 1].process)
            r = write_process(write, &plan->files[i], now);
        if (r == 0)
            r = write_file(write, &plan->files[i], now);
    }
    return r;
}

int u16_plan_write(struct u16_plan *plan, struct tracestore *store, const char *name,
                   char *(*demangle)(const char *name), int64_t *ret_run_id, struct error *err)
{
    AUTO_FREE char *command = NULL;
    AUTO_FREE struct u16_write *write = calloc(1, sizeof(*write));
    CLEANUP(cleanup_writer) struct trace_writer *writer = NULL;
    struct trace_run_description run = {.options = "import --format u16"};
    struct error ignored = {0};
    int64_t run_id;
    int r;

    if (!write || asprintf(&command, "import %s", plan->dir) < 0)
        return error_no_memory(err);
    run.name = name ? name : path_file_name(plan->dir);
    run.command = command;
    run.started_ns = clock_ns(CLOCK_REALTIME);
    r = trace_writer_begin(store, &run, NULL, &writer, err);
    if (r < 0)
        return r;
    run_id = trace_writer_run_id(writer);
    write->plan = plan;
    write->writer = writer;
    write->demangle = demangle;
    write->err = err;
    r = write_files(write);
    if (r == 0)
        r = trace_writer_end(writer, clock_ns(CLOCK_REALTIME), -1, err);
    if (r == 0) {
        *ret_run_id = run_id;
        return 0;
    }
    trace_writer_abandon(writer, &ignored); /* `err` says what failed; a run that stays is unfinished */
    return r;
}
