/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: mpiexec -n N poisson [ITERATIONS [stall RANK ITERATION]]
 *
 * The solver of figure 1 of Ahn et al., "Scalable Temporal Order Analysis for Large Scale Debugging" (SC
 * 2009): Poisson's equation on a square that is divided into horizontal strips, one for each rank, by
 * Jacobi's method. Each turn of the loop in poisson() sweeps twice, from A to B and back, and ends when all
 * ranks agree that the values hardly change any more.
 *
 * Strips are exchanged in pieces: the first message says how many follow, so that a value that is wrong makes
 * the receiver wait for what never comes, or stop too early.
 *
 * `stall`: RANK never comes out of the first get_norm() of turn ITERATION (counted from 0); the others come
 * to wait for it.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "planted.h"

enum { WIDTH = 64, ROWS = 8, PIECES = 2, ITERATIONS_DEFAULT = 50, NOBODY = -1 };
#define TOLERANCE 1e-4
#define PART_OF_STACK __attribute__((noinline, noclone))

/* A rank's rows, and a ghost row of each neighbour around them. */
struct band {
    double rows[ROWS + 2][WIDTH];
};

static int rank, above, below; /* NOBODY: the square's edge */
static int stalled_rank = NOBODY, stalled_iteration;
static int handled[2];

PART_OF_STACK void send_row(const double *row, int to)
{
    int pieces = PIECES;

    MPI_Send(&pieces, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    for (int i = 0; i < pieces; i++)
        MPI_Send(row + i * (WIDTH / PIECES), WIDTH / PIECES, MPI_DOUBLE, to, 1, MPI_COMM_WORLD);
}

PART_OF_STACK void receive_row(double *row, int from)
{
    int pieces = 0;

    MPI_Recv(&pieces, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < pieces; i++)
        MPI_Recv(row + i % PIECES * (WIDTH / PIECES), WIDTH / PIECES, MPI_DOUBLE, from, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

PART_OF_STACK void exchange_band(struct band *band)
{
    if (above != NOBODY)
        send_row(band->rows[1], above);
    if (below != NOBODY)
        send_row(band->rows[ROWS], below);
    if (above != NOBODY)
        receive_row(band->rows[0], above);
    if (below != NOBODY)
        receive_row(band->rows[ROWS + 1], below);
}

PART_OF_STACK void sweep_band(const struct band *from, struct band *to)
{
    for (int i = 1; i <= ROWS; i++)
        for (int j = 1; j < WIDTH - 1; j++)
            to->rows[i][j] = 0.25 * (from->rows[i - 1][j] + from->rows[i + 1][j] + from->rows[i][j - 1] +
                                     from->rows[i][j + 1]);
}

PART_OF_STACK double get_norm(const struct band *a, const struct band *b, int turn)
{
    double sum = 0;

    while (rank == stalled_rank && turn == stalled_iteration)
        usleep(1000);
    for (int i = 1; i <= ROWS; i++)
        for (int j = 1; j < WIDTH - 1; j++)
            sum += (a->rows[i][j] - b->rows[i][j]) * (a->rows[i][j] - b->rows[i][j]);
    return sum;
}

PART_OF_STACK void handle_converged(int turn)
{
    handled[1]++;
    if (rank == 0)
        printf("converged in turn %d\n", turn);
}

PART_OF_STACK void handle_not(int turn)
{
    handled[0] += turn >= 0;
}

PART_OF_STACK int poisson(struct band *a, struct band *b, int iterations)
{
    int converged = 0, it = 0;
    double norm, diff;

    while (it < iterations) {
        exchange_band(a);
        sweep_band(a, b);
        get_norm(a, b, it);
        exchange_band(b);
        sweep_band(b, a);
        norm = get_norm(b, a, NOBODY);
        MPI_Allreduce(&norm, &diff, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (diff <= TOLERANCE * TOLERANCE)
            converged = 1;
        if (converged)
            handle_converged(it);
        else
            handle_not(it);
        if (converged)
            break;
        it++;
    }
    return converged;
}

int main(int argc, char **argv)
{
    static struct band a, b;
    int size, iterations = argc > 1 ? atoi(argv[1]) : ITERATIONS_DEFAULT, converged;

    if (argc > 4 && same_word(argv[2], "stall")) {
        stalled_rank = atoi(argv[3]);
        stalled_iteration = atoi(argv[4]);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    above = rank > 0 ? rank - 1 : NOBODY;
    below = rank < size - 1 ? rank + 1 : NOBODY;
    for (int j = 0; rank == 0 && j < WIDTH; j++)
        a.rows[0][j] = b.rows[0][j] = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    converged = poisson(&a, &b, iterations);
    if (rank == 0)
        printf("%s, turns that went on: %d\n", converged ? "converged" : "not converged", handled[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
