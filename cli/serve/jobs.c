/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/jobs.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/serve/child.h"

enum { CHECK_CLIENTS_MS = 200 };

struct job {
    struct jobs *jobs;
    struct job *next; /* of all that are waiting, running or kept */
    char *target;
    uint64_t stamp, done_ns;
    unsigned references; /* of connections and of the list */
    bool started, listed;
    unsigned status; /* of HTTP; 0: not answered yet */
    const char *reason;
    char *body;
    size_t size;
    struct MHD_Connection **waiting; /* suspended */
    size_t waiting_count, waiting_capacity;
};

struct jobs {
    pthread_mutex_t lock;
    pthread_cond_t asked;
    char *store;
    struct job *list, **last; /* in the order of asking */
    size_t kept_bytes, waiting;
    pthread_t threads[JOBS_AT_ONCE];
    size_t thread_count;
    bool stopping;
    struct jobs_counts counts;
};

/* ------------------------------------------------------------------------------------------ references */

static void free_job(struct job *job)
{
    free(job->target);
    free(job->body);
    free(job->waiting);
    free(job);
}

/* With the lock held. */
static void drop(struct job *job)
{
    if (!--job->references)
        free_job(job);
}

void job_release(struct job *job)
{
    struct jobs *jobs = job->jobs;

    pthread_mutex_lock(&jobs->lock);
    drop(job);
    pthread_mutex_unlock(&jobs->lock);
}

unsigned job_status(const struct job *job)
{
    unsigned status;

    pthread_mutex_lock(&job->jobs->lock);
    status = job->status;
    pthread_mutex_unlock(&job->jobs->lock);
    return status;
}

const char *job_body(const struct job *job, size_t *ret_size)
{
    *ret_size = job->size;
    return job->body ? job->body : "";
}

const char *job_reason(const struct job *job)
{
    return job->reason ? job->reason : "";
}

/* ------------------------------------------------------------------------------------------ the list */

static void unlist(struct jobs *jobs, struct job **place)
{
    struct job *job = *place;

    *place = job->next;
    if (jobs->last == &job->next)
        jobs->last = place;
    job->listed = false;
    jobs->kept_bytes -= job->size;
    drop(job);
}

static bool is_old(const struct job *job, uint64_t now)
{
    return job->status && now - job->done_ns > JOBS_KEPT_SECONDS * UINT64_C(1000000000);
}

/* Forgets answers that are old, and the oldest ones while there are too many bytes. */
static void forget(struct jobs *jobs)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    struct job **place = &jobs->list;

    while (*place)
        if (is_old(*place, now) || ((*place)->status && jobs->kept_bytes > JOBS_KEPT_MAX))
            unlist(jobs, place);
        else
            place = &(*place)->next;
}

/* The answer of a job is there: all that wait for it continue. With the lock held. */
static void answer(struct job *job, unsigned status, const char *reason)
{
    struct jobs *jobs = job->jobs;

    job->status = status;
    job->reason = reason;
    job->done_ns = clock_ns(CLOCK_MONOTONIC);
    jobs->kept_bytes += job->listed ? job->size : 0;
    for (size_t i = 0; i < job->waiting_count; i++)
        MHD_resume_connection(job->waiting[i]);
    job->waiting_count = 0;
    for (struct job **place = &jobs->list; status >= 500 && *place; place = &(*place)->next)
        if (*place == job) {
            unlist(jobs, place);
            break;
        }
    forget(jobs);
}

/* ------------------------------------------------------------------------------------------ processes */

/* Whether the client of a suspended connection has closed it; one that has only closed its own direction cannot
 * be told from that. */
static bool is_gone(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd fd = {.fd = info ? info->connect_fd : -1, .events = POLLRDHUP};

    return fd.fd < 0 || (poll(&fd, 1, 0) > 0 && fd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static bool nobody_waits(void *context)
{
    struct job *job = context;
    bool nobody = true;

    pthread_mutex_lock(&job->jobs->lock);
    for (size_t i = 0; i < job->waiting_count && nobody; i++)
        nobody = is_gone(job->waiting[i]);
    nobody |= job->jobs->stopping;
    pthread_mutex_unlock(&job->jobs->lock);
    return nobody;
}

static unsigned status_of(const struct child_answer *answered, const char **ret_reason)
{
    *ret_reason = NULL;
    switch (answered->end) {
    case CHILD_TOO_LONG:
        *ret_reason = "The answer took too long.";
        return 503;
    case CHILD_TOO_LARGE:
        *ret_reason = "The answer is too large.";
        return 500;
    case CHILD_CANCELLED:
        *ret_reason = "Nobody waited for the answer.";
        return 503;
    case CHILD_BROKEN:
        *ret_reason = "The answer could not be made.";
        return 500;
    case CHILD_ENDED:
        break;
    }
    switch (answered->exit_status) {
    case JOBS_OK:
        return 200;
    case JOBS_NOT_FOUND:
        return 404;
    case JOBS_WRONG:
        return 400;
    default:
        return 500;
    }
}

static void work(struct jobs *jobs, struct job *job)
{
    struct child_answer answered = {0};
    const struct child_limits limits = {
        .seconds = JOBS_SECONDS,
        .bytes = JOBS_ANSWER_MAX,
        .check_ms = CHECK_CLIENTS_MS,
        .cancelled = nobody_waits,
        .context = job,
    };
    const char *reason;
    unsigned status;

    do /* once more when somebody has asked at the last moment */
        child_run(jobs->store, job->target, &limits, &answered);
    while (answered.end == CHILD_CANCELLED && !nobody_waits(job));
    status = status_of(&answered, &reason);
    pthread_mutex_lock(&jobs->lock);
    jobs->counts.run++;
    jobs->counts.killed += answered.end != CHILD_ENDED;
    jobs->counts.failed += status >= 500;
    job->body = answered.body;
    job->size = answered.size;
    answer(job, status, reason);
    pthread_mutex_unlock(&jobs->lock);
}

static struct job *next_job(struct jobs *jobs)
{
    for (struct job *job = jobs->list; job; job = job->next)
        if (!job->started)
            return job;
    return NULL;
}

static void *work_thread(void *context)
{
    struct jobs *jobs = context;

    pthread_mutex_lock(&jobs->lock);
    while (!jobs->stopping) {
        struct job *job = next_job(jobs);

        if (!job) {
            pthread_cond_wait(&jobs->asked, &jobs->lock);
            continue;
        }
        job->started = true;
        job->references++;
        jobs->waiting--;
        pthread_mutex_unlock(&jobs->lock);
        work(jobs, job);
        pthread_mutex_lock(&jobs->lock);
        drop(job);
    }
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------------------ asking */

/* A job of which the list holds one reference. */
static struct job *new_job(struct jobs *jobs, const char *target, uint64_t stamp)
{
    struct job *job = calloc(1, sizeof(*job));

    if (!job || !(job->target = strdup(target))) {
        free(job);
        return NULL;
    }
    *job = (struct job){.jobs = jobs, .target = job->target, .stamp = stamp, .references = 1, .listed = true};
    *jobs->last = job;
    jobs->last = &job->next;
    if (jobs->stopping || jobs->waiting >= JOBS_WAITING_MAX) {
        job->started = true;
        job->references++;
        answer(job, 503, "Too much is asked at once: try again in a moment.");
        return job;
    }
    jobs->waiting++;
    job->references++;
    pthread_cond_signal(&jobs->asked);
    return job;
}

struct job *jobs_ask(struct jobs *jobs, const char *target, uint64_t stamp, struct MHD_Connection *connection)
{
    struct job *job;

    pthread_mutex_lock(&jobs->lock);
    forget(jobs);
    jobs->counts.asked++;
    job = jobs->list;
    while (job && (job->stamp != stamp || strcmp(job->target, target) != 0))
        job = job->next;
    if (job) {
        jobs->counts.kept += job->status != 0;
        job->references++;
    } else {
        job = new_job(jobs, target, stamp);
    }
    if (job && !job->status) {
        if (array_reserve(&job->waiting, &job->waiting_capacity, job->waiting_count + 1) < 0) {
            drop(job);
            job = NULL;
        } else {
            job->waiting[job->waiting_count++] = connection;
            MHD_suspend_connection(connection);
        }
    }
    pthread_mutex_unlock(&jobs->lock);
    return job;
}

struct jobs_counts jobs_counts(struct jobs *jobs)
{
    struct jobs_counts counts;

    pthread_mutex_lock(&jobs->lock);
    counts = jobs->counts;
    pthread_mutex_unlock(&jobs->lock);
    return counts;
}

/* ------------------------------------------------------------------------------------------ begin and end */

int jobs_new(const char *store, struct jobs **ret_jobs, struct error *err)
{
    struct jobs *jobs = calloc(1, sizeof(*jobs));

    if (!jobs || !(jobs->store = strdup(store))) {
        free(jobs);
        return error_no_memory(err);
    }
    jobs->last = &jobs->list;
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->asked, NULL);
    for (; jobs->thread_count < JOBS_AT_ONCE; jobs->thread_count++) {
        int r = pthread_create(&jobs->threads[jobs->thread_count], NULL, work_thread, jobs);

        if (r) {
            jobs_free(jobs);
            return error_say(err, -r, "cannot create a thread: %s", strerror(r));
        }
    }
    *ret_jobs = jobs;
    return 0;
}

void jobs_stop(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->stopping = true;
    pthread_cond_broadcast(&jobs->asked);
    pthread_mutex_unlock(&jobs->lock);
    for (size_t i = 0; i < jobs->thread_count; i++)
        pthread_join(jobs->threads[i], NULL);
    jobs->thread_count = 0;
    pthread_mutex_lock(&jobs->lock);
    for (struct job *job = next_job(jobs); job; job = next_job(jobs)) {
        job->started = true;
        answer(job, 503, "The server is ending.");
    }
    pthread_mutex_unlock(&jobs->lock);
}

void jobs_free(struct jobs *jobs)
{
    if (!jobs)
        return;
    jobs_stop(jobs);
    while (jobs->list)
        unlist(jobs, &jobs->list);
    pthread_mutex_destroy(&jobs->lock);
    pthread_cond_destroy(&jobs->asked);
    free(jobs->store);
    free(jobs);
}
