/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: nlr_bench EVENTS [DIRECTORY...]
 *
 * What nested loop recognition (Procedure 1 alone) takes in memory, without a store. Prints a JSON array with
 * an object for each set and K:
 *
 *   set, k, events     a directory's set is all .u16 files in it, one thread each, calls and returns
 *   entries, bodies    of the summaries, in the loop table
 *   reduction          events / entries
 *   million_per_second events, by processor time; the best of three times
 *
 * Sets of its own, of EVENTS events each, with the same random numbers each time:
 *
 *   nested    loops in loops with changing counts
 *   long      one loop of 45 different symbols: too long for K = 10
 *   noise     symbols at random: nothing repeats
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/loops/nlr.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define ROUNDS 3

/* The streams of a set, one behind the other. */
struct set {
    const char *name;
    uint16_t *symbols;
    size_t count, capacity;
    size_t *ends; /* of the streams */
    size_t streams, stream_capacity;
};

struct result {
    size_t entries, bodies;
    uint64_t ns;
};

static bool first_row = true;

static void check(bool fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "nlr_bench: %s\n", what);
        exit(1);
    }
}

static void set_release(struct set *set)
{
    free(set->symbols);
    free(set->ends);
}

static void end_stream(struct set *set)
{
    check(!array_reserve(&set->ends, &set->stream_capacity, set->streams + 1), "no memory");
    set->ends[set->streams++] = set->count;
}

static struct result reduce(const struct set *set, uint32_t max_body)
{
    const struct nlr_options options = {max_body, NLR_STRICT_REPEATS};
    struct loop_table table = {0};
    struct nlr_builder *builder = NULL;
    struct result result = {0};
    uint64_t begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    size_t at = 0;

    check(!nlr_builder_new(&table, &options, &builder), "no builder");
    for (size_t stream = 0; stream < set->streams; stream++) {
        struct nlr_sequence sequence;

        for (; at < set->ends[stream]; at++)
            check(!nlr_builder_push(builder, nlr_symbol(set->symbols[at])), "no memory");
        check(!nlr_builder_take(builder, &sequence), "no memory");
        result.entries += sequence.count;
        free(sequence.elements);
    }
    result.ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun;
    result.bodies = table.count;
    nlr_builder_free(builder);
    loop_table_release(&table);
    return result;
}

static void measure(const struct set *set)
{
    static const uint32_t lengths[] = {10, 50};

    for (size_t i = 0; i < ARRAY_SIZE(lengths) && set->count; i++) {
        struct result best = {.ns = UINT64_MAX};

        for (int round = 0; round < ROUNDS; round++) {
            struct result result = reduce(set, lengths[i]);

            if (result.ns < best.ns)
                best = result;
        }
        printf(
            "%s\n  {\"set\": \"%s\", \"k\": %u, \"events\": %zu, \"entries\": %zu, \"bodies\": %zu, "
            "\"reduction\": %.2f, \"million_per_second\": %.1f}",
            first_row ? "" : ",", set->name, lengths[i], set->count, best.entries, best.bodies,
            (double)set->count / (double)best.entries, (double)set->count * 1e3 / (double)best.ns);
        first_row = false;
    }
}

/* ------------------------------------------------------------------------------------------ sets of its own
 */

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % limit);
}

static void generate(const char *name, size_t events)
{
    CLEANUP(set_release) struct set set = {.name = name};
    uint64_t state = 1;

    check(!array_reserve(&set.symbols, &set.capacity, events), "no memory");
    while (set.count < events) {
        uint16_t symbol = (uint16_t)(1 + set.count % 45);

        if (*name != 'l') /* noise, or what is between the loops */
            symbol = (uint16_t)(1 + random_below(&state, 200));
        set.symbols[set.count++] = symbol;
        for (uint32_t outer = *name == 'n' && name[1] == 'e' ? 5 + random_below(&state, 50) : 0; outer;
             outer--)
            for (uint32_t inner = 0; inner < 60 && set.count < events; inner++)
                set.symbols[set.count++] = (uint16_t)(201 + (inner < 50 ? inner % 2 : inner % 5));
    }
    end_stream(&set);
    measure(&set);
}

/* ------------------------------------------------------------------------------------------ directories */

static void read_file(struct set *set, const char *directory, const char *name)
{
    AUTO_FCLOSE FILE *file = NULL;
    char path[4096];
    size_t got;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "re");
    check(file != NULL, path);
    do {
        check(!array_reserve(&set->symbols, &set->capacity, set->count + 65536), "no memory");
        got = fread(set->symbols + set->count, sizeof(*set->symbols), 65536, file);
        set->count += got;
    } while (got);
    end_stream(set);
}

static void read_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    CLEANUP(set_release) struct set set = {.name = slash && slash[1] ? slash + 1 : path};
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);

    check(count >= 0, path);
    for (int i = 0; i < count; i++) {
        const char *suffix = strrchr(entries[i]->d_name, '.');

        if (suffix && !strcmp(suffix, ".u16"))
            read_file(&set, path, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    measure(&set);
}

int main(int argc, char **argv)
{
    size_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

    check(events > 0, "usage: nlr_bench EVENTS [DIRECTORY...]");
    printf("[");
    generate("nested", events);
    generate("long", events);
    generate("noise", events);
    for (int i = 2; i < argc; i++)
        read_directory(argv[i]);
    printf("\n]\n");
    return 0;
}
