/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the streams of process events (process_events.h) differ, as far as their storage is concerned. */
#ifndef TRACESTORE_PROCESS_STREAMS_H
#define TRACESTORE_PROCESS_STREAMS_H

#include <stdbool.h>

#include "store/segment/numbering.h"
#include "store/streams/process_events.h"

/* Sets of kinds of events have bit K for kind K. */
struct process_stream_traits {
    const char *events;    /* in messages: "goroutine events" */
    const char *processes; /* the table of the processes that have the stream */

    enum number_kind names; /* what `site` is an id of */
    const char *name;       /* in messages: "function" */
    const char *find_name;  /* SQL: whether the catalog has name ?1 */
    uint64_t value_names;   /* kinds whose `value` is such an id, too */

    /* For predictions (process_model.h). */
    uint64_t transfers;  /* kinds of which `other` counts bytes: the next one begins `value` further */
    uint64_t dispatches; /* kinds after which the actor is in the place of the event before */

    /* The largest values of fields; a segment with larger ones is damaged. */
    uint64_t actor_max, place_max;
    uint8_t detail_max, flags_max;
};

/* NULL: there is no such stream. */
const struct process_stream_traits *process_stream_traits(int64_t stream);

static inline bool process_kind_in(uint64_t kinds, uint64_t kind)
{
    return kind < 64 && kinds >> kind & 1;
}

/* SQL: the number of a process, P of P.T: that of its threads' labels; of one without threads its rank, or
 * its place among the run's processes. */
#define PROCESS_LABEL_SQL(process) \
    "coalesce((SELECT substr(label, 1, instr(label, '.') - 1) FROM main.threads t" \
    " WHERE t.process_id = " process \
    " LIMIT 1)," \
    " (SELECT rank FROM main.processes p WHERE p.process_id = " process \
    ")," \
    " (SELECT count(*) FROM main.processes p JOIN main.processes q ON q.run_id = p.run_id" \
    " AND q.process_id < p.process_id WHERE p.process_id = " process "))"

#endif
