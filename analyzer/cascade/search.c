/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/search.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/array.h"
#include "base/cleanup.h"

enum { MOST_WAITS = 4 /* of one resource, from one place, in one region */, MOST_PLACES = 256 };

struct region {
    uint32_t thread, line;
    size_t from, to; /* of the thread's events, both included */
    uint32_t nearer; /* the region that it delays; TRACE_NONE: it is the sink */
    uint32_t sink;
    struct cascade_link link; /* to that */
    uint32_t section;         /* the critical section or handler that it is, TRACE_NONE */
    unsigned hops, contentions, depth;
};

struct visit {
    struct {
        uint32_t thread, sink, hops, contention;
        uint64_t from, to;
    } key;
    UT_hash_handle hh;
};

struct search {
    const struct search_input *input;
    const struct search_options *options;
    search_source *is_source;
    const void *context;
    struct found_cascades *found;
    struct region *regions; /* a queue: those before `next` have been looked at */
    size_t count, capacity, next;
    struct visit *visited;
    uint32_t *loops; /* by thread, then by first event */
    size_t loop_count;
    bool *at_once; /* by thread: it receives without waiting */
    uint32_t *rivals;
    size_t rival_capacity;
};

void found_cascades_release(struct found_cascades *found)
{
    free(found->cascades);
    *found = (struct found_cascades){0};
}

static uint32_t event_at(const struct search *search, uint32_t thread, size_t at)
{
    return search->input->trace->threads[thread].events[at];
}

static uint32_t line_of(const struct search *search, uint32_t event)
{
    return hb_line_of(search->input->causality->graph, search->input->causality->node_of[event]);
}

/* ------------------------------------------------------------------------------------------ regions */

/* Whether the region is new; notes that it is not any more. */
static int visit(struct search *search, const struct region *region, bool *ret_new)
{
    struct visit *visit = calloc(1, sizeof(*visit)), *known;

    if (!visit)
        return -ENOMEM;
    visit->key.thread = region->thread;
    visit->key.sink = region->sink;
    visit->key.hops = region->hops;
    visit->key.contention = region->contentions > 0;
    visit->key.from = region->from;
    visit->key.to = region->to;
    HASH_FIND(hh, search->visited, &visit->key, sizeof(visit->key), known);
    *ret_new = !known;
    if (!known)
        HASH_ADD(hh, search->visited, key, sizeof(visit->key), visit);
    if (known || !visit->hh.tbl) {
        free(visit);
        return known ? 0 : -ENOMEM;
    }
    return 0;
}

static int add_region(struct search *search, const struct region *region)
{
    bool is_new;
    int r;

    if (region->depth > SEARCH_MOST_LINKS)
        return 0;
    if (search->count >= SEARCH_MOST_REGIONS) {
        search->found->complete = false;
        return 0;
    }
    r = visit(search, region, &is_new);
    if (r < 0 || !is_new)
        return r;
    if (array_reserve(&search->regions, &search->capacity, search->count + 1) < 0)
        return -ENOMEM;
    search->regions[search->count++] = *region;
    return 0;
}

/* Whether the chain to the region already has a contention for the resource: once more says nothing new. */
static bool has_resource(const struct search *search, const struct region *region, uint32_t resource)
{
    while (region->nearer != TRACE_NONE) {
        if (region->link.contention && region->link.resource == resource)
            return true;
        region = &search->regions[region->nearer];
    }
    return false;
}

/* ------------------------------------------------------------------------------------------ contentions */

/* How often a region waits for a resource from one place. */
struct waits {
    struct {
        uint32_t resource, site;
        unsigned count;
    } places[MOST_PLACES];
    size_t count;
};

static bool is_enough(struct waits *waits, uint32_t resource, uint32_t site)
{
    for (size_t i = 0; i < waits->count; i++)
        if (waits->places[i].resource == resource && waits->places[i].site == site)
            return waits->places[i].count++ >= MOST_WAITS;
    if (waits->count == MOST_PLACES)
        return true;
    waits->places[waits->count].resource = resource;
    waits->places[waits->count].site = site;
    waits->places[waits->count++].count = 1;
    return false;
}

/* What may delay the event, a locking or the beginning of a handler, of the region `number`. */
static int add_rivals(struct search *search, uint32_t number, uint32_t event, struct waits *waits)
{
    const struct search_input *input = search->input;
    uint32_t wanted = input->contention->section_of[event];
    const struct section *section = &input->contention->sections[wanted];
    size_t count = 0;
    int r;

    if (!section->waits || has_resource(search, &search->regions[number], section->resource) ||
        is_enough(waits, section->resource, input->trace->events[event].site))
        return 0;
    r = contention_rivals(input->contention, input->causality, wanted, search->options->concurrency,
                          &search->rivals, &count, &search->rival_capacity);
    for (size_t i = 0; i < count && r == 0; i++) {
        const struct region *nearer = &search->regions[number];
        const struct section *rival = &input->contention->sections[search->rivals[i]];
        struct region region = {
            .thread = rival->thread,
            .line = line_of(search, rival->first),
            .from = cascade_trace_index(input->trace, rival->first),
            .to = cascade_trace_index(input->trace, rival->last),
            .nearer = number,
            .sink = nearer->sink,
            .link = {.contention = true,
                     .resource = section->resource,
                     .waits = event,
                     .delays = rival->first},
            .section = search->rivals[i],
            .hops = nearer->hops,
            .contentions = nearer->contentions + 1,
            .depth = nearer->depth + 1,
        };

        r = add_region(search, &region);
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ causes */

/* The node that knows what was over before the region began. The sink's first event may itself have waited.
 */
static uint32_t node_before(const struct search *search, const struct region *region)
{
    const struct hb_graph *graph = search->input->causality->graph;
    uint32_t event = event_at(search, region->thread, region->from),
             node = search->input->causality->node_of[event], index = hb_index_of(graph, node);

    if (region->nearer != TRACE_NONE || !index || search->input->trace->events[event].kind == SYNC_HANDLER)
        return node;
    return hb_line_node(graph, region->line, index - 1);
}

/* What happened in another line before the cause, and not before the region `number` began. */
static int add_cause(struct search *search, uint32_t number, uint32_t event, const struct hb_edge *edge)
{
    const struct search_input *input = search->input;
    const struct hb_graph *graph = input->causality->graph;
    const struct region *nearer = &search->regions[number];
    uint32_t cause = input->causality->event_of[edge->from], line = hb_line_of(graph, edge->from), known;
    struct region region;

    if (edge->kind == HB_FIFO || edge->kind == HB_INSIDE || cause == TRACE_NONE || line == nearer->line)
        return 0;
    known = hb_known(graph, line, node_before(search, nearer));
    if (known > hb_index_of(graph, edge->from))
        return 0; /* it was over before the region began */
    region = (struct region){
        .thread = input->trace->events[cause].thread,
        .line = line,
        .from =
            cascade_trace_index(input->trace, input->causality->event_of[hb_line_node(graph, line, known)]),
        .to = cascade_trace_index(input->trace, cause),
        .nearer = number,
        .sink = nearer->sink,
        .link = {.edge = edge->kind, .waits = event, .delays = cause},
        .section = TRACE_NONE,
        .hops = nearer->hops + 1,
        .contentions = nearer->contentions,
        .depth = nearer->depth + 1,
    };
    return add_region(search, &region);
}

/* Whether the event waited for its causes. One who receives without blocking does not, unless he has polled
 * before; in the handler of an event that somebody else has polled for there is nothing to wait for. */
static bool waited_for_causes(const struct search *search, uint32_t event, bool polled)
{
    const struct process_event *of = &search->input->trace->events[event];

    return of->kind != SYNC_RECEIVE || polled || !search->at_once[of->thread];
}

static int follow(struct search *search, uint32_t number)
{
    const struct search_input *input = search->input;
    const struct region region = search->regions[number];
    struct waits waits = {.count = 0};
    bool polled = false;
    int r = 0;

    for (size_t i = region.from; i <= region.to && r == 0; i++) {
        uint32_t event = event_at(search, region.thread, i);
        size_t count = 0;
        const struct hb_edge *edges;

        if (line_of(search, event) != region.line)
            continue;
        polled = polled || input->trace->events[event].kind == SYNC_POLL;
        /* How a section itself begins is what the chain came from. */
        if (input->contention->section_of[event] != TRACE_NONE &&
            input->contention->section_of[event] != region.section)
            r = add_rivals(search, number, event, &waits);
        if (region.hops >= search->options->must_hops || !waited_for_causes(search, event, polled))
            continue;
        edges = hb_causes(input->causality->graph, input->causality->node_of[event], &count);
        for (size_t j = 0; j < count && r == 0; j++)
            r = add_cause(search, number, event, &edges[j]);
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ loops */

static int compare_loops(const void *a, const void *b, void *context)
{
    const struct timed_loop *loops = context, *first = &loops[*(const uint32_t *)a],
                            *second = &loops[*(const uint32_t *)b];

    if (first->thread != second->thread)
        return first->thread < second->thread ? -1 : 1;
    return first->first < second->first ? -1 : first->first > second->first;
}

static int sort_loops(struct search *search)
{
    const struct frames *frames = search->input->frames;

    search->loops = calloc(frames->loop_count + 1, sizeof(*search->loops));
    if (!search->loops)
        return -ENOMEM;
    for (uint32_t i = 0; i < frames->loop_count; i++)
        if (frames->loops[i].recognised)
            search->loops[search->loop_count++] = i;
    qsort_r(search->loops, search->loop_count, sizeof(*search->loops), compare_loops, frames->loops);
    return 0;
}

/* The first loop of the thread that begins with this event or later. */
static size_t first_loop(const struct search *search, uint32_t thread, uint32_t event)
{
    size_t low = 0, high = search->loop_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct timed_loop *loop = &search->input->frames->loops[search->loops[middle]];

        if (loop->thread < thread || (loop->thread == thread && loop->first < event))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int add_cascade(struct search *search, const struct region *region, uint32_t loop)
{
    struct found_cascades *found = search->found;
    struct found_cascade cascade = {.loop = loop, .sink = region->sink, .count = region->depth};

    if (array_reserve(&found->cascades, &found->capacity, found->count + 1) < 0)
        return -ENOMEM;
    for (size_t i = region->depth; i-- > 0; region = &search->regions[region->nearer])
        cascade.links[i] = region->link;
    found->cascades[found->count++] = cascade;
    return 0;
}

static int look_for_loops(struct search *search, uint32_t number)
{
    const struct search_input *input = search->input;
    const struct region *region = &search->regions[number];
    uint32_t from = event_at(search, region->thread, region->from),
             to = event_at(search, region->thread, region->to);
    uint32_t sink_end = input->frames->sinks[region->sink].last;
    int r = 0;

    if (!region->contentions)
        return 0;
    for (size_t i = first_loop(search, region->thread, from); i < search->loop_count && r == 0; i++) {
        const struct timed_loop *loop = &input->frames->loops[search->loops[i]];

        if (loop->thread != region->thread || loop->first > to)
            break;
        if (loop->last <= to && line_of(search, loop->first) == region->line &&
            events_concurrent(input->causality, loop->first, sink_end) &&
            search->is_source(search->context, loop, region->section != TRACE_NONE))
            r = add_cascade(search, region, search->loops[i]);
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ the whole */

static int add_sink(struct search *search, uint32_t number)
{
    const struct sink_call *sink = &search->input->frames->sinks[number];
    struct region region = {
        .thread = sink->thread,
        .line = line_of(search, sink->first),
        .from = cascade_trace_index(search->input->trace, sink->first),
        .to = cascade_trace_index(search->input->trace, sink->last),
        .nearer = TRACE_NONE,
        .sink = number,
        .section = TRACE_NONE,
    };

    return add_region(search, &region);
}

/* A thread that has received nothing because nothing was there does not block; one does, or does not, with
 * all of its connections. */
static int find_threads(struct search *search)
{
    const struct cascade_trace *trace = search->input->trace;

    search->at_once = calloc(trace->thread_count + 1, sizeof(*search->at_once));
    if (!search->at_once)
        return -ENOMEM;
    for (size_t i = 0; i < trace->count; i++) {
        const struct process_event *event = &trace->events[i];

        if (event->kind == SYNC_RECEIVE && event->result == -EAGAIN)
            search->at_once[event->thread] = true;
    }
    return 0;
}

/* Of the calls of the sink, some of each thread. */
static int add_sinks(struct search *search)
{
    const struct frames *frames = search->input->frames;
    int r = 0;

    for (size_t i = 0, end; i < frames->sink_count && r == 0; i = end) {
        size_t count;

        for (end = i; end < frames->sink_count && frames->sinks[end].thread == frames->sinks[i].thread;)
            end++;
        count = end - i < SEARCH_SINKS ? end - i : SEARCH_SINKS;
        for (size_t j = 0; j < count && r == 0; j++)
            r = add_sink(search, (uint32_t)(i + (count > 1 ? j * (end - i - 1) / (count - 1) : 0)));
    }
    return r;
}

static void release_search(struct search *search)
{
    struct visit *visit = NULL, *next = NULL;

    HASH_ITER (hh, search->visited, visit, next) {
        HASH_DEL(search->visited, visit);
        free(visit);
    }
    free(search->regions);
    free(search->loops);
    free(search->at_once);
    free(search->rivals);
}

int search_cascades(const struct search_input *input, const struct search_options *options,
                    search_source *is_source, const void *context, struct found_cascades *ret_found)
{
    CLEANUP(release_search)
    struct search search = {
        .input = input, .options = options, .is_source = is_source, .context = context, .found = ret_found};
    int r;

    *ret_found = (struct found_cascades){.complete = true};
    r = sort_loops(&search);
    if (r == 0)
        r = find_threads(&search);
    if (r == 0)
        r = add_sinks(&search);
    for (; r == 0 && search.next < search.count; search.next++) {
        r = look_for_loops(&search, (uint32_t)search.next);
        if (r == 0)
            r = follow(&search, (uint32_t)search.next);
    }
    ret_found->regions = search.count;
    return r;
}
