/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: concept_bench [THREADS [ATTRIBUTES]]     (10000 2000)
 *
 * What the concept lattice and the similarity matrix of many threads take. Prints a JSON array with an object
 * for each context:
 *
 *   name, threads, attributes, sets   the context; sets are the distinct ones
 *   concepts, links                   of the lattice; left out when there are more than the default limit
 *   lattice, direct                   seconds for the lattice (or for finding that it is too large), for the
 *                                     similarity matrix
 *   peak_kib                          the most memory that the process of this context had
 *
 * The two matrices must be equal. Contexts, with the same random numbers each time:
 *
 *   roles       20 roles in 5 groups: threads of one role do the same
 *   deviations  the same, and each thread has one of the last fifth of the attributes besides
 *   sparse      each thread has three attributes of its own choice beside those that all have
 *   nested      each thread came a little further than the one before: as many levels as attributes
 *   noise       each thread has each attribute with a probability of a half: the lattice is too large
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/cluster/lattice.h"
#include "analyzer/cluster/similarity.h"
#include "base/array.h"
#include "base/clock.h"

#define ROLES 20u
#define GROUPS 5u
#define PLACES 100u

static uint64_t random_state;

struct context {
    struct attribute_set *sets;
    uint32_t threads, attributes;
};

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % limit);
}

static void check(bool fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "concept_bench: %s\n", what);
        exit(1);
    }
}

/* ------------------------------------------------------------------------------------------ contexts */

/* Where in a program an attribute is: a place below PLACES. */
static uint32_t place_of(const struct context *context, uint32_t attribute)
{
    return (uint32_t)((uint64_t)attribute * PLACES / context->attributes);
}

/* All threads go through the first half of the places, the roles of a group through one of the next ten, and
 * each role through two of its own. */
static bool role_has(uint32_t role, uint32_t place)
{
    if (place < PLACES / 2)
        return true;
    if (place < PLACES / 2 + GROUPS * 2)
        return (place - PLACES / 2) % GROUPS == role % GROUPS;
    return place % ROLES == role;
}

static bool in_roles(const struct context *context, uint32_t thread, uint32_t attribute)
{
    return role_has(thread % ROLES, place_of(context, attribute));
}

static bool in_deviations(const struct context *context, uint32_t thread, uint32_t attribute)
{
    uint32_t common = context->attributes / 5 * 4, own = context->attributes - common;

    if (attribute < common)
        return in_roles(context, thread, attribute);
    return attribute - common == thread / ROLES % own;
}

/* One attribute each of three fifths, at random. */
static bool in_sparse(const struct context *context, uint32_t thread, uint32_t attribute)
{
    uint32_t fifth = context->attributes / 5, own = attribute / fifth;
    uint64_t x = ((uint64_t)thread << 3 | own) * 0x9e3779b97f4a7c15u;

    if (own < 2)
        return true;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return own < 5 && attribute % fifth == (x >> 33) % (fifth / 4);
}

static bool in_nested(const struct context *context, uint32_t thread, uint32_t attribute)
{
    return attribute <= (uint64_t)thread * context->attributes / context->threads;
}

static bool in_noise(const struct context *context, uint32_t thread, uint32_t attribute)
{
    return random_below(2);
}

static const struct shape {
    const char *name;
    bool (*has)(const struct context *context, uint32_t thread, uint32_t attribute);
} shapes[] = {
    {"roles", in_roles},   {"deviations", in_deviations}, {"sparse", in_sparse},
    {"nested", in_nested}, {"noise", in_noise},
};

static void make_sets(struct context *context, const struct shape *shape)
{
    random_state = 1;
    context->sets = calloc(context->threads, sizeof(*context->sets));
    check(context->sets, "out of memory");
    for (uint32_t thread = 0; thread < context->threads; thread++) {
        struct attribute_set *set = &context->sets[thread];

        set->ids = calloc(context->attributes, sizeof(*set->ids));
        check(set->ids, "out of memory");
        for (uint32_t attribute = 0; attribute < context->attributes; attribute++)
            if (shape->has(context, thread, attribute))
                set->ids[set->count++] = attribute;
    }
}

/* ------------------------------------------------------------------------------------------ measuring */

static double seconds_since(uint64_t begun)
{
    return (double)(clock_ns(CLOCK_MONOTONIC) - begun) / 1e9;
}

static size_t distinct_sets(const struct lattice *lattice)
{
    struct lattice_objects objects;
    size_t count = 0;

    check(lattice_objects_of(lattice, &objects) == 0, "out of memory");
    for (size_t i = 0; i < lattice->count; i++)
        count += objects.first[i] < objects.first[i + 1];
    lattice_objects_release(&objects);
    return count;
}

/* Leaves the matrix empty when there is no lattice within the limit. */
static void measure_lattice(const struct context *context)
{
    struct lattice lattice;
    uint64_t begun = clock_ns(CLOCK_MONOTONIC);
    size_t links = 0;
    int r = lattice_of_sets(context->sets, context->threads, LATTICE_DEFAULT_LIMIT, &lattice);

    check(r == 0 || r == -E2BIG, "no lattice");
    printf(", \"lattice\": %.3f", seconds_since(begun));
    if (r == -E2BIG)
        return;
    for (size_t i = 0; i < lattice.count; i++)
        links += lattice.concepts[i].upper_count;
    printf(", \"concepts\": %zu, \"links\": %zu, \"sets\": %zu", lattice.count, links,
           distinct_sets(&lattice));
    lattice_release(&lattice);
}

static void measure(const struct shape *shape, struct context *context)
{
    struct similarity direct;
    uint64_t begun;

    make_sets(context, shape);
    printf("{\"name\": \"%s\", \"threads\": %" PRIu32 ", \"attributes\": %" PRIu32, shape->name,
           context->threads, context->attributes);
    measure_lattice(context);
    begun = clock_ns(CLOCK_MONOTONIC);
    check(similarity_of_sets(context->sets, context->threads, &direct) == 0, "no matrix");
    printf(", \"direct\": %.3f", seconds_since(begun));
}

/* In a process of its own, whose memory is its own. */
static void measure_apart(const struct shape *shape, struct context *context)
{
    struct rusage usage;
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    check(pid >= 0, "no process");
    if (!pid) {
        measure(shape, context);
        fflush(stdout);
        _exit(0);
    }
    check(wait4(pid, &status, 0, &usage) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
          "a context failed");
    printf(", \"peak_kib\": %ld}", usage.ru_maxrss);
}

int main(int argc, char **argv)
{
    struct context context = {.threads = argc > 1 ? (uint32_t)atoi(argv[1]) : 10000,
                              .attributes = argc > 2 ? (uint32_t)atoi(argv[2]) : 2000};

    if (argc > 3 || context.threads < 1 || context.attributes < 100) {
        fprintf(stderr, "usage: concept_bench [THREADS [ATTRIBUTES]]\n");
        return 2;
    }
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        printf("%s", i ? ",\n " : "[");
        measure_apart(&shapes[i], &context);
    }
    printf("]\n");
    return 0;
}
