/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fault injector for MPI programs, to be preloaded: LD_PRELOAD=libmpi_faults.so MPI_FAULT=KIND:SEED[:CALLS]
 *
 * The faults of section 5.1 and table 2 of Ahn et al., "Scalable Temporal Order Analysis for Large Scale
 * Debugging" (SC 2009), by MPI's profiling interface. One rank gets one fault, in one of its first CALLS (40)
 * calls of those below; SEED decides about rank, call, value and amount. The rank says on standard error what
 * it did: "fault: KIND in rank R, call N (MPI_X)".
 *
 *   loop      the call never comes back, and computes
 *   change    an element that was received gets random bits
 *   increase  an element that was received becomes greater, by 1 to 8
 *   decrease  ... smaller
 *   overflow  up to 4 KiB behind what was received get random bytes
 *   extra     up to 64 more messages like the one that is to be sent, and before it
 *
 * The additional messages are sent as large ones are: the sender goes on when somebody receives them (the
 * paper's program sends rows of 350 KB, which no MPI buffers; ours are small).
 *
 * A rank that aborts stays where it is, as in the paper: what would end it (SIGSEGV and its kind, MPI_Abort,
 * an error that MPI finds) makes it wait for ever.
 */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { NONE, LOOP, CHANGE, INCREASE, DECREASE, OVERFLOW, EXTRA, KINDS };
enum { CALLS_DEFAULT = 40, AMOUNT_MAX = 8, OVERFLOW_MAX = 4096, EXTRA_MAX = 64 };

static const char *const kind_names[KINDS] = {
    [LOOP] = "loop",         [CHANGE] = "change",     [INCREASE] = "increase",
    [DECREASE] = "decrease", [OVERFLOW] = "overflow", [EXTRA] = "extra",
};

static struct {
    enum kind kind;
    unsigned rank, call; /* at fault, and its how manieth call */
    uint64_t random;
} fault;

static int own_rank = -1;
static unsigned calls;

/* splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014) */
static uint64_t next_random(void)
{
    uint64_t z = fault.random += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void stay(int signal_number)
{
    for (;;)
        pause();
}

static void stay_when_dying(void)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

    for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
        signal(deadly[i], stay);
}

/* MPI ends the program for an error, from inside. */
static void stay_at_error(MPI_Comm *communicator, int *code, ...)
{
    stay(0);
}

static void stay_at_errors(void)
{
    MPI_Errhandler handler;

    PMPI_Comm_create_errhandler(stay_at_error, &handler);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
}

static void read_fault(int size)
{
    const char *text = getenv("MPI_FAULT"), *seed = text ? strchr(text, ':') : NULL, *limit;

    if (!seed)
        return;
    for (enum kind kind = LOOP; kind < KINDS; kind++)
        if (strlen(kind_names[kind]) == (size_t)(seed - text) &&
            !strncmp(kind_names[kind], text, (size_t)(seed - text)))
            fault.kind = kind;
    fault.random = strtoull(seed + 1, NULL, 10);
    limit = strchr(seed + 1, ':');
    fault.rank = (unsigned)(next_random() % (unsigned)size);
    fault.call = 1 + (unsigned)(next_random() % (limit ? strtoul(limit + 1, NULL, 10) : CALLS_DEFAULT));
}

/* Whether a call of one of the kinds of call that the fault can be in is the one; counts it. */
static bool is_due(bool receives, bool sends, const char *name)
{
    bool can = fault.kind == LOOP || (fault.kind == EXTRA ? sends : receives);

    if (fault.kind == NONE || (unsigned)own_rank != fault.rank || !can || ++calls != fault.call)
        return false;
    fprintf(stderr, "fault: %s in rank %d, call %u (%s)\n", kind_names[fault.kind], own_rank, calls, name);
    return true;
}

/* ---------------------------------------------------------------------------------------------- the faults
 */

static void never_end(void)
{
    for (volatile uint64_t turns = 0;; turns++)
        ;
}

static void shift(void *element, MPI_Datatype type, int amount)
{
    if (type == MPI_DOUBLE)
        *(double *)element += amount;
    else if (type == MPI_INT)
        *(int *)element += amount;
    else
        *(unsigned char *)element += (unsigned char)amount;
}

/* What is wrong with `count` elements that have been received. */
static void spoil(void *buffer, int count, MPI_Datatype type)
{
    int size, amount = 1 + (int)(next_random() % AMOUNT_MAX);
    unsigned char *element;

    MPI_Type_size(type, &size);
    element = (unsigned char *)buffer + (uint64_t)size * (next_random() % (unsigned)count);
    if (fault.kind == CHANGE)
        for (int i = 0; i < size; i++)
            element[i] = (unsigned char)next_random();
    else if (fault.kind == INCREASE || fault.kind == DECREASE)
        shift(element, type, fault.kind == INCREASE ? amount : -amount);
    else if (fault.kind == OVERFLOW)
        for (uint64_t i = 0, bytes = 1 + next_random() % OVERFLOW_MAX; i < bytes; i++)
            ((unsigned char *)buffer)[(uint64_t)size * (unsigned)count + i] = (unsigned char)next_random();
}

/* ------------------------------------------------------------------------------------------------ MPI's
 * calls
 */

int MPI_Init(int *argc, char ***argv)
{
    int r = PMPI_Init(argc, argv), size;

    PMPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    read_fault(size);
    stay_when_dying();
    stay_at_errors();
    return r;
}

int MPI_Abort(MPI_Comm communicator, int code)
{
    stay(0);
    return PMPI_Abort(communicator, code);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator)
{
    if (is_due(false, true, "MPI_Send")) {
        if (fault.kind == LOOP)
            never_end();
        for (uint64_t more = 1 + next_random() % EXTRA_MAX; more; more--)
            PMPI_Ssend(buffer, count, type, to, tag, communicator);
    }
    return PMPI_Send(buffer, count, type, to, tag, communicator);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm communicator,
             MPI_Status *status)
{
    bool due = is_due(true, false, "MPI_Recv");
    int r;

    if (due && fault.kind == LOOP)
        never_end();
    r = PMPI_Recv(buffer, count, type, from, tag, communicator, status);
    if (due)
        spoil(buffer, count, type);
    return r;
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op operation,
                  MPI_Comm communicator)
{
    bool due = is_due(true, false, "MPI_Allreduce");
    int r;

    if (due && fault.kind == LOOP)
        never_end();
    r = PMPI_Allreduce(from, to, count, type, operation, communicator);
    if (due)
        spoil(to, count, type);
    return r;
}
