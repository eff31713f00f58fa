/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/loops/loop_summary_streams.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/loops/run_gaps.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "store/db/sqlite.h"

#define MOST_WORKERS 64u
#define WORTH_A_WORKER 1000000u /* events; a worker opens the stores again, which takes some milliseconds */

/* ------------------------------------------------------------------------------------------ the work */

struct task {
    size_t run, index;
    const struct tracestore_thread *from;
    size_t worker; /* who did it */
};

struct job {
    const struct loop_source *sources;
    size_t runs;
    const struct stream_view *views;
    size_t view_count;
    struct tracestore_thread **threads; /* by run */
    size_t *thread_counts;
    struct task *tasks; /* the longest stream first */
    size_t task_count;
    atomic_size_t next;
    atomic_bool failed;
};

static void job_release(struct job *job)
{
    for (size_t run = 0; job->threads && job->thread_counts && run < job->runs; run++)
        tracestore_threads_free(job->threads[run], job->thread_counts[run]);
    free(job->threads);
    free(job->thread_counts);
    free(job->tasks);
}

static int longer_first(const void *a, const void *b)
{
    const struct task *x = a, *y = b;

    return (x->from->events < y->from->events) - (x->from->events > y->from->events);
}

/* Makes the threads of one run in all views, as yet without events. */
static int make_threads(struct job *job, size_t run, struct error *err)
{
    size_t count = job->thread_counts[run];

    for (size_t i = 0; i < job->view_count; i++) {
        struct run_loops *loops = &job->views[i].summary->runs[run];

        loops->threads = calloc(count + 1, sizeof(*loops->threads));
        if (!loops->threads)
            return error_no_memory(err);
        loops->thread_count = count;
        for (size_t thread = 0; thread < count; thread++) {
            loops->threads[thread].label = strdup(job->threads[run][thread].label);
            if (!loops->threads[thread].label)
                return error_no_memory(err);
        }
    }
    return 0;
}

static int job_init(struct job *job, struct error *err)
{
    int r = 0;

    job->threads = calloc(job->runs, sizeof(struct tracestore_thread *));
    job->thread_counts = calloc(job->runs, sizeof(*job->thread_counts));
    if (!job->threads || !job->thread_counts)
        return error_no_memory(err);
    for (size_t run = 0; run < job->runs && r >= 0; run++) {
        r = tracestore_threads(job->sources[run].store, job->sources[run].run->run_id, &job->threads[run],
                               &job->thread_counts[run], err);
        if (r >= 0)
            r = make_threads(job, run, err);
        job->task_count += job->thread_counts[run];
    }
    if (r < 0)
        return r;
    job->tasks = calloc(job->task_count + 1, sizeof(*job->tasks));
    if (!job->tasks)
        return error_no_memory(err);
    job->task_count = 0;
    for (size_t run = 0; run < job->runs; run++)
        for (size_t i = 0; i < job->thread_counts[run]; i++)
            job->tasks[job->task_count++] = (struct task){run, i, &job->threads[run][i], 0};
    qsort(job->tasks, job->task_count, sizeof(*job->tasks), longer_first);
    return 0;
}

/* ------------------------------------------------------------------------------------------ workers */

/* The state of the last call that was kept. Nothing kept comes after it, so that its depth is enough to know
 * its return, and no stack is needed. */
struct last_kept {
    bool open, blurred; /* blurred: events were lost since, its return may be among them */
    uint32_t depth;
};

/* What a worker has for one view. */
struct thread_state {
    const struct stream_view *view;
    struct loop_table own, *table; /* `table` is the summary's for the first worker, `own` for others */
    struct nlr_builder *builder;
    /* Of the thread being read: */
    const struct stream_symbols *symbols;
    struct thread_loops *thread;
    struct last_kept last;
    bool in_gap;
};

struct worker {
    struct job *job;
    size_t number;
    struct loop_source *sources; /* by run; the first worker's are the caller's */
    struct loop_source source;   /* of the run being read */
    struct thread_state *states; /* by view */
    pthread_t thread;
    struct error err;
    int result;
};

static void worker_release(struct worker *worker)
{
    struct job *job = worker->job;

    for (size_t i = 0; worker->states && i < job->view_count; i++) {
        nlr_builder_free(worker->states[i].builder);
        loop_table_release(&worker->states[i].own);
    }
    free(worker->states);
    for (size_t run = 0; worker->number && worker->sources && run < job->runs; run++) {
        bool again = false;

        for (size_t other = 0; other < run; other++)
            again |= worker->sources[other].store == worker->sources[run].store;
        if (!again)
            tracestore_free(worker->sources[run].store);
    }
    free(worker->sources);
}

/* Opens the stores once more, each once. A store without a file has one connection only. */
static int open_stores(struct worker *worker)
{
    const struct job *job = worker->job;

    for (size_t run = 0; run < job->runs; run++) {
        struct tracestore *store = job->sources[run].store;
        const char *path = sqlite3_db_filename(tracestore_db(store), "main");

        for (size_t other = 0; other < run && !worker->sources[run].store; other++)
            if (job->sources[other].store == store)
                worker->sources[run].store = worker->sources[other].store;
        if (worker->sources[run].store)
            continue;
        if (!path || !*path)
            return -ENOTSUP;
        if (tracestore_open(path, TRACESTORE_READ, &worker->sources[run].store, &worker->err) < 0)
            return -EIO;
    }
    return 0;
}

static int worker_init(struct worker *worker, struct job *job, size_t number)
{
    int r = 0;

    *worker = (struct worker){.job = job, .number = number};
    worker->sources = calloc(job->runs, sizeof(*worker->sources));
    worker->states = calloc(job->view_count, sizeof(*worker->states));
    if (!worker->sources || !worker->states)
        return error_no_memory(&worker->err);
    for (size_t run = 0; run < job->runs; run++)
        worker->sources[run] =
            (struct loop_source){number ? NULL : job->sources[run].store, job->sources[run].run};
    if (number)
        r = open_stores(worker);
    for (size_t i = 0; i < job->view_count && r >= 0; i++) {
        struct thread_state *state = &worker->states[i];

        state->view = &job->views[i];
        state->table = number ? &state->own : &state->view->summary->table;
        r = nlr_builder_new(state->table, &state->view->nlr, &state->builder);
        if (r < 0)
            error_set(&worker->err, r, r == -EINVAL ? "see --help for the limits" : NULL,
                      "setting up loop recognition");
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ one thread */

static int add_gap(struct thread_state *state, const struct loop_gap *gap)
{
    struct thread_loops *thread = state->thread;

    if (state->in_gap && thread->gap_count) {
        struct loop_gap *last = &thread->gaps[thread->gap_count - 1];

        last->events = last->events && gap->events ? last->events + gap->events : 0;
        return 0;
    }
    if (array_reserve(&thread->gaps, &thread->gap_capacity, thread->gap_count + 1))
        return -ENOMEM;
    thread->gaps[thread->gap_count++] = *gap;
    return nlr_builder_push(state->builder, loop_table_lost(state->table));
}

static int add_gaps(struct worker *worker, const struct loop_gap *gap)
{
    int r = 0;

    for (size_t i = 0; i < worker->job->view_count && !r; i++) {
        r = add_gap(&worker->states[i], gap);
        worker->states[i].in_gap = worker->states[i].last.blurred = true;
    }
    return r;
}

/* What an event is to nested loop recognition. */
static uint32_t event_symbol(const struct thread_state *state, const struct event *event)
{
    uint32_t symbol =
        event->function < state->symbols->count ? state->symbols->symbols[event->function] : SYMBOL_DROPPED;

    if (event->kind == EVENT_RETURN && symbol != SYMBOL_DROPPED)
        return state->view->with_returns ? SYMBOL_RETURN : SYMBOL_DROPPED;
    return symbol;
}

static void track_last(struct last_kept *last, const struct event *event, bool kept)
{
    if (event->kind == EVENT_CALL && kept)
        *last = (struct last_kept){.open = true, .depth = event->depth};
    else if (event->kind == EVENT_RETURN && event->depth <= last->depth)
        last->open = false;
}

static int add_event(struct thread_state *state, const struct event *event)
{
    uint32_t symbol = event_symbol(state, event);

    state->thread->events++;
    track_last(&state->last, event, symbol != SYMBOL_DROPPED);
    if (symbol == SYMBOL_DROPPED)
        return 0;
    state->thread->kept++;
    state->in_gap = false;
    return nlr_builder_push(state->builder, nlr_symbol(symbol));
}

/* Reads the stream to its end. A damaged segment is a gap like others: the iterator continues after it. */
static int read_events(struct worker *worker, int64_t thread_id, struct event_iter *iter, struct error *err)
{
    struct event event;
    int r;

    for (;;) {
        struct loop_gap gap = {0};

        r = event_iter_next(iter, &event, err);
        if (r > 0)
            return 0;
        if (r < 0 && r != -EBADMSG)
            return r;
        if (r == 0 && event.kind != EVENT_LOST) {
            for (size_t i = 0; i < worker->job->view_count && !r; i++)
                r = add_event(&worker->states[i], &event);
        } else {
            if (r)
                snprintf(gap.cause, sizeof(gap.cause), "damaged segment");
            else
                run_gaps_find(&worker->source, thread_id, event.seq, &gap);
            r = add_gaps(worker, &gap);
        }
        if (r)
            return error_no_memory(err);
    }
}

static enum last_call last_call(const struct thread_state *state, enum trace_returns returns)
{
    if (!state->last.open && returns != TRACE_RETURNS_NONE)
        return LAST_CALL_RETURNED;
    if (state->last.blurred || state->thread->incomplete || !trace_returns_tell_open(returns))
        return LAST_CALL_UNKNOWN;
    return LAST_CALL_OPEN;
}

static void begin_thread(struct worker *worker, const struct task *task)
{
    worker->source = worker->sources[task->run];
    for (size_t i = 0; i < worker->job->view_count; i++) {
        struct thread_state *state = &worker->states[i];

        state->thread = &state->view->summary->runs[task->run].threads[task->index];
        state->symbols = &state->view->symbols[task->run];
        state->last = (struct last_kept){0};
        state->in_gap = false;
    }
}

static int end_thread(struct thread_state *state, const struct run_loops *run,
                      const struct tracestore_thread *from)
{
    struct thread_loops *thread = state->thread;
    struct loop_gap gap = {.cause = "unfinished"};

    if (run->unfinished && !from->ended_ns) {
        state->last.blurred = true;
        state->in_gap = false; /* a cause of its own */
        if (add_gap(state, &gap))
            return -ENOMEM;
    }
    thread->incomplete = run->incomplete || run_gaps_has_unplaced(run, thread->label);
    thread->last_call = last_call(state, from->returns);
    return nlr_builder_take(state->builder, &thread->loops);
}

static int read_thread(struct worker *worker, const struct task *task)
{
    struct event_iter *iter = NULL;
    struct error *err = &worker->err;
    int r;

    begin_thread(worker, task);
    r = event_iter_open(worker->source.store, task->from->thread_id, 0, &iter, err);
    if (r < 0)
        return r;
    r = read_events(worker, task->from->thread_id, iter, err);
    event_iter_free(iter);
    for (size_t i = 0; i < worker->job->view_count && r >= 0; i++)
        if (end_thread(&worker->states[i], &worker->states[i].view->summary->runs[task->run], task->from))
            r = error_no_memory(err);
    return r;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct job *job = worker->job;

    while (!atomic_load(&job->failed)) {
        size_t index = atomic_fetch_add(&job->next, 1);

        if (index >= job->task_count)
            break;
        job->tasks[index].worker = worker->number;
        worker->result = read_thread(worker, &job->tasks[index]);
        if (worker->result < 0)
            atomic_store(&job->failed, true);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------ one table */

/* Spells the summaries in the common table; `ids` are by worker, NULL for the first. Lost places are in no
 * body, since no two are equal. */
static void respell(const struct job *job, size_t view, uint32_t *const *ids)
{
    struct loop_summary *summary = job->views[view].summary;

    for (size_t i = 0; i < job->task_count; i++) {
        const struct task *task = &job->tasks[i];
        const uint32_t *map = ids[task->worker];
        struct nlr_sequence *loops = &summary->runs[task->run].threads[task->index].loops;

        for (size_t at = 0; map && at < loops->count; at++)
            if (loops->elements[at].kind == NLR_LOOP)
                loops->elements[at].id = map[loops->elements[at].id];
    }
    summary->table.lost = 0;
    for (size_t run = 0; run < job->runs; run++)
        for (size_t i = 0; i < summary->runs[run].thread_count; i++) {
            struct nlr_sequence *loops = &summary->runs[run].threads[i].loops;

            for (size_t at = 0; at < loops->count; at++)
                if (loops->elements[at].kind == NLR_LOST)
                    loops->elements[at] = loop_table_lost(&summary->table);
        }
}

static int merge_tables(const struct job *job, struct worker *workers, size_t count)
{
    uint32_t *ids[MOST_WORKERS] = {0};
    int r = 0;

    for (size_t view = 0; view < job->view_count && r >= 0; view++) {
        for (size_t i = 1; i < count && r >= 0; i++) {
            struct loop_table *own = &workers[i].states[view].own;

            ids[i] = malloc((own->count + 1) * sizeof(*ids[i]));
            r = ids[i] ? loop_table_merge(&job->views[view].summary->table, own, ids[i]) : -ENOMEM;
            loop_table_release(own);
        }
        if (r >= 0)
            respell(job, view, ids);
        for (size_t i = 1; i < count; i++)
            free(take_pointer(ids[i]));
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ all of them */

static unsigned count_workers(const struct job *job, unsigned wanted)
{
    uint64_t events = 0;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    for (size_t i = 0; i < job->task_count; i++)
        events += job->tasks[i].from->events;
    if (!wanted) {
        wanted = processors > 0 ? (unsigned)processors : 1;
        if (events / WORTH_A_WORKER < wanted)
            wanted = (unsigned)(events / WORTH_A_WORKER);
    }
    if (wanted > MOST_WORKERS)
        wanted = MOST_WORKERS;
    if (wanted > job->task_count)
        wanted = (unsigned)job->task_count;
    return wanted ? wanted : 1;
}

/* The calling thread works, too. A helper that cannot begin leaves its work to the others. */
static int run_workers(struct job *job, struct worker *workers, size_t wanted, size_t *ret_count,
                       struct error *err)
{
    size_t count = 1;
    int r = worker_init(&workers[0], job, 0);

    while (r >= 0 && count < wanted && worker_init(&workers[count], job, count) >= 0 &&
           !pthread_create(&workers[count].thread, NULL, work, &workers[count]))
        count++;
    if (r >= 0 && count < wanted)
        worker_release(&workers[count]);
    *ret_count = count;
    if (r >= 0)
        work(&workers[0]);
    for (size_t i = 1; i < count; i++)
        pthread_join(workers[i].thread, NULL);
    for (size_t i = 0; i < count && r >= 0; i++)
        r = workers[i].result;
    for (size_t i = 0; i < count && r < 0 && err; i++)
        if (workers[i].err.code)
            *err = workers[i].err;
    return r;
}

int loop_summary_streams_read(const struct loop_source *sources, size_t runs, const struct stream_view *views,
                              size_t count, unsigned workers, struct error *err)
{
    CLEANUP(job_release)
    struct job job = {.sources = sources, .runs = runs, .views = views, .view_count = count};
    AUTO_FREE struct worker *working = NULL;
    size_t working_count = 0;
    int r = job_init(&job, err);

    if (r < 0)
        return r;
    workers = count_workers(&job, workers);
    working = calloc(workers, sizeof(*working));
    if (!working)
        return error_no_memory(err);
    r = run_workers(&job, working, workers, &working_count, err);
    if (r >= 0 && merge_tables(&job, working, working_count))
        r = error_no_memory(err);
    for (size_t i = 0; i < working_count; i++)
        worker_release(&working[i]);
    return r;
}
