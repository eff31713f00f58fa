/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cluster/similarity_rows.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define MAX_THREADS 64
#define SMALL_WORK ((size_t)1 << 20) /* below so many values a second thread costs more than it gives */

struct job {
    const struct similarity_rows *rows;
    uint32_t *members; /* objects, class by class, ascending */
    size_t *first;     /* by class, and one more: in `members` */
    double *values;
    _Atomic size_t next; /* the next class that nobody has taken */
};

/* What one thread has for itself. */
struct room {
    uint32_t *shared;
    double *ratios;
    void *own;
};

static void room_release(struct room *room)
{
    free(room->shared);
    free(room->ratios);
    free(room->own);
}

static int room_allocate(const struct similarity_rows *rows, struct room *room)
{
    size_t classes = rows->classes ? rows->classes : 1;

    room->shared = calloc(classes, sizeof(*room->shared));
    room->ratios = calloc(classes, sizeof(*room->ratios));
    room->own = calloc(1, rows->room_size + 1);
    return room->shared && room->ratios && room->own ? 0 : -ENOMEM;
}

static void fill_row(const struct job *job, size_t object, const double *ratios)
{
    const struct similarity_rows *rows = job->rows;
    double *value = job->values + similarity_index(rows->objects, object, object + 1);

    for (size_t other = object + 1; other < rows->objects; other++)
        *value++ = ratios[rows->class_of[other]];
}

static void fill_class(const struct job *job, uint32_t class, const struct room *room)
{
    const struct similarity_rows *rows = job->rows;

    rows->share(rows->context, class, room->own, room->shared);
    for (size_t other = 0; other < rows->classes; other++)
        room->ratios[other] = (double)room->shared[other] /
                              (double)(rows->sizes[class] + rows->sizes[other] - room->shared[other]);
    room->ratios[class] = 1; /* also of empty sets */
    for (size_t i = job->first[class]; i < job->first[class + 1]; i++)
        fill_row(job, job->members[i], room->ratios);
}

/* One thread's part: class after class, as long as there are some. A thread without memory leaves them all to
 * the others. */
static void *work(void *argument)
{
    struct job *job = argument;
    CLEANUP(room_release) struct room room = {0};
    size_t class;

    if (room_allocate(job->rows, &room) < 0)
        return NULL;
    while ((class = atomic_fetch_add(&job->next, 1)) < job->rows->classes)
        fill_class(job, (uint32_t) class, &room);
    return job;
}

static size_t threads_for(const struct similarity_rows *rows)
{
    cpu_set_t allowed;
    size_t threads;

    if (rows->classes < 2 || rows->objects * rows->classes < SMALL_WORK ||
        sched_getaffinity(0, sizeof(allowed), &allowed))
        return 1;
    threads = (size_t)CPU_COUNT(&allowed);
    return threads < MAX_THREADS ? threads : MAX_THREADS;
}

/* Threads that cannot be had are done without. */
static int work_in_parallel(struct job *job)
{
    pthread_t threads[MAX_THREADS];
    size_t wanted = threads_for(job->rows), started = 0;
    void *done;

    while (started + 1 < wanted && !pthread_create(&threads[started], NULL, work, job))
        started++;
    done = work(job);
    for (size_t i = 0; i < started; i++) {
        void *other;

        pthread_join(threads[i], &other);
        done = done ? done : other;
    }
    return done ? 0 : -ENOMEM;
}

/* Sorts the objects by class. */
static int group(struct job *job)
{
    const struct similarity_rows *rows = job->rows;

    job->members = calloc(rows->objects + 1, sizeof(*job->members));
    job->first = calloc(rows->classes + 2, sizeof(*job->first));
    if (!job->members || !job->first)
        return -ENOMEM;
    for (size_t i = 0; i < rows->objects; i++)
        job->first[rows->class_of[i] + 2]++;
    for (size_t i = 2; i < rows->classes + 2; i++)
        job->first[i] += job->first[i - 1];
    for (size_t i = 0; i < rows->objects; i++)
        job->members[job->first[rows->class_of[i] + 1]++] = (uint32_t)i;
    return 0;
}

static void job_release(struct job *job)
{
    free(job->members);
    free(job->first);
    free(job->values);
}

int similarity_from_rows(const struct similarity_rows *rows, struct similarity *ret_similarity)
{
    CLEANUP(job_release) struct job job = {.rows = rows};
    int r;

    if (rows->objects > UINT32_MAX)
        return -ENOMEM;
    job.values = calloc(similarity_size(rows->objects) + 1, sizeof(*job.values));
    if (!job.values)
        return -ENOMEM;
    r = group(&job);
    if (r < 0)
        return r;
    r = work_in_parallel(&job);
    if (r < 0)
        return r;
    ret_similarity->count = rows->objects;
    ret_similarity->values = take_pointer(job.values);
    return 0;
}
