/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/recorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/call_replay.h"
#include "analyzer/order/kept_order.h"
#include "analyzer/order/living_threads.h"
#include "analyzer/order/recorded_functions.h"
#include "analyzer/order/recorded_states.h"
#include "base/array.h"
#include "base/error.h"
#include "store/db/db.h"
#include "store/segment/event_iter.h"

/* One open call. */
struct activation {
    struct open_call call;
    struct replay *replay; /* NULL: its code is not known */
};

struct known_map {
    struct replay_map *map;
    bool tried;
};

struct reader {
    struct tracestore *store;
    struct recorded_sample *recorded;
    struct recorded_functions functions;
    struct recorded_states states; /* of goroutines, at the end of the run */
    struct order_code *code;
    struct known_map *maps; /* of functions.items, in their order */
    uint64_t at_ns;
    struct activation *open;
    size_t open_count, open_capacity;
    size_t point_capacity;
    size_t kept_count;  /* threads of which the store has a look at the end: the first of the set */
    sqlite3_stmt *site; /* the return address of a call site */
};

/* ---------------------------------------------------------------------------------------------- functions */

/* The store has the functions that were called, in any run, and those that could not be probed. So what it
 * does not have was never called, where all functions were recorded. */
static uint32_t look_up(void *context, uint32_t image, uint64_t address)
{
    const struct recorded_functions *functions = context;
    const struct recorded_function *found = recorded_functions_at(functions, image, address);

    if (found && found->blind)
        return REPLAY_NOT_RECORDED;
    if (found && found->called)
        return found->id;
    return functions->chosen ? REPLAY_NOT_RECORDED : REPLAY_SILENT;
}

/* Ways through a function's code, made once. NULL in *ret_map: the code is not known, or not well enough. */
static int map_of(struct reader *reader, const struct recorded_function *function,
                  const struct replay_map **ret_map)
{
    struct known_map *known = &reader->maps[function - reader->functions.items];
    const struct sample_place place = {
        .image = function->image, .entry = function->address, .address = function->address};
    int r = 0;

    if (!known->tried) {
        const struct order_function *code = order_code_function(reader->code, &place);

        known->tried = true;
        if (code && code->graph && code->entry == function->address && flow_graph_is_closed(code->graph))
            r = replay_map_new(reader->code, code, look_up, &reader->functions, &known->map);
    }
    *ret_map = known->map;
    return r;
}

static int begin_replay(struct reader *reader, struct activation *activation)
{
    const struct recorded_function *function =
        recorded_functions_by_id(&reader->functions, activation->call.function);
    const struct replay_map *map = NULL;
    int r = function ? map_of(reader, function, &map) : 0;

    return r == 0 && map ? replay_new(map, &activation->replay) : r;
}

/* ---------------------------------------------------------------------------------------------- events */

static void release_open(struct reader *reader)
{
    for (size_t i = 0; i < reader->open_count; i++)
        replay_free(reader->open[i].replay);
    reader->open_count = 0;
}

/* Whether the event is later than the moment that is asked for. */
static bool is_late(const struct reader *reader, const struct event *event)
{
    return reader->at_ns && event->ns > reader->at_ns;
}

/* Reads the thread's stream up to the moment, for the calls that are open then. */
static int find_open(struct reader *reader, int64_t thread_id, struct error *err)
{
    const struct event_range range = {.last_seq = UINT64_MAX, .no_sites = true};
    struct event_iter *iter = NULL;
    const struct open_call *calls;
    struct event event = {0};
    bool timed = false;
    size_t count = 0;
    int r = event_iter_open_db(tracestore_db(reader->store), thread_id, &range, &iter, err);

    while (r == 0 && (r = event_iter_next(iter, &event, err)) == 0 && !is_late(reader, &event)) {
        timed |= event.ns != 0;
        calls = event_iter_open_calls(iter, &count);
        if (array_reserve(&reader->open, &reader->open_capacity, count) < 0) {
            r = error_no_memory(err);
            break;
        }
        /* Only what has changed: one call more, or the innermost gone; behind a loss, whatever. */
        for (size_t i = event.kind == EVENT_LOST || count == 0 ? 0 : count - 1; i < count; i++)
            reader->open[i] = (struct activation){.call = calls[i]};
        reader->open_count = count;
    }
    event_iter_free(iter);
    /* The first event with a time is too late already: those before it may be as well. */
    if (r == 0 && !timed && event.ns != 0)
        reader->open_count = 0;
    if (r >= 0 && reader->at_ns && reader->open_count && !timed)
        return error_say(err, -ENODATA, "the run has no times (omit --at)");
    return r < 0 ? r : 0;
}

/* The return address of a call site; 0: not known. */
static uint64_t return_address(const struct reader *reader, uint32_t site)
{
    uint64_t address = 0;

    if (!site || !reader->site)
        return 0;
    if (db_bind(reader->site, "i", (int64_t)site) == SQLITE_OK && db_row(reader->site, "i") == SQLITE_ROW)
        address = (uint64_t)sqlite3_column_int64(reader->site, 0);
    sqlite3_reset(reader->site);
    return address;
}

/* What an event means for the open calls: a call is one of the call around it, if that is still open at the
 * end. */
static void feed(struct reader *reader, const struct event *event)
{
    struct activation *caller;

    if (event->kind == EVENT_LOST)
        for (size_t i = 0; i < reader->open_count; i++)
            if (reader->open[i].replay && reader->open[i].call.seq < event->seq)
                replay_lose(reader->open[i].replay);
    if (event->kind != EVENT_CALL || event->depth == 0 || event->depth > reader->open_count)
        return;
    caller = &reader->open[event->depth - 1];
    if (!caller->replay || caller->call.seq >= event->seq)
        return;
    if (event->assumed)
        replay_lose(caller->replay);
    else
        replay_call(caller->replay, event->function, return_address(reader, event->call_site));
}

static int replay_open(struct reader *reader, int64_t thread_id, struct error *err)
{
    const struct event_range range = {.first_seq = reader->open_count ? reader->open[0].call.seq : 0,
                                      .last_seq = UINT64_MAX,
                                      .no_sites = !reader->site};
    struct event_iter *iter = NULL;
    struct event event;
    int r = 0;

    for (size_t i = 0; r == 0 && i < reader->open_count; i++)
        r = begin_replay(reader, &reader->open[i]);
    if (r < 0)
        return error_no_memory(err), -ENOMEM;
    r = event_iter_open_db(tracestore_db(reader->store), thread_id, &range, &iter, err);
    while (r == 0 && (r = event_iter_next(iter, &event, err)) == 0 && !is_late(reader, &event))
        feed(reader, &event);
    event_iter_free(iter);
    return r < 0 ? r : 0;
}

/* ---------------------------------------------------------------------------------------------- places */

/* What is known of the place of an open call; of the innermost one only its function. */
static int make_place(struct reader *reader, size_t index, struct sample_place *place,
                      struct order_point *point)
{
    const struct activation *activation = &reader->open[index];
    const struct recorded_function *function =
        recorded_functions_by_id(&reader->functions, activation->call.function);
    const char *file = NULL;
    unsigned line = 0;

    memset(place, 0, sizeof(*place));
    memset(point, 0, sizeof(*point));
    place->image = function ? function->image : SAMPLE_NO_IMAGE;
    place->entry = function ? function->address : SAMPLE_NO_ADDRESS;
    place->function = function ? function->name : 0;
    place->address = SAMPLE_NO_ADDRESS;
    if (activation->call.assumed)
        place->flags |= SAMPLE_AFTER_GAP;
    if (function && function->line) {
        place->line = function->line;
        place->file = function->file;
    }
    if (index + 1 == reader->open_count)
        return 0;
    if (!activation->replay || replay_point(activation->replay, point) < 0) {
        reader->recorded->unplaced++;
        return 0;
    }
    place->address = point->address;
    if (image_source_line(order_code_image(reader->code, place->image), place->address, &file, &line))
        place->line = line;
    return sample_set_text(reader->recorded->set, file, &place->file);
}

/* A program that was begun by exec is inside that call: what was open before is of another program. */
static size_t first_of_program(const struct reader *reader)
{
    size_t first = 0;

    for (size_t i = 1; i < reader->open_count; i++) {
        const struct recorded_function *caller =
            recorded_functions_by_id(&reader->functions, reader->open[i - 1].call.function);
        const struct recorded_function *called =
            recorded_functions_by_id(&reader->functions, reader->open[i].call.function);
        const char *name = caller ? sample_text(reader->recorded->set, caller->name) : "";

        if (called && caller && called->image != caller->image &&
            (strncmp(name, "exec", 4) == 0 || strcmp(name, "fexecve") == 0))
            first = i;
    }
    return first;
}

/* Whether the first call of the program is the first that it has made: one that is not may be the same again.
 */
static bool is_first_call(const struct reader *reader, size_t first)
{
    uint64_t before = first ? reader->open[first - 1].call.seq + 1 : 0;

    return !reader->functions.attached && reader->open[first].call.seq == before;
}

static int add_thread(struct reader *reader, const struct tracestore_thread *thread, int rank)
{
    struct recorded_sample *recorded = reader->recorded;
    struct sample_thread added = {.tid = thread->tid, .rank = rank};
    AUTO_FREE uint32_t *row = calloc(reader->open_count + 1, sizeof(*row));
    size_t first = first_of_program(reader);
    struct sample_place place;
    int r = row ? 0 : -ENOMEM;

    if (r == 0)
        r = array_reserve(&recorded->points, &reader->point_capacity,
                          recorded->set->stack_count + reader->open_count);
    for (size_t i = first; r == 0 && i < reader->open_count; i++) {
        r = make_place(reader, i, &place, &recorded->points[recorded->set->stack_count + i - first]);
        if (r == 0)
            r = sample_set_place(recorded->set, &place, &row[i - first]);
    }
    if (!is_first_call(reader, first))
        added.flags |= SAMPLE_INCOMPLETE;
    if (r == 0)
        r = sample_set_text(recorded->set, thread->label, &added.label);
    if (r == 0)
        r = sample_set_text(recorded->set, thread->name, &added.name);
    if (r == 0)
        added.state = recorded_states_find(&reader->states, added.label);
    return r == 0 ? sample_set_thread(recorded->set, &added, row, reader->open_count - first) : r;
}

/* ---------------------------------------------------------------------------------------------- threads */

static int read_rank(struct reader *reader, int64_t process_id, int *ret_rank, struct error *err)
{
    int64_t rank = 0;
    int r = db_number(tracestore_db(reader->store), "cannot read the ranks of the run", &rank, err,
                      "SELECT coalesce(rank, -1) FROM main.processes WHERE process_id = ?1", "i", process_id);

    *ret_rank = (int)rank;
    return r;
}

static int read_thread(struct reader *reader, const struct tracestore_thread *thread, struct error *err)
{
    bool certain =
        reader->at_ns ? thread->returns == TRACE_RETURNS_PROBED : trace_returns_tell_open(thread->returns);
    int rank = SAMPLE_NO_RANK, r;

    if (thread->returns == TRACE_RETURNS_NONE)
        return 0;
    reader->open_count = 0;
    r = find_open(reader, thread->thread_id, err);
    if (r == 0 && reader->open_count)
        r = replay_open(reader, thread->thread_id, err);
    if (r == 0 && reader->open_count)
        r = read_rank(reader, thread->process_id, &rank, err);
    if (r == 0 && reader->open_count) {
        reader->recorded->uncertain += !certain;
        if (add_thread(reader, thread, rank) < 0)
            r = error_no_memory(err);
    }
    release_open(reader);
    return r;
}

/* ---------------------------------------------------------------------------------------------- kept ones */

/* What the run calls the thread: a look at processes has its own numbers for them. */
static int kept_label(const struct reader *reader, const struct living_threads *living,
                      const struct sample_thread *thread, uint32_t *ret_label)
{
    const struct tracestore_thread *same = thread->tid ? living_threads_find(living, thread->tid) : NULL;
    const struct tracestore_thread *process = living_threads_find(living, thread->process);
    const char *label = sample_text(reader->recorded->set, thread->label), *dot = strchr(label, '.');
    AUTO_FREE char *known = NULL;

    if (same && !strchr(same->label, 'g'))
        return sample_set_text(reader->recorded->set, same->label, ret_label);
    if (process && dot &&
        asprintf(&known, "%.*s%s", (int)strcspn(process->label, "."), process->label, dot) < 0)
        return -ENOMEM;
    return known ? sample_set_text(reader->recorded->set, known, ret_label) : 0;
}

static int add_kept_thread(struct reader *reader, const struct kept_order *kept, uint32_t node,
                           const struct sample_thread *thread)
{
    struct recorded_sample *recorded = reader->recorded;
    size_t first = recorded->set->stack_count, count = 0;
    AUTO_FREE uint32_t *row = NULL;

    for (uint32_t at = node; at != PREFIX_NONE; at = kept->nodes[at].parent)
        count++;
    row = calloc(count + 1, sizeof(*row));
    if (!row || array_reserve(&recorded->points, &reader->point_capacity, first + count) < 0)
        return -ENOMEM;
    for (size_t i = count; i-- > 0; node = kept->nodes[node].parent) {
        row[i] = kept->nodes[node].place;
        recorded->points[first + i] = kept->nodes[node].point;
    }
    return sample_set_thread(recorded->set, thread, row, count);
}

static int add_kept(struct reader *reader, const struct kept_order *kept, const struct living_threads *living)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < kept->thread_count; i++) {
        struct sample_thread thread = kept->threads[i].thread;

        r = kept_label(reader, living, &thread, &thread.label);
        if (r == 0)
            r = add_kept_thread(reader, kept, kept->threads[i].node, &thread);
    }
    return r;
}

/* Whether a look at the end has the thread. */
static int was_kept(const struct reader *reader, const struct tracestore_thread *thread, bool *ret_was)
{
    const struct sample_thread *threads = reader->recorded->set->threads;
    uint32_t label = 0;

    *ret_was = false;
    if (reader->kept_count == 0 || thread->ended_ns != 0)
        return 0;
    if (sample_set_text(reader->recorded->set, thread->label, &label) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < reader->kept_count; i++)
        *ret_was |= threads[i].label == label;
    return 0;
}

static int read_kept(struct reader *reader, int64_t run_id, const struct tracestore_thread *threads,
                     size_t count, struct error *err)
{
    CLEANUP(living_threads_release) struct living_threads living = {0};
    struct kept_order kept = {0};
    int r = living_threads_of(threads, count, &living)
                ? error_no_memory(err)
                : kept_order_read(reader->store, run_id, reader->recorded->set, &kept, err);

    if (r == 0 && add_kept(reader, &kept, &living) < 0)
        r = error_no_memory(err);
    kept_order_release(&kept);
    reader->kept_count = reader->recorded->set->thread_count;
    return r;
}

static int read_threads(struct reader *reader, int64_t run_id, struct error *err)
{
    struct tracestore_thread *threads = NULL;
    size_t count = 0;
    int r = tracestore_threads(reader->store, run_id, &threads, &count, err);

    if (r == 0 && !reader->at_ns)
        r = read_kept(reader, run_id, threads, count, err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        bool kept = false;

        if (was_kept(reader, &threads[i], &kept) < 0)
            r = error_no_memory(err);
        else if (!kept)
            r = read_thread(reader, &threads[i], err);
    }
    tracestore_threads_free(threads, count);
    return r;
}

static int iterations_of(void *context, size_t thread, size_t frame, uint32_t depth, uint64_t *ret_count)
{
    const struct recorded_sample *recorded = context;
    const struct order_point *point = &recorded->points[recorded->set->threads[thread].first + frame];

    if (depth > point->depth || !point->iterations[depth - 1].known)
        return -ENOENT;
    *ret_count = point->iterations[depth - 1].count;
    return 0;
}

static int read_run(struct reader *reader, int64_t run_id, struct error *err)
{
    int64_t has_sites = 0;
    int r = recorded_functions_read(reader->store, run_id, reader->recorded->set, &reader->functions, err);

    if (r == 0)
        r = order_code_new(reader->recorded->set, &reader->code, err);
    if (r < 0)
        return r;
    reader->maps = calloc(reader->functions.count + 1, sizeof(*reader->maps));
    if (!reader->maps)
        return error_no_memory(err), -ENOMEM;
    r = db_number(tracestore_db(reader->store), "cannot read the store", &has_sites, err,
                  "SELECT count(*) FROM main.sqlite_master WHERE name = 'call_sites'", "");
    if (r == 0 && !reader->at_ns)
        r = recorded_states_read(reader->store, run_id, reader->recorded->set, &reader->states, err);
    if (r == 0 && has_sites)
        r = db_prepare(tracestore_db(reader->store), "SELECT address FROM main.call_sites WHERE site_id = ?1",
                       "cannot read call sites", &reader->site, err);
    return r == 0 ? read_threads(reader, run_id, err) : r;
}

static void reader_release(struct reader *reader)
{
    release_open(reader);
    for (size_t i = 0; reader->maps && i < reader->functions.count; i++)
        replay_map_free(reader->maps[i].map);
    free(reader->maps);
    free(reader->open);
    sqlite3_finalize(reader->site);
    order_code_free(reader->code);
    recorded_functions_release(&reader->functions);
    recorded_states_release(&reader->states);
}

int recorded_sample_new(struct tracestore *store, int64_t run_id, uint64_t at_ns,
                        struct recorded_sample **ret_recorded, struct error *err)
{
    AUTO_RECORDED_SAMPLE struct recorded_sample *recorded = calloc(1, sizeof(*recorded));
    struct reader reader = {.store = store, .recorded = recorded, .at_ns = at_ns};
    int r;

    if (!recorded || sample_set_new(&recorded->set) < 0)
        return error_no_memory(err), -ENOMEM;
    recorded->source = (struct order_source){.context = recorded, .iterations = iterations_of};
    r = read_run(&reader, run_id, err);
    reader_release(&reader);
    if (r == 0)
        *ret_recorded = take_pointer(recorded);
    return r;
}

void recorded_sample_free(struct recorded_sample *recorded)
{
    if (!recorded)
        return;
    sample_set_free(recorded->set);
    free(recorded->points);
    free(recorded);
}
