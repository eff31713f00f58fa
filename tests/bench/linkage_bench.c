/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: linkage_bench [OBJECTS [DIR]]     (10000)
 *
 * What hierarchical clustering takes. Prints a JSON array with an object for each matrix and method:
 *
 *   name, objects, method    the matrix; "b_score" is not a linkage: it compares the clusterings by ward and
 * average seconds                  of CPU time; of b_score without the two linkages peak_kib the most memory
 * that its process had, with the matrix and, for b_score, both trees
 *
 * With DIR, the matrix is left there as NAME.distances (doubles, in SciPy's order) and the rows as
 * NAME.METHOD.rows (four doubles each), for linkage_scipy.py. Matrices, with the same random numbers each
 * time:
 *
 *   points   distances between random points in ten dimensions: hardly any two are equal
 *   threads  one minus the similarity of sets of 12 attributes, as of threads: nearly all are equal to many
 * others
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/cluster/b_score.h"
#include "analyzer/cluster/linkage.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { DIMENSIONS = 10, ATTRIBUTES = 12 };

static uint64_t random_state;

struct matrix {
    const char *name;
    size_t count;
    double *distances;
    const char *folder; /* NULL: nothing is left */
};

static uint32_t random_number(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

static void check(bool fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "linkage_bench: %s\n", what);
        exit(1);
    }
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);

    check(memory, "out of memory");
    return memory;
}

/* ------------------------------------------------------------------------------------------ matrices */

static size_t pairs(const struct matrix *matrix)
{
    return matrix->count * (matrix->count - 1) / 2;
}

static void make_points(struct matrix *matrix)
{
    AUTO_FREE double *points = allocate(matrix->count * DIMENSIONS * sizeof(*points));
    size_t pair = 0;

    for (size_t i = 0; i < matrix->count * DIMENSIONS; i++)
        points[i] = random_number() / 2147483648.0;
    for (size_t i = 0; i < matrix->count; i++)
        for (size_t j = i + 1; j < matrix->count; j++) {
            double sum = 0;

            for (size_t k = 0; k < DIMENSIONS; k++) {
                double apart = points[i * DIMENSIONS + k] - points[j * DIMENSIONS + k];

                sum += apart * apart;
            }
            matrix->distances[pair++] = sqrt(sum);
        }
}

static void make_threads(struct matrix *matrix)
{
    AUTO_FREE uint32_t *sets = allocate(matrix->count * sizeof(*sets));
    size_t pair = 0;

    for (size_t i = 0; i < matrix->count; i++)
        sets[i] = 1 | (random_number() & ((1u << ATTRIBUTES) - 1)); /* one attribute all have */
    for (size_t i = 0; i < matrix->count; i++)
        for (size_t j = i + 1; j < matrix->count; j++)
            matrix->distances[pair++] = 1 - (double)__builtin_popcount(sets[i] & sets[j]) /
                                                (double)__builtin_popcount(sets[i] | sets[j]);
}

static FILE *create(const struct matrix *matrix, const char *name)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s.%s", matrix->folder, matrix->name, name);
    file = fopen(path, "wb");
    check(file, "a file cannot be made");
    return file;
}

static void leave_matrix(const struct matrix *matrix)
{
    FILE *file = create(matrix, "distances");

    check(fwrite(matrix->distances, sizeof(double), pairs(matrix), file) == pairs(matrix),
          "a file is cut off");
    check(fclose(file) == 0, "a file is cut off");
}

static void leave_rows(const struct matrix *matrix, const char *method, const struct linkage_merge *merges)
{
    char name[32];
    FILE *file;

    snprintf(name, sizeof(name), "%s.rows", method);
    file = create(matrix, name);
    for (size_t i = 0; i + 1 < matrix->count; i++) {
        double row[] = {merges[i].a, merges[i].b, merges[i].distance, merges[i].size};

        check(fwrite(row, sizeof(row), 1, file) == 1, "a file is cut off");
    }
    check(fclose(file) == 0, "a file is cut off");
}

/* ------------------------------------------------------------------------------------------ measuring */

static double seconds_since(uint64_t begun)
{
    return (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun) / 1e9;
}

/* Overwrites the matrix, which is the process's own. */
static void measure_linkage(const struct matrix *matrix, enum linkage_method method)
{
    AUTO_FREE struct linkage_merge *merges = allocate(matrix->count * sizeof(*merges));
    uint64_t begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

    check(linkage_of(method, matrix->count, matrix->distances, merges) == 0, "no linkage");
    printf("\"%s\", \"seconds\": %.3f", linkage_name(method), seconds_since(begun));
    if (matrix->folder)
        leave_rows(matrix, linkage_name(method), merges);
}

static void measure_score(const struct matrix *matrix)
{
    AUTO_FREE struct linkage_merge *a = allocate(matrix->count * sizeof(*a));
    AUTO_FREE struct linkage_merge *b = allocate(matrix->count * sizeof(*b));
    AUTO_FREE double *copy = allocate(pairs(matrix) * sizeof(*copy));
    uint64_t begun;
    double mean;

    memcpy(copy, matrix->distances, pairs(matrix) * sizeof(*copy));
    check(linkage_of(LINKAGE_WARD, matrix->count, copy, a) == 0, "no linkage");
    check(linkage_of(LINKAGE_AVERAGE, matrix->count, matrix->distances, b) == 0, "no linkage");
    begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    check(b_score(a, b, matrix->count, NULL, &mean) == 0, "no score");
    printf("\"b_score\", \"score\": %.6f, \"seconds\": %.5f", mean, seconds_since(begun));
}

/* In a process of its own, whose memory is its own. */
static void measure_apart(const struct matrix *matrix, int method)
{
    struct rusage usage;
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    check(pid >= 0, "no process");
    if (!pid) {
        printf("{\"name\": \"%s\", \"objects\": %zu, \"method\": ", matrix->name, matrix->count);
        if (method < LINKAGE_METHODS)
            measure_linkage(matrix, (enum linkage_method)method);
        else
            measure_score(matrix);
        fflush(stdout);
        _exit(0);
    }
    check(wait4(pid, &status, 0, &usage) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
          "a method failed");
    printf(", \"peak_kib\": %ld}", usage.ru_maxrss);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*make)(struct matrix *matrix);
    } kinds[] = {{"points", make_points}, {"threads", make_threads}};
    struct matrix matrix = {.count = argc > 1 ? (size_t)atoi(argv[1]) : 10000,
                            .folder = argc > 2 ? argv[2] : NULL};

    if (argc > 3 || matrix.count < 3 || matrix.count > LINKAGE_MAX_COUNT) {
        fprintf(stderr, "usage: linkage_bench [OBJECTS [DIR]]\n");
        return 2;
    }
    matrix.distances = allocate(pairs(&matrix) * sizeof(*matrix.distances));
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        random_state = 1;
        matrix.name = kinds[i].name;
        kinds[i].make(&matrix);
        if (matrix.folder)
            leave_matrix(&matrix);
        for (int method = 0; method <= LINKAGE_METHODS; method++) {
            printf("%s", i || method ? ",\n " : "[");
            measure_apart(&matrix, method);
        }
    }
    printf("]\n");
    free(matrix.distances);
    return 0;
}
