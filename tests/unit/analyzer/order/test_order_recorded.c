/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order of recorded threads against the truth: random programs write all their calls. The store gets
 * functions and returns only, as a recording does, of many threads that each stop at another moment; from
 * these the places of the open calls and the iterations around them must follow, or be unknown, but never be
 * wrong. The programs know from where each call was made, and time says which moment came first.
 */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/recorded.h"
#include "image/functions/functions.h"
#include "tests/unit/analyzer/order_programs.h"

#define MOMENTS 60
#define PAIRS 1000
#define DEPTH_MAX 64

static char folder[] = "/tmp/tracectl-recorded-XXXXXX";

struct told_event {
    uint64_t is_call, function, site; /* addresses; of the call, what it returns to */
};

struct told_calls {
    struct told_event *events;
    size_t count;
};

struct share {
    size_t places, placed, wrong_places;
    size_t pairs, certain, assumed, wrong;
};

static void run(const char *command, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *command, ...)
{
    char line[PATH_MAX];
    va_list arguments;

    va_start(arguments, command);
    vsnprintf(line, sizeof(line), command, arguments);
    va_end(arguments);
    cr_assert_eq(system(line), 0, "%s", line);
}

static void read_calls(const char *path, struct told_calls *calls)
{
    AUTO_FCLOSE FILE *in = fopen(path, "r");

    cr_assert_not_null(in);
    calls->events = calloc(20001, sizeof(*calls->events));
    calls->count = fread(calls->events, sizeof(*calls->events), 20001, in);
    cr_assert_gt(calls->count, 100);
}

/* ---------------------------------------------------------------------------------------------- the store */

static uint32_t id_of(const struct told_event *event, const uint64_t *addresses, const uint32_t *ids,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (addresses[i] == event->function)
            return ids[i];
    cr_assert_fail("a call of no function");
    return 0;
}

/* The program's functions, its stubs included, as a recording writes them. */
static size_t write_functions(struct trace_writer *writer, const char *program, uint64_t *addresses,
                              uint32_t *ids)
{
    const struct trace_image_description image = {program, "", "main"};
    AUTO_ELF_IMAGE struct elf_image *opened = NULL;
    struct image_function *functions;
    int64_t image_id;
    size_t count;

    cr_assert_eq(elf_image_open(program, &opened, NULL), 0);
    cr_assert_eq(image_functions(opened, &functions, &count, NULL), 0);
    cr_assert_lt(count, 256);
    cr_assert_eq(trace_writer_image(writer, &image, &image_id, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        const struct trace_function_description function = {
            .name = functions[i].name, .address = functions[i].address, .size = functions[i].size};

        addresses[i] = functions[i].address;
        cr_assert_eq(trace_writer_function(writer, image_id, &function, &ids[i], NULL), 0);
    }
    image_functions_free(functions, count);
    return count;
}

/* The run's threads: each the beginning of the same stream, up to its moment. */
static int64_t write_run(struct tracestore *store, const char *program, const struct told_calls *calls,
                         const size_t *moments)
{
    const struct trace_run_description run = {.name = "told", .command = program, .options = ""};
    const struct trace_process_description process = {.pid = 1, .rank = -1, .exe = program, .argv = ""};
    struct trace_thread_description thread = {.returns = TRACE_RETURNS_PROBED};
    uint64_t addresses[256];
    struct trace_writer *writer;
    uint32_t ids[256];
    int64_t run_id;
    size_t count;

    cr_assert_eq(trace_writer_begin(store, &run, NULL, &writer, NULL), 0);
    run_id = trace_writer_run_id(writer);
    count = write_functions(writer, program, addresses, ids);
    cr_assert_eq(trace_writer_process(writer, &process, &thread.process_id, NULL), 0);
    for (size_t i = 0; i < MOMENTS; i++) {
        struct thread_writer *stream;
        char label[32];

        snprintf(label, sizeof(label), "0.%03zu", i);
        thread.label = label;
        cr_assert_eq(trace_writer_thread(writer, &thread, &stream, NULL), 0);
        for (size_t k = 0; k < moments[i]; k++) {
            if (calls->events[k].is_call)
                cr_assert_eq(thread_writer_call(stream, id_of(&calls->events[k], addresses, ids, count)), 0);
            else
                cr_assert_eq(thread_writer_return(stream), 0);
        }
    }
    cr_assert_eq(trace_writer_end(writer, 1, 0, NULL), 0);
    trace_writer_free(writer);
    return run_id;
}

/* ---------------------------------------------------------------------------------------------- checking */

/* The calls that are open at a moment: where each was called from. */
static size_t open_sites(const struct told_calls *calls, size_t moment, uint64_t *sites)
{
    size_t depth = 0;

    for (size_t i = 0; i < moment; i++) {
        if (!calls->events[i].is_call) {
            depth--;
            continue;
        }
        cr_assert_lt(depth, DEPTH_MAX);
        sites[depth++] = calls->events[i].site;
    }
    return depth;
}

static void check_places(const struct recorded_sample *recorded, const struct told_calls *calls,
                         const size_t *moments, struct share *share)
{
    uint64_t sites[DEPTH_MAX] = {0};

    for (size_t i = 0; i < recorded->set->thread_count; i++) {
        size_t number =
            (size_t)atoi(strchr(sample_text(recorded->set, recorded->set->threads[i].label), '.') + 1);
        size_t depth = open_sites(calls, moments[number], sites);

        cr_assert_eq(recorded->set->threads[i].count, depth);
        for (size_t k = 0; k + 1 < depth; k++) {
            const struct sample_place *place = sample_place_of(recorded->set, i, k);

            share->places++;
            share->placed += place->address != SAMPLE_NO_ADDRESS;
            share->wrong_places += place->address != SAMPLE_NO_ADDRESS && place->address + 1 != sites[k + 1];
        }
    }
}

static void check_pairs(const struct recorded_sample *recorded, const size_t *moments, struct share *share)
{
    AUTO_ORDER_TREE struct order_tree *order = NULL;

    cr_assert_eq(order_tree_new(recorded->set, &recorded->source, true, &order, NULL), 0);
    for (size_t i = 0; i < PAIRS; i++) {
        uint32_t a = (uint32_t)rand() % recorded->set->thread_count;
        uint32_t b = (uint32_t)rand() % recorded->set->thread_count;
        size_t at_a =
            moments[atoi(strchr(sample_text(recorded->set, recorded->set->threads[a].label), '.') + 1)];
        size_t at_b =
            moments[atoi(strchr(sample_text(recorded->set, recorded->set->threads[b].label), '.') + 1)];
        struct order_answer answer;

        cr_assert_eq(order_tree_compare(order, a, b, &answer), 0);
        share->pairs++;
        if (at_a == at_b || (answer.relation != ORDER_BEHIND && answer.relation != ORDER_AHEAD))
            continue;
        share->assumed += answer.assumed;
        share->certain += !answer.assumed;
        share->wrong += !answer.assumed && (answer.relation == ORDER_BEHIND) != (at_a < at_b);
    }
}

static void check_program(unsigned seed, const char *flags, struct share *share)
{
    AUTO_RECORDED_SAMPLE struct recorded_sample *recorded = NULL;
    char *text = order_program(seed), path[PATH_MAX], store_path[PATH_MAX];
    struct tracestore *store;
    struct told_calls calls;
    size_t moments[MOMENTS];
    int64_t run_id;

    snprintf(path, sizeof(path), "%s/program.c", folder);
    AUTO_FCLOSE FILE *out = fopen(path, "w");
    cr_assert(out && fputs(text, out) >= 0 && fflush(out) == 0);
    free(text);
    run("cd %s && %s -w -DTRACED -finstrument-functions -o program program.c && ./program %u told", folder,
        flags, seed);
    snprintf(path, sizeof(path), "%s/told", folder);
    read_calls(path, &calls);
    for (size_t i = 0; i < MOMENTS; i++)
        moments[i] = 1 + (size_t)rand() % (calls.count - 1);
    snprintf(store_path, sizeof(store_path), "%s/store.db", folder);
    cr_assert_eq(tracestore_open(store_path, TRACESTORE_CREATE, &store, NULL), 0);
    snprintf(path, sizeof(path), "%s/program", folder);
    run_id = write_run(store, path, &calls, moments);
    cr_assert_eq(recorded_sample_new(store, run_id, 0, &recorded, NULL), 0);
    check_places(recorded, &calls, moments, share);
    check_pairs(recorded, moments, share);
    tracestore_free(store);
    free(calls.events);
}

Test(order, recorded_threads_never_contradict_the_time)
{
    static const char *const flags[] = {"gcc -O0 -g", "gcc -O2", "clang -O2"};
    const char *wanted = getenv("ORDER_PROGRAMS");
    unsigned programs = wanted ? (unsigned)atoi(wanted) : 2;
    struct share all = {0};

    cr_assert_not_null(mkdtemp(folder));
    srand(2);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        struct share share = {0};

        for (unsigned seed = 1; seed <= programs; seed++)
            check_program(seed + (unsigned)i * 1000, flags[i], &share);
        if (getenv("ORDER_VERBOSE"))
            fprintf(stderr,
                    "%-12s %6zu places, %5.1f %% known, %zu wrong; %6zu pairs, %5.1f %% ordered, %5.1f %% "
                    "assumed, %zu "
                    "wrong\n",
                    flags[i], share.places, 100.0 * (double)share.placed / (double)share.places,
                    share.wrong_places, share.pairs, 100.0 * (double)share.certain / (double)share.pairs,
                    100.0 * (double)share.assumed / (double)share.pairs, share.wrong);
        all.places += share.places;
        all.placed += share.placed;
        all.wrong_places += share.wrong_places;
        all.pairs += share.pairs;
        all.certain += share.certain;
        all.wrong += share.wrong;
    }
    run("rm -r %s", folder);
    cr_assert_eq(all.wrong_places, 0, "of %zu", all.places);
    cr_assert_eq(all.wrong, 0, "of %zu", all.pairs);
    cr_assert_gt(all.placed, all.places / 4);
    cr_assert_gt(all.certain, all.pairs / 4);
}
