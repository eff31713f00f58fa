/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: mpiexec -n SIZE odd_even_sort [normal | swap | deadlock]
 *
 * Odd/even transposition sort, one number a rank: the textbook program (and the two planted bugs) of the
 * DiffTrace papers. Even ranks send first, odd ranks receive first. With `swap`, rank 5 sends first after its
 * seventh iteration, which small messages forgive; with `deadlock`, it waits there for a message that nobody
 * sends.
 */
#include <mpi.h>
#include <stdio.h>

#include "planted.h"

enum { TAG = 1, TAG_NOBODY_SENDS = 2, BUG_RANK = 5, BUG_ITERATION = 7, NO_PARTNER = -1 };
enum bug { BUG_NONE, BUG_SWAP, BUG_DEADLOCK };

static int size;

/* The neighbour of `rank` in an iteration: even ranks look right in even iterations, odd ranks in odd ones.
 */
__attribute__((noinline, noclone)) static int findPtr(int iteration, int rank)
{
    int partner = (iteration + rank) % 2 == 0 ? rank + 1 : rank - 1;

    return partner >= 0 && partner < size ? partner : NO_PARTNER;
}

__attribute__((noinline, noclone)) static int oddEvenSort(int rank, int value, enum bug bug)
{
    for (int i = 0; i < size; i++) {
        int partner = findPtr(i, rank);
        int buggy = bug != BUG_NONE && rank == BUG_RANK && i >= BUG_ITERATION;
        int other;

        if (partner == NO_PARTNER)
            continue;
        if ((rank % 2 == 0) != (buggy && bug == BUG_SWAP)) {
            MPI_Send(&value, 1, MPI_INT, partner, TAG, MPI_COMM_WORLD);
            MPI_Recv(&other, 1, MPI_INT, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            int tag = buggy ? TAG_NOBODY_SENDS : TAG;

            MPI_Recv(&other, 1, MPI_INT, partner, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&value, 1, MPI_INT, partner, TAG, MPI_COMM_WORLD);
        }
        if ((partner > rank) == (other < value))
            value = other;
    }
    return value;
}

static int parse_bug(const char *word)
{
    static const char *const words[] = {"normal", "swap", "deadlock"};

    for (int i = 0; i < 3; i++)
        if (same_word(word, words[i]))
            return i;
    return -1;
}

int main(int argc, char **argv)
{
    int bug = parse_bug(argc > 1 ? argv[1] : "normal");
    int rank, value;

    if (bug < 0) {
        fprintf(stderr, "usage: odd_even_sort [normal | swap | deadlock]\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    value = (rank * 7 + 3) % size; /* a permutation of 0 ... size-1 when size has no factor 7 */
    value = oddEvenSort(rank, value, (enum bug)bug);
    printf("rank %d holds %d\n", rank, value);
    MPI_Finalize();
    return 0;
}
