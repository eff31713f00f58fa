/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: order_bench [THREADS]     (200000)
 *
 * What merging and ordering the stacks of many threads takes: they stand in the loops of solve() below, read
 * off this program's own code, with made-up frames above; one of them has come less far than all others.
 * Prints a JSON array with an object for each shape:
 *
 *   shape        positions: all in the same iteration, at different calls; iterations: in 10,000 different
 * ones threads, frames, classes      classes: points that threads stand at, iterations told apart merge,
 * order      seconds of processor time: a tree by function and line; one by points, ranked found whether that
 * one thread is what stat calls the least progressed
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/order_tree.h"
#include "base/array.h"
#include "base/clock.h"

enum { ABOVE = 12, TOGETHER = 20, ITERATIONS = 100 };

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "order_bench: %s\n", what);
    exit(1);
}

/* ------------------------------------------------------------------------------ what threads are said to run
 */

static volatile unsigned done, turns_wanted = 3; /* volatile: no loop is unrolled */

#define CALLED __attribute__((noinline)) static void

CALLED prepare(unsigned turn)
{
    done += turn;
}

CALLED exchange(unsigned turn)
{
    done ^= turn;
}

CALLED relax_rows(unsigned turn)
{
    done -= turn;
}

CALLED finish(unsigned turn)
{
    done |= turn;
}

CALLED solve(unsigned turns)
{
    for (unsigned i = 0; i < turns; i++) {
        prepare(i);
        for (unsigned j = 0; j < turns; j++) {
            exchange(j);
            relax_rows(j);
        }
        finish(i);
    }
    prepare(turns);
}

/* ---------------------------------------------------------------------------------------------- the sample
 */

struct bench {
    struct sample_set *set;
    uint32_t outer;    /* place: the call of solve() */
    uint32_t calls[8]; /* places: calls in solve(), by address; the first one is the least progressed */
    size_t call_count;
    uint32_t above[TOGETHER][ABOVE]; /* places of made-up stacks */
    size_t slow;                     /* the thread that is behind */
    bool iterations;
};

static struct image_function *functions;
static size_t function_count;

static const struct image_function *function_named(const char *name)
{
    for (size_t i = 0; i < function_count; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    fail("its own functions have no names");
}

static uint32_t text(struct bench *bench, const char *words)
{
    uint32_t number;

    if (sample_set_text(bench->set, words, &number) < 0)
        fail("no memory");
    return number;
}

static uint32_t add_place(struct bench *bench, const struct sample_place *place)
{
    uint32_t number;

    if (sample_set_place(bench->set, place, &number) < 0)
        fail("no memory");
    return number;
}

/* The places of all calls in the function, of `callee` where one is wanted; returns how many. */
static size_t add_calls(struct bench *bench, struct elf_image *image, uint32_t number, const char *name,
                        const struct image_function *callee, uint32_t *ret_places, size_t most)
{
    AUTO_DISASM struct disasm *disasm = NULL;
    AUTO_FLOW_GRAPH struct flow_graph *graph = NULL;
    const struct image_function *function = function_named(name);
    size_t count = 0;

    if (disasm_new(&disasm, NULL) < 0 ||
        flow_graph_new(image, functions, function_count, function, disasm, &graph) < 0)
        fail("cannot read its own code");
    for (size_t i = 0; i < graph->instruction_count && count < most; i++) {
        const struct instruction *at = &graph->instructions[i];

        if (at->kind != INSTRUCTION_CALL || (callee && at->target != callee->address))
            continue;
        ret_places[count++] = add_place(bench, &(struct sample_place){.image = number,
                                                                      .function = text(bench, name),
                                                                      .address = at->address,
                                                                      .entry = function->address});
    }
    return count;
}

static void read_own_code(struct bench *bench)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    uint32_t number;

    if (elf_image_open("/proc/self/exe", &image, NULL) < 0 ||
        image_functions(image, &functions, &function_count, NULL) < 0 ||
        sample_set_image(bench->set, "order_bench", "/proc/self/exe", NULL, &number) < 0)
        fail("cannot read its own image");
    if (add_calls(bench, image, number, "main", function_named("solve"), &bench->outer, 1) != 1)
        fail("main() does not call solve()");
    bench->call_count =
        add_calls(bench, image, number, "solve", NULL, bench->calls, ARRAY_SIZE(bench->calls));
    if (bench->call_count < 3)
        fail("solve() does not call");
    image_functions_free(functions, function_count);
}

static void add_above(struct bench *bench)
{
    for (size_t i = 0; i < TOGETHER; i++)
        for (size_t k = 0; k < ABOVE; k++) {
            char name[32];

            /* They have their first frames in common. */
            snprintf(name, sizeof(name), "layer_%zu_%zu", k, k < ABOVE / 2 ? i % 3 : i);
            bench->above[i][k] = add_place(bench, &(struct sample_place){.image = SAMPLE_NO_IMAGE,
                                                                         .function = text(bench, name),
                                                                         .address = SAMPLE_NO_ADDRESS,
                                                                         .entry = SAMPLE_NO_ADDRESS});
        }
}

static void add_thread(struct bench *bench, size_t number)
{
    struct sample_thread thread = {.rank = (int)number};
    uint32_t stack[2 + ABOVE];
    char label[32];

    snprintf(label, sizeof(label), "%zu.0", number);
    thread.label = text(bench, label);
    stack[0] = bench->outer;
    stack[1] = bench->calls[number == bench->slow ? 0 : 1 + number % (bench->call_count - 2)];
    memcpy(stack + 2, bench->above[number % TOGETHER], sizeof(bench->above[0]));
    if (sample_set_thread(bench->set, &thread, stack, ARRAY_SIZE(stack)) < 0)
        fail("no memory");
}

/* The iterations of the loops in solve(). */
static int iterations_of(void *context, size_t thread, size_t frame, uint32_t depth, uint64_t *ret_count)
{
    const struct bench *bench = context;

    if (frame != 1)
        return -ENOENT;
    *ret_count = 0;
    if (bench->iterations && thread != bench->slow)
        *ret_count = depth == 1 ? 1 + thread % ITERATIONS : thread / ITERATIONS % ITERATIONS;
    return 0;
}

/* ---------------------------------------------------------------------------------------------- measuring */

static double merge(const struct sample_set *set)
{
    AUTO_PREFIX_TREE struct prefix_tree *tree = NULL;
    uint64_t begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

    if (prefix_tree_new(set, PREFIX_LINE, &tree) < 0 || prefix_tree_expand_all(tree, 0) < 0)
        fail("cannot merge");
    return (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun) / 1e9;
}

/* Whether the least progressed class is the slow thread alone. */
static bool found_slow(const struct bench *bench, const struct order_tree *order)
{
    const struct prefix_node *decided =
        order->decided == PREFIX_NONE ? NULL : &order->tree->nodes[order->decided];

    for (uint32_t i = 0; decided && i < decided->child_count; i++) {
        const struct prefix_node *child = &order->tree->nodes[decided->first_child + i];

        if (order->nodes[decided->first_child + i].flags & ORDER_NODE_LEAST)
            return child->count == 1 && order->tree->threads[child->first] == bench->slow;
    }
    return false;
}

static bool measure(size_t threads, bool iterations)
{
    struct bench bench = {.slow = threads / 3, .iterations = iterations};
    const struct order_source source = {.context = &bench, .iterations = iterations_of};
    AUTO_ORDER_TREE struct order_tree *order = NULL;
    double merging, ordering;
    uint64_t begun;
    bool found;

    if (sample_set_new(&bench.set) < 0)
        fail("no memory");
    read_own_code(&bench);
    add_above(&bench);
    for (size_t i = 0; i < threads; i++)
        add_thread(&bench, i);
    merging = merge(bench.set);
    begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (order_tree_new(bench.set, &source, false, &order, NULL) < 0)
        fail("cannot order");
    ordering = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun) / 1e9;
    found = found_slow(&bench, order);
    printf(
        "%s{\"shape\": \"%s\", \"threads\": %zu, \"frames\": %zu, \"classes\": %zu, \"merge\": %.3f, "
        "\"order\": %.3f, \"found\": %s}",
        iterations ? ",\n " : "[", iterations ? "iterations" : "positions", threads, bench.set->stack_count,
        order->point_count, merging, ordering, found ? "true" : "false");
    order_tree_free(take_pointer(order)); /* which borrows the set */
    sample_set_free(bench.set);
    return found;
}

int main(int argc, char **argv)
{
    long threads = argc > 1 ? atol(argv[1]) : 200000;
    bool found;

    if (threads < 10 || threads > 10000000)
        fail("from 10 to 10000000 threads");
    solve(turns_wanted);
    found = measure((size_t)threads, false);
    found = measure((size_t)threads, true) && found;
    printf("]\n");
    return done == 0 || !found;
}
