/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/record_preview.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/table.h"
#include "collector/inline/inline.h"
#include "collector/launch/launch.h"
#include "collector/process/maps.h"
#include "collector/process/needed.h"
#include "collector/process/process.h"
#include "collector/process/target_file.h"
#include "collector/uprobe/kernel_features.h"

DEFINE_CLEANUP(cleanup_image_table, struct image_table *, image_table_free)

/* ------------------------------------------------------------------------------------ planning */

static bool is_nobody(void *context, pid_t pid)
{
    (void)context;
    (void)pid;
    return false;
}

/* Libraries are planned as they would be for a process: entries only where others map them too. */
static int plan_file(struct image_table *table, const char *path, const char *name, enum image_kind kind,
                     struct traced_image **ret_image, struct error *err)
{
    AUTO_TARGET_FILE struct target_file file = TARGET_FILE_NONE;
    struct image_source_file source = {.file = &file, .name = name, .kind = kind};
    int r = target_file_open(path, &file);

    if (r) {
        error_set(err, r, NULL, "cannot trace %s", name);
        return r;
    }
    if (kind == IMAGE_LIBRARY)
        source.shared = file_is_mapped_elsewhere(file.stat.st_dev, file.stat.st_ino, is_nobody, NULL);
    return image_table_get(table, &source, ret_image, err);
}

/* What is against inline probes in its program is so in a library. */
static int plan_library(struct image_table *table, const struct traced_image *program, const char *path,
                        const char *name, struct traced_image **ret_image, struct error *err)
{
    int r = plan_file(table, path, name, IMAGE_LIBRARY, ret_image, err);

    return r || *ret_image == program || !program || !(*ret_image)->inlined || !program->against_inline
               ? r
               : image_table_leave_inline(table, *ret_image, program->against_inline, err);
}

static int plan_command(struct image_table *table, const struct record_arguments *arguments,
                        struct error *err)
{
    struct traced_image *program = NULL, *library;
    char path[PATH_MAX], **paths = NULL;
    const char *interpreter;
    size_t count = 0;
    int r = launch_find(arguments->command[0], path, sizeof(path), err);

    if (!r)
        r = plan_file(table, path, path, IMAGE_MAIN, &program, err);
    if (!r && program->inlined && inline_memory_refusal(getpid(), program->inlined))
        r = image_table_leave_inline(table, program, inline_memory_refusal(getpid(), program->inlined), err);
    if (r || !function_choice_has_images(&arguments->choice) || !program->elf)
        return r;
    interpreter = elf_image_facts(program->elf)->interpreter;
    if (interpreter)
        r = libraries_needed(interpreter, path, &paths, &count, err);
    for (size_t i = 0; i < count; i++) {
        if (!r)
            r = plan_library(table, program, paths[i], paths[i], &library, err);
        free(paths[i]);
    }
    free(paths);
    return r;
}

/* What is against inline probes in a process, whatever it runs. */
static int consider_process(struct image_table *table, struct traced_image *program, pid_t pid,
                            struct error *err)
{
    const char *reason = NULL;
    int r = program && program->inlined ? inline_refusal(pid, program->inlined, &reason, err) : 0;

    return reason ? image_table_leave_inline(table, program, reason, err) : r;
}

static int plan_process(struct image_table *table, pid_t pid, struct error *err)
{
    AUTO_FREE char *exe = process_exe(pid);
    struct traced_image *image = NULL, *library;
    struct code_mapping *mappings = NULL;
    size_t count = 0;
    char link[64];
    int r;

    process_exe_link(pid, link, sizeof(link));
    r = exe ? plan_file(table, link, exe, IMAGE_MAIN, &image, err) : error_no_memory(err);
    if (!r)
        r = consider_process(table, image, pid, err);
    if (!r)
        r = process_code_mappings(pid, &mappings, &count, err);
    for (size_t i = 0; !r && i < count; i++)
        r = plan_library(table, image, mappings[i].link, mappings[i].path, &library, err);
    code_mappings_free(mappings, count);
    return r;
}

/* ------------------------------------------------------------------------------------ what is shown */

static const char *how_returns(const struct traced_image *image, const struct plan_probe *probe)
{
    if (probe->kind == PLAN_AT_RETURN)
        return "-";
    if (probe->return_probe)
        return "probed";
    if (probe->no_return == PLAN_RETURN_SITES)
        return "sites";
    return image->returns == TRACE_RETURNS_NONE ? "none" : "inferred";
}

/* A stub of its own, or one that takes a displaced call along (docs/inline.md). */
enum { INLINE_NS = 1, INLINE_CALL_NS = 8 };

static bool is_inline(const struct traced_image *image, size_t function)
{
    return image->inlined && image->inlined->chosen[function];
}

static uint32_t inline_cost(const struct traced_image *image, size_t function)
{
    return image->inlined->sites[function].displacement.calls ? INLINE_CALL_NS : INLINE_NS;
}

/* Why the function has the kernel's probe; NULL: it has not, or nothing else was requested. */
static const char *why_not_inline(const struct traced_image *image, size_t function)
{
    return image->inlined ? inline_image_reason(image->inlined, function) : image->not_inlined;
}

/* How the returns of a function with an inline probe come to be known. */
static const char *inline_returns(const struct traced_image *image, size_t function)
{
    if (image->returns == TRACE_RETURNS_NONE)
        return "none";
    return image->inlined->exact && image->inlined->exact[function] ? "exact" : "inferred";
}

static json_t *probe_json(const struct traced_image *image, const struct plan_probe *probe)
{
    const struct image_function *function = &image->functions[probe->function];

    return json_pack("{s:o, s:I, s:I, s:s, s:s, s:s, s:s, s:I, s:s*}", "function",
                     cli_json_text(image_function_display_name(function)), "address",
                     (json_int_t)function->address, "site", (json_int_t)probe->address, "kind",
                     plan_site_kind_text(probe->kind), "class", site_class_text(probe->class), "returns",
                     how_returns(image, probe), "backend", "uprobe", "cost_ns", (json_int_t)probe->cost_ns,
                     "not_inline", why_not_inline(image, probe->function));
}

static json_t *inline_json(const struct traced_image *image, size_t index)
{
    const struct image_function *function = &image->functions[index];

    return json_pack("{s:o, s:I, s:I, s:s, s:s, s:s, s:s, s:I}", "function",
                     cli_json_text(image_function_display_name(function)), "address",
                     (json_int_t)function->address, "site", (json_int_t)image->inlined->sites[index].address,
                     "kind", "entry", "class", "inline", "returns", inline_returns(image, index), "backend",
                     "inline", "cost_ns", (json_int_t)inline_cost(image, index));
}

static json_t *refusal_json(const struct traced_image *image, const struct plan_refusal *refusal)
{
    const struct image_function *function = &image->functions[refusal->function];

    return json_pack("{s:o, s:I, s:s, s:s}", "function", cli_json_text(image_function_display_name(function)),
                     "address", (json_int_t)function->address, "class", site_class_text(SITE_REFUSED),
                     "reason", site_refusal_text(refusal->reason));
}

/* The costs of one call of each planned function, added up: a mean over functions, not over calls. */
static double mean_cost(const struct traced_image *image)
{
    const struct plan *plan = image->plan;
    double sum = 0;
    size_t count = 0;

    for (size_t i = 0; i < plan->count; i++) {
        if (plan->probes[i].kind == PLAN_AT_RETURN || is_inline(image, plan->probes[i].function))
            continue;
        sum += plan->probes[i].cost_ns;
        count++;
    }
    for (size_t i = 0; image->inlined && i < image->function_count; i++) {
        if (!is_inline(image, i))
            continue;
        sum += inline_cost(image, i);
        count++;
    }
    return count ? sum / (double)count : 0;
}

/* What there is of it, in one line. */
static char *backend_text(const struct traced_image *image)
{
    if (image->inlined)
        return inline_image_summary(image->inlined, image->plan);
    return image->not_inlined ? strdup(image->not_inlined) : NULL;
}

static json_t *probes_json(const struct traced_image *image)
{
    json_t *probes = json_array();

    for (size_t i = 0; image->inlined && i < image->function_count; i++)
        if (is_inline(image, i))
            json_array_append_new(probes, inline_json(image, i));
    for (size_t i = 0; i < image->plan->count; i++)
        if (!is_inline(image, image->plan->probes[i].function))
            json_array_append_new(probes, probe_json(image, &image->plan->probes[i]));
    return probes;
}

static json_t *refusals_json(const struct traced_image *image)
{
    json_t *refused = json_array();

    for (size_t i = 0; i < image->plan->refusal_count; i++)
        if (!is_inline(image, image->plan->refusals[i].function))
            json_array_append_new(refused, refusal_json(image, &image->plan->refusals[i]));
    return refused;
}

/* How many functions have exact returns, and why the others have not. */
static json_t *exact_json(const struct inline_image *inlined)
{
    json_int_t counts[EXIT_REFUSALS] = {0};
    json_t *refused = json_object();

    for (size_t i = 0; i < inlined->count; i++)
        counts[inlined->exits->refusals[i]]++;
    for (size_t i = EXIT_NO_ENTRY + 1; i < EXIT_REFUSALS; i++)
        if (counts[i])
            json_object_set_new(refused, displace_exit_refusal_text((enum exit_refusal)i),
                                json_integer(counts[i]));
    return json_pack("{s:I, s:I, s:o}", "exact", counts[EXIT_OK], "inferred",
                     (json_int_t)inlined->chosen_count - counts[EXIT_OK], "because", refused);
}

static json_t *image_json(const struct traced_image *image)
{
    const struct plan *plan = image->plan;
    AUTO_FREE char *backend = NULL;
    json_t *object;

    if (!image_is_traced(image))
        return json_pack("{s:o, s:s}", "image", cli_json_text(image->path), "refused", image->refusal);
    backend = backend_text(image);
    object = json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o}", "image",
                       cli_json_text(image->path), "functions", (json_int_t)image->function_count, "wanted",
                       (json_int_t)plan->wanted, "seen", (json_int_t)plan->functions, "emulated",
                       (json_int_t)plan->by_class[SITE_EMULATED], "single_stepped",
                       (json_int_t)plan->by_class[SITE_SINGLE_STEPPED], "return_probes",
                       (json_int_t)plan->return_probes, "probes", (json_int_t)plan->count, "mean_cost_ns",
                       mean_cost(image), "plan", probes_json(image), "not_probed", refusals_json(image));
    if (backend)
        json_object_set_new(object, image->inlined ? "backends" : "not_inline", json_string(backend));
    if (image->inlined)
        json_object_set_new(object, "inline", json_integer((json_int_t)image->inlined->chosen_count));
    if (image->inlined && image->inlined->exits)
        json_object_set_new(object, "exact_returns", exact_json(image->inlined));
    if (plan->no_returns)
        json_object_set_new(object, "no_return_probes", json_string(plan->no_returns));
    return object;
}

static void print_inline(struct table *table, const struct traced_image *image, size_t index)
{
    const struct image_function *function = &image->functions[index];

    table_cell(table, image_function_display_name(function));
    table_cell_format(table, "0x%llx", (unsigned long long)function->address);
    table_cell_format(table, "0x%llx", (unsigned long long)image->inlined->sites[index].address);
    table_cell(table, "entry");
    table_cell(table, "inline");
    table_cell(table, inline_returns(image, index));
    table_cell_count(table, inline_cost(image, index));
}

static int print_functions(const struct traced_image *image)
{
    static const char *const titles[] = {"FUNCTION", ">ADDRESS", ">SITE", "AT", "CLASS", "RETURNS", ">NS"};
    const struct plan *plan = image->plan;
    struct table *table = table_new(stdout, titles, sizeof(titles) / sizeof(*titles), cli_colour());

    if (!table)
        return -ENOMEM;
    for (size_t i = 0; image->inlined && i < image->function_count; i++)
        if (is_inline(image, i))
            print_inline(table, image, i);
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_probe *probe = &plan->probes[i];
        const struct image_function *function = &image->functions[probe->function];

        if (is_inline(image, probe->function))
            continue;
        table_cell(table, image_function_display_name(function));
        table_cell_format(table, "0x%llx", (unsigned long long)function->address);
        table_cell_format(table, "0x%llx", (unsigned long long)probe->address);
        table_cell(table, plan_site_kind_text(probe->kind));
        table_cell(table, site_class_text(probe->class));
        table_cell(table, how_returns(image, probe));
        table_cell_count(table, probe->cost_ns);
    }
    for (size_t i = 0; i < plan->refusal_count; i++) {
        const struct image_function *function = &image->functions[plan->refusals[i].function];

        if (is_inline(image, plan->refusals[i].function))
            continue;
        table_cell(table, image_function_display_name(function));
        table_cell_format(table, "0x%llx", (unsigned long long)function->address);
        table_cell(table, "-");
        table_cell(table, "-");
        table_cell(table, site_class_text(SITE_REFUSED));
        table_cell(table, site_refusal_text(plan->refusals[i].reason));
        table_cell(table, "");
    }
    return table_free(table);
}

static int print_image(const struct traced_image *image)
{
    const struct plan *plan = image->plan;
    AUTO_FREE char *backend = NULL;
    int r;

    if (!image_is_traced(image)) {
        text_print(stdout, "%s: %s\n", image->path, image->refusal);
        return 0;
    }
    r = cli.verbosity < 0 ? 0 : print_functions(image);
    backend = backend_text(image);
    text_print(stdout,
               "%s%s: %zu functions, %zu selected, %zu recorded by %zu probes: %zu emulated, %zu "
               "single-stepped; %zu with return probes; %.0f ns per call on average over the functions\n",
               cli.verbosity < 0 ? "" : "\n", image->path, image->function_count, plan->wanted,
               plan->functions, plan->count, plan->by_class[SITE_EMULATED],
               plan->by_class[SITE_SINGLE_STEPPED], plan->return_probes, mean_cost(image));
    if (backend)
        text_print(stdout, "%s: %s%s\n", image->path, image->inlined ? "" : "no inline probes: ", backend);
    if (plan->no_returns)
        text_print(stdout, "%s: no return probes: %s\n", image->path, plan->no_returns);
    if (elf_image_given_up(image->elf))
        text_print(stdout, "%s\n", elf_image_given_up(image->elf));
    return r;
}

static int print_preview(const struct image_table *table)
{
    struct json_array list;
    struct cli_pager pager;
    int r = 0;

    if (cli.json) {
        cli_json_begin(&list);
        for (const struct traced_image *image = image_table_images(table); image; image = image->next)
            if (image->chosen)
                cli_json_item(&list, image_json(image));
        cli_json_end(&list);
        return 0;
    }
    cli_pager_begin(&pager);
    for (const struct traced_image *image = image_table_images(table); !r && image; image = image->next)
        if (image->chosen)
            r = print_image(image);
    cli_pager_end(&pager);
    return r;
}

int record_preview(const struct record_arguments *arguments, struct error *err)
{
    const struct recorder_options *recorder = &arguments->recorder;
    const struct image_table_options options = {
        .want_image = recorder->selected.want_image,
        .want = recorder->selected.want,
        .asked_name = recorder->selected.asked_name,
        .context = recorder->selected.context,
        .returns = recorder->content.returns,
        .inlined = recorder->probes.backend == RECORDER_INLINE,
        .not_inlined = recorder_inline_refusal(recorder),
        .reports_slot_sharing = kernel_reports_slots(),
    };
    CLEANUP(cleanup_image_table) struct image_table *table = NULL;
    int r = image_table_new(&options, &table, err);

    if (!r && arguments->command)
        r = plan_command(table, arguments, err);
    for (size_t i = 0; !r && i < arguments->pids.count; i++)
        r = plan_process(table, arguments->pids.items[i], err);
    if (r)
        return r;
    return print_preview(table) ? error_no_memory(err) : cli_finish(EXIT_NOTHING_FOUND);
}
