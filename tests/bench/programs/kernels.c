/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: kernels KERNEL ROUNDS
 *
 * Numeric programs in small, by how much work they do between two calls:
 *   stencil  a function for each row of a grid: hundreds of nanoseconds
 *   sparse   conjugate gradients; functions for products, sums and rows
 *   pairs    a function for each pair of particles: a few nanoseconds
 *   tree     recursion, nothing but calls: the worst case
 * Prints a checksum, so that a traced run can be compared.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

/* ---------------------------------------------------------------------------------------------- stencil */

#define SIDE 512

static double grid[2][SIDE][SIDE];

NOINLINE static double relax_row(double *to, const double *above, const double *row, const double *below)
{
    double change = 0;

    for (int x = 1; x < SIDE - 1; x++) {
        to[x] = (above[x] + below[x] + row[x - 1] + row[x + 1]) / 4;
        change += fabs(to[x] - row[x]);
    }
    return change;
}

static double stencil(long rounds)
{
    double change = 0;

    for (int x = 0; x < SIDE; x++)
        grid[0][0][x] = grid[1][0][x] = x;
    for (long round = 0; round < rounds; round++)
        for (int y = 1; y < SIDE - 1; y++)
            change = relax_row(grid[(round + 1) % 2][y], grid[round % 2][y - 1], grid[round % 2][y],
                               grid[round % 2][y + 1]);
    return change;
}

/* ---------------------------------------------------------------------------------------------- sparse */

#define ROWS 4096

static double vector[4][ROWS];

NOINLINE static double row_product(const double *x, int row)
{
    double sum = 4 * x[row];

    for (int distance = 1; distance <= 64; distance *= 4)
        sum -= 0.3 * (x[(row + distance) % ROWS] + x[(row + ROWS - distance) % ROWS]);
    return sum;
}

NOINLINE static void product(double *y, const double *x)
{
    for (int row = 0; row < ROWS; row++)
        y[row] = row_product(x, row);
}

NOINLINE static double dot(const double *x, const double *y)
{
    double sum = 0;

    for (int i = 0; i < ROWS; i++)
        sum += x[i] * y[i];
    return sum;
}

NOINLINE static void add(double *y, double factor, const double *x)
{
    for (int i = 0; i < ROWS; i++)
        y[i] += factor * x[i];
}

static double sparse(long rounds)
{
    double *x = vector[0], *r = vector[1], *p = vector[2], *q = vector[3], rho = 0;

    for (long round = 0; round < rounds; round++) {
        if (round % 20 == 0) { /* again from the start, so that the numbers stay of one kind */
            for (int i = 0; i < ROWS; i++)
                r[i] = p[i] = 1 + i % 7;
            memset(x, 0, sizeof(vector[0]));
            rho = dot(r, r);
        }
        product(q, p);
        double alpha = rho / dot(p, q), before = rho;
        add(x, alpha, p);
        add(r, -alpha, q);
        rho = dot(r, r);
        for (int i = 0; i < ROWS; i++)
            p[i] = r[i] + rho / before * p[i];
    }
    return x[7];
}

/* ---------------------------------------------------------------------------------------------- pairs */

#define PARTICLES 512

static struct particle {
    double x, y, z, force;
} particles[PARTICLES];

NOINLINE static double attract(struct particle *one, const struct particle *other)
{
    double dx = one->x - other->x, dy = one->y - other->y, dz = one->z - other->z;
    double square = dx * dx + dy * dy + dz * dz + 0.01;
    double strength = 1 / (square * square);

    one->force += strength;
    return strength;
}

static double pairs(long rounds)
{
    double sum = 0;

    for (int i = 0; i < PARTICLES; i++)
        particles[i] = (struct particle){i % 8, i / 8 % 8, i / 64., 0};
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < PARTICLES; i++)
            for (int j = 0; j < PARTICLES; j++)
                sum += attract(&particles[i], &particles[j]);
    return sum;
}

/* ---------------------------------------------------------------------------------------------- tree */

NOINLINE static long leaves(int depth)
{
    __asm__ volatile(""); /* neither pure nor constant: both calls are made */
    return depth == 0 ? 1 : leaves(depth - 1) + leaves(depth - 1);
}

static double tree(long rounds)
{
    long sum = 0;

    for (long round = 0; round < rounds; round++)
        sum += leaves(16);
    return (double)sum;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        double (*run)(long rounds);
    } kernels[] = {{"stencil", stencil}, {"sparse", sparse}, {"pairs", pairs}, {"tree", tree}};

    for (size_t i = 0; argc == 3 && i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (!strcmp(kernels[i].name, argv[1])) {
            printf("%.12g\n", kernels[i].run(strtol(argv[2], NULL, 10)));
            return 0;
        }
    fprintf(stderr, "usage: kernels stencil|sparse|pairs|tree ROUNDS\n");
    return 2;
}
