/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: mpiexec -n 8|27 leap_frog [normal | skip [RANK]]
 *
 * A shock wave through a cube that is divided among the ranks, in the shape of LULESH: a loop of time steps,
 * each LagrangeLeapFrog() for the nodes and then the elements, with values exchanged between neighbours, and
 * a common length of the next step. With `skip` one rank (2) never calls LagrangeLeapFrog(), as in
 * section 3.5 of the dissertation: its neighbours wait for it for ever, and SIGALRM ends all HANG_SECONDS
 * after the start.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "planted.h"

enum {
    EDGE = 6,
    CELLS = EDGE * EDGE * EDGE,
    CYCLES = 4,
    FACES = 6,
    BUG_RANK = 2,
    HANG_SECONDS = 2,
    NOBODY = -1
};
#define PART_OF_TRACE __attribute__((noinline, noclone))

struct domain {
    int side; /* ranks along an edge of the whole cube */
    int neighbours[FACES];
    double sent[FACES], received[FACES];
    double force[CELLS], speed[CELLS], place[CELLS], energy[CELLS], volume[CELLS];
    double step; /* of time */
};

static struct domain domain;

/* The ranks on the other side of the faces: two along each axis. */
static void find_neighbours(int rank)
{
    int stride = 1;

    for (int axis = 0; axis < 3; axis++, stride *= domain.side) {
        int at = rank / stride % domain.side;

        domain.neighbours[2 * axis] = at > 0 ? rank - stride : NOBODY;
        domain.neighbours[2 * axis + 1] = at < domain.side - 1 ? rank + stride : NOBODY;
    }
}

PART_OF_TRACE static int CommRecv(MPI_Request *requests)
{
    int count = 0;

    for (int face = 0; face < FACES; face++)
        if (domain.neighbours[face] != NOBODY)
            MPI_Irecv(&domain.received[face], 1, MPI_DOUBLE, domain.neighbours[face], 0, MPI_COMM_WORLD,
                      &requests[count++]);
    return count;
}

PART_OF_TRACE static int CommSend(MPI_Request *requests, double value)
{
    int count = 0;

    for (int face = 0; face < FACES; face++)
        if (domain.neighbours[face] != NOBODY) {
            domain.sent[face] = value;
            MPI_Isend(&domain.sent[face], 1, MPI_DOUBLE, domain.neighbours[face], 0, MPI_COMM_WORLD,
                      &requests[count++]);
        }
    return count;
}

/* Gives `value` to all neighbours and returns the sum of theirs. */
PART_OF_TRACE static double CommExchange(double value)
{
    MPI_Request requests[2 * FACES];
    MPI_Status statuses[2 * FACES];
    int count = CommRecv(requests);
    double sum = 0;

    count += CommSend(requests + count, value);
    MPI_Waitall(count, requests, statuses);
    for (int face = 0; face < FACES; face++)
        if (domain.neighbours[face] != NOBODY)
            sum += domain.received[face];
    return sum;
}

PART_OF_TRACE static double CalcElemForce(int cell)
{
    return domain.energy[cell] / domain.volume[cell] - domain.place[cell];
}

PART_OF_TRACE static void CalcForceForNodes(void)
{
    double sum = 0;

    for (int cell = 0; cell < CELLS; cell++)
        sum += domain.force[cell] = CalcElemForce(cell);
    domain.force[0] += CommExchange(sum / CELLS) / FACES;
}

PART_OF_TRACE static void CalcVelocityForNodes(void)
{
    for (int cell = 0; cell < CELLS; cell++)
        domain.speed[cell] += domain.force[cell] * domain.step;
}

PART_OF_TRACE static void CalcPositionForNodes(void)
{
    for (int cell = 0; cell < CELLS; cell++)
        domain.place[cell] += domain.speed[cell] * domain.step;
}

PART_OF_TRACE static void LagrangeNodal(void)
{
    CalcForceForNodes();
    CalcVelocityForNodes();
    CalcPositionForNodes();
}

PART_OF_TRACE static double CalcElemVolume(int cell)
{
    return 1 + domain.place[cell] * domain.place[cell];
}

PART_OF_TRACE static void CalcLagrangeElements(void)
{
    for (int cell = 0; cell < CELLS; cell++)
        domain.volume[cell] = CalcElemVolume(cell);
}

PART_OF_TRACE static void CalcQForElems(void)
{
    domain.speed[0] += CommExchange(domain.volume[0]) * domain.step;
}

PART_OF_TRACE static void EvalEOSForElems(void)
{
    for (int cell = 0; cell < CELLS; cell++)
        domain.energy[cell] /= domain.volume[cell];
}

PART_OF_TRACE static void LagrangeElements(void)
{
    CalcLagrangeElements();
    CalcQForElems();
    EvalEOSForElems();
}

PART_OF_TRACE static void LagrangeLeapFrog(void)
{
    LagrangeNodal();
    LagrangeElements();
}

/* The smallest step that a rank wants is everybody's. */
PART_OF_TRACE static void TimeIncrement(void)
{
    double wanted = 0.01 / (1 + domain.speed[0] * domain.speed[0]);

    MPI_Allreduce(&wanted, &domain.step, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
}

static int edge_of_cube(int size)
{
    int side = 1;

    while (side * side * side < size)
        side++;
    return side * side * side == size ? side : 0;
}

int main(int argc, char **argv)
{
    bool skip = argc > 1 && same_word(argv[1], "skip");
    int skipping_rank = argc > 2 ? atoi(argv[2]) : BUG_RANK, rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    domain.side = edge_of_cube(size);
    if (!domain.side) {
        fprintf(stderr, "leap_frog: the number of ranks must be a cube\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    find_neighbours(rank);
    for (int cell = 0; cell < CELLS; cell++)
        domain.volume[cell] = 1;
    domain.energy[0] = rank == 0;
    MPI_Barrier(MPI_COMM_WORLD);
    alarm(skip ? HANG_SECONDS : 0);
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        TimeIncrement();
        if (!skip || rank != skipping_rank)
            LagrangeLeapFrog();
    }
    if (rank == 0)
        printf("energy %.6f\n", domain.energy[0]);
    MPI_Finalize();
    return 0;
}
