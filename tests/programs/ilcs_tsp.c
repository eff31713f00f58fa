/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: mpiexec -n SIZE ilcs_tsp [BUG [RANK [THREAD]]]
 *
 * A search for a short round trip, in the shape that the DiffTrace papers describe (listing 3.1 of the
 * dissertation): in every process WORKERS threads call CPU_Exec() for one seed after the other and keep the
 * best trip that they found; thread 0, the master, finds with two MPI_Allreduce who has the best of all, and
 * that process sends it to all with MPI_Bcast, until it has not changed for a while. Champions are copied in
 * a critical section. What CPU_Exec() finds is decided by rank, thread and turn; how often it is called is
 * not.
 *
 * Bugs, after table II of the draft; RANK and THREAD are where, "all" being everywhere:
 *   no-critical   a worker copies its champion without the critical section       (6 4)
 *   wrong-size    the master's first MPI_Allreduce has another number of elements  (2)
 *   wrong-op      the same has MPI_MAX in place of MPI_MIN                          (0)
 *   endless       a worker does not leave its fifth turn                           (3 2)
 * With wrong-size and endless processes wait for ever: SIGALRM ends them HANG_SECONDS after the start, or
 * after the others' search.
 */
#include <mpi.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "planted.h"

enum {
    WORKERS = 4,
    CITIES = 64,
    NO_CHANGE = 5,
    PAUSE_US = 20000,
    HANG_SECONDS = 2,
    ENDLESS_TURN = 5,
    EVERYWHERE = -1
};
#define PART_OF_TRACE __attribute__((noinline, noclone))

enum bug { NORMAL, NO_CRITICAL, WRONG_SIZE, WRONG_OP, ENDLESS, BUGS };

static const struct {
    const char *name;
    int rank, thread;
    unsigned seconds,
        seconds_after; /* of a hang: from the start, from the end of the search; 0: there is none */
} bugs[BUGS] = {
    {"normal", 0, 0, 0, 0},   {"no-critical", 6, 4, 0, 0},        {"wrong-size", 2, 0, HANG_SECONDS, 0},
    {"wrong-op", 0, 0, 0, 0}, {"endless", 3, 2, 0, HANG_SECONDS},
};

struct champion {
    int length;
    unsigned char trip[CITIES];
};

static struct champion champions[WORKERS + 1], best_of_all; /* by thread; [0] is not used */
static int distances[CITIES][CITIES];
static enum bug bug;
static int bug_rank, bug_thread, my_rank;
static atomic_bool go_on = true;

LEAVES_NO_TRACE bool is_at(enum bug asked, int thread)
{
    return bug == asked && (bug_rank == EVERYWHERE || bug_rank == my_rank) &&
           (bug_thread == EVERYWHERE || bug_thread == thread);
}

LEAVES_NO_TRACE uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Cities in a square, and how far they are from each other. Returns the size of a champion. */
PART_OF_TRACE static size_t CPU_Init(void)
{
    uint32_t state = 12345;
    int x[CITIES], y[CITIES];

    for (int i = 0; i < CITIES; i++) {
        x[i] = (int)(next_random(&state) % 1000);
        y[i] = (int)(next_random(&state) % 1000);
    }
    for (int i = 0; i < CITIES; i++)
        for (int j = 0; j < CITIES; j++)
            distances[i][j] = abs(x[i] - x[j]) + abs(y[i] - y[j]);
    return sizeof(struct champion);
}

static int length_of(const unsigned char *trip)
{
    int length = distances[trip[CITIES - 1]][trip[0]];

    for (int i = 1; i < CITIES; i++)
        length += distances[trip[i - 1]][trip[i]];
    return length;
}

PART_OF_TRACE static void random_trip(unsigned char *trip, uint32_t seed)
{
    for (int i = 0; i < CITIES; i++)
        trip[i] = (unsigned char)i;
    for (int i = CITIES - 1; i > 0; i--) {
        int j = (int)(next_random(&seed) % (uint32_t)(i + 1));
        unsigned char city = trip[i];

        trip[i] = trip[j];
        trip[j] = city;
    }
}

static void reverse(unsigned char *trip, int from, int to)
{
    for (; from < to; from++, to--) {
        unsigned char city = trip[from];

        trip[from] = trip[to];
        trip[to] = city;
    }
}

/* One pass of 2-opt: turns round every stretch that is shorter the other way. False: there was none. */
PART_OF_TRACE static bool shorten(unsigned char *trip)
{
    bool shorter = false;

    for (int i = 0; i < CITIES - 1; i++)
        for (int j = i + 1; j < CITIES; j++) {
            int before = trip[(i + CITIES - 1) % CITIES], after = trip[(j + 1) % CITIES];

            if (before != trip[j] && distances[before][trip[j]] + distances[trip[i]][after] <
                                         distances[before][trip[i]] + distances[trip[j]][after]) {
                reverse(trip, i, j);
                shorter = true;
            }
        }
    return shorter;
}

/* Finds a champion near the random trip of a seed. */
PART_OF_TRACE static void CPU_Exec(uint32_t seed, struct champion *result)
{
    random_trip(result->trip, seed);
    while (shorten(result->trip))
        ;
    result->length = length_of(result->trip);
}

PART_OF_TRACE static void CPU_Output(const struct champion *champion)
{
    printf("length %d, really %d\n", champion->length, length_of(champion->trip));
}

static void keep_champion(struct champion *to, const struct champion *from, size_t size, bool protected)
{
    if (protected) {
#pragma omp critical
        memcpy(to, from, size);
    } else {
        memcpy(to, from, size);
    }
}

static void work(int thread, size_t size)
{
    struct champion result;

    /* Masters wait actively: where threads are more than cores, they must not wait for the workers' cores. */
    setpriority(PRIO_PROCESS, (id_t)gettid(), 10);
    for (uint32_t turn = 1; go_on; turn++) {
        do
            CPU_Exec((uint32_t)(my_rank * WORKERS + thread) * 1000003 + turn * 7919, &result);
        while (turn == ENDLESS_TURN && is_at(ENDLESS, thread));
        if (result.length < champions[thread].length)
            keep_champion(&champions[thread], &result, size, !is_at(NO_CRITICAL, thread));
    }
}

static int local_champion(void)
{
    int best = 1;

    for (int thread = 2; thread <= WORKERS; thread++)
        if (champions[thread].length < champions[best].length)
            best = thread;
    return best;
}

/* Makes the best champion known to all. Returns its length, of which all processes say the same. */
static int exchange(size_t size)
{
    int thread = local_champion(), length = champions[thread].length, best = 0, owner, rank;

    MPI_Allreduce(&length, &best, is_at(WRONG_SIZE, 0) ? 0 : 1, MPI_INT,
                  is_at(WRONG_OP, 0) ? MPI_MAX : MPI_MIN, MPI_COMM_WORLD);
    rank = length == best ? my_rank : 0;
    MPI_Allreduce(&rank, &owner, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (my_rank == owner)
        keep_champion(&best_of_all, &champions[thread], size, true);
    MPI_Bcast(&best_of_all, (int)size, MPI_BYTE, owner, MPI_COMM_WORLD);
    return best_of_all.length;
}

static void lead(size_t size)
{
    int last = INT32_MAX;

    for (int unchanged = 0; unchanged < NO_CHANGE; unchanged++) {
        int length = exchange(size);

        if (length != last)
            unchanged = 0;
        last = length;
        usleep(PAUSE_US);
    }
    go_on = false;
}

static void search(size_t size)
{
    for (int thread = 0; thread <= WORKERS; thread++)
        champions[thread].length = INT32_MAX;
#pragma omp parallel num_threads(WORKERS + 1)
    {
        int thread = omp_get_thread_num();

        if (thread)
            work(thread, size);
        else
            lead(size);
    }
}

static int parse_place(const char *word)
{
    return same_word(word, "all") ? EVERYWHERE : atoi(word);
}

static bool parse(int argc, char **argv)
{
    while (argc > 1 && bug < BUGS && !same_word(argv[1], bugs[bug].name))
        bug++;
    if (bug == BUGS || argc > 4)
        return false;
    bug_rank = argc > 2 ? parse_place(argv[2]) : bugs[bug].rank;
    bug_thread = argc > 3 ? parse_place(argv[3]) : bugs[bug].thread;
    return true;
}

/* Called before MPI_Init, which starts threads of its own: so thread T of the team is thread T of the
 * process. */
static int count_workers(void)
{
    int count = 0;

#pragma omp parallel num_threads(WORKERS + 1)
#pragma omp master
    count = omp_get_num_threads() - 1;
    return count;
}

int main(int argc, char **argv)
{
    int workers, all_workers, provided;
    size_t size;

    if (!parse(argc, argv)) {
        fprintf(stderr,
                "usage: ilcs_tsp [normal | no-critical | wrong-size | wrong-op | endless [RANK [THREAD]]]\n");
        return 2;
    }
    workers = count_workers();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Reduce(&workers, &all_workers, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    size = CPU_Init();
    MPI_Barrier(MPI_COMM_WORLD);
    alarm(bugs[bug].seconds);
    search(size);
    alarm(bugs[bug].seconds_after);
    if (my_rank == 0)
        CPU_Output(&best_of_all);
    MPI_Finalize();
    return 0;
}
