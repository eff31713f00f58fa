/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: mpiexec -n RANKS mpi_heat [STEPS [WIDTH]]
 *
 * Heat spreads over a plate: each rank owns ROWS rows, relaxes them (Jacobi), and exchanges its border rows
 * with its neighbours in every step. Rank 0 prints "seconds S heat H": the time of the steps, and the sum of
 * all cells.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { ROWS = 64, WIDTH_MOST = 4096 };

static double plate[2][ROWS + 2][WIDTH_MOST];
static int rank, ranks, width = 256;

NOINLINE double average(const double *above, const double *row, const double *below)
{
    return (above[0] + below[0] + row[-1] + row[1]) / 4;
}

NOINLINE void relax_row(const double (*from)[WIDTH_MOST], double (*to)[WIDTH_MOST], int row)
{
    for (int x = 1; x < width - 1; x++)
        to[row][x] = average(&from[row - 1][x], &from[row][x], &from[row + 1][x]);
}

NOINLINE void exchange_with(double *own, double *border, int neighbour)
{
    MPI_Sendrecv(own, width, MPI_DOUBLE, neighbour, 0, border, width, MPI_DOUBLE, neighbour, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

NOINLINE void exchange_borders(double (*rows)[WIDTH_MOST])
{
    if (rank > 0)
        exchange_with(rows[1], rows[0], rank - 1);
    if (rank < ranks - 1)
        exchange_with(rows[ROWS], rows[ROWS + 1], rank + 1);
}

NOINLINE double heat(double (*rows)[WIDTH_MOST])
{
    double sum = 0, all = 0;

    for (int row = 1; row <= ROWS; row++)
        for (int x = 0; x < width; x++)
            sum += rows[row][x];
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return all;
}

NOINLINE void step(int number)
{
    double(*from)[WIDTH_MOST] = plate[number % 2], (*to)[WIDTH_MOST] = plate[(number + 1) % 2];

    exchange_borders(from);
    for (int row = 1; row <= ROWS; row++)
        relax_row((const double(*)[WIDTH_MOST])from, to, row);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    double begun, sum;

    if (argc > 2)
        width = atoi(argv[2]) < WIDTH_MOST ? atoi(argv[2]) : WIDTH_MOST;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int row = 0; row < ROWS + 2; row++)
        for (int x = 0; x < width; x++)
            plate[0][row][x] = plate[1][row][x] = row % 8 == 0 ? 100 : 0;
    begun = MPI_Wtime();
    for (int number = 0; number < steps; number++)
        step(number);
    begun = MPI_Wtime() - begun;
    sum = heat(plate[steps % 2]);
    if (!rank)
        printf("seconds %.6f heat %.3f\n", begun, sum);
    MPI_Finalize();
    return 0;
}
