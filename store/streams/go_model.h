/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the encoder and the decoder of goroutine events keep alike (go_codec.h): the tables that predict an
 * event's fields, and the last different values of each field.
 *
 * Tables are addressed by hashes and do not tell a collision, which costs a wrong prediction only.
 */
#ifndef TRACESTORE_GO_MODEL_H
#define TRACESTORE_GO_MODEL_H

#include <stdint.h>
#include <string.h>

#include "store/streams/go_events.h"

/* The fields that are predicted, in the order in which they are coded: each may depend on those before it. */
enum go_field {
    GO_FIELD_GOROUTINE,
    GO_FIELD_HEAD, /* kind, operation and flags */
    GO_FIELD_SITE, /* local id of the segment's dictionary */
    GO_FIELD_OBJECT,
    GO_FIELD_OTHER,
    GO_FIELD_VALUE,
    GO_FIELD_TID,
    GO_FIELDS,
};

/* ------------------------------------------------------------------------------------------ recent values */

#define GO_RECENT 32u
#define GO_RANK_NONE 0xffu /* the value is not among the recent ones */

/* The last different values of a field, the last one first. */
struct go_recent {
    uint64_t values[GO_RECENT];
    unsigned count;
    uint64_t literal; /* the last one that had no rank */
};

static inline unsigned go_recent_rank(const struct go_recent *recent, uint64_t value)
{
    for (unsigned rank = 0; rank < recent->count; rank++)
        if (recent->values[rank] == value)
            return rank;
    return GO_RANK_NONE;
}

/* The value, which has that rank, comes to the front. */
static inline void go_recent_use(struct go_recent *recent, uint64_t value, unsigned rank)
{
    if (rank == GO_RANK_NONE) {
        recent->literal = value;
        if (recent->count < GO_RECENT)
            recent->count++;
        rank = recent->count - 1;
    }
    memmove(recent->values + 1, recent->values, rank * sizeof(*recent->values));
    recent->values[0] = value;
}

/* ------------------------------------------------------------------------------------------ predictions */

#define GO_TABLE_BITS 12

/* Zero-initialised at the start of a segment. */
struct go_model {
    struct go_recent recent[GO_FIELDS];
    struct {
        uint64_t context; /* its last three events, 21 bits each */
        uint32_t tid;
    } goroutines[1u << GO_TABLE_BITS];
    uint64_t next[1u << GO_TABLE_BITS];  /* whose event came behind one in a context; 0: not known */
    uint32_t heads[1u << GO_TABLE_BITS]; /* by context */
    struct {
        uint64_t other, value;
        uint32_t site;
    } details[1u << GO_TABLE_BITS];        /* by context and head */
    uint64_t objects[1u << GO_TABLE_BITS]; /* by goroutine, head and site */

    uint64_t goroutine, context; /* of the last event: whose it was, and that one's context behind it */
    uint32_t tid;

    /* Where the present event's predictions stand. */
    uint32_t at_next, at_goroutine, at_context, at_detail, at_object;
};

static inline uint64_t go_mix(uint64_t a, uint64_t b)
{
    uint64_t mixed = (a ^ (b << 32 | b >> 32)) * 0x9e3779b97f4a7c15ull;

    return mixed ^ mixed >> 29;
}

static inline uint32_t go_slot(uint64_t a, uint64_t b)
{
    return (uint32_t)((go_mix(a, b) * 0xd6e8feb86659fd93ull) >> (64 - GO_TABLE_BITS));
}

/* What the field is expected to be; `values`, by enum go_field, has the fields before it. All fields of an
 * event are asked for in their order. */
static inline __attribute__((always_inline)) uint64_t
go_model_predict(struct go_model *model, enum go_field field, const uint64_t values[GO_FIELDS])
{
    uint64_t goroutine = values[GO_FIELD_GOROUTINE], head = values[GO_FIELD_HEAD];

    switch (field) {
    case GO_FIELD_GOROUTINE:
        model->at_next = go_slot(model->goroutine, model->context);
        return model->next[model->at_next] ? model->next[model->at_next] : model->goroutine;
    case GO_FIELD_HEAD:
        model->at_goroutine = go_slot(goroutine, 1);
        model->at_context = go_slot(model->goroutines[model->at_goroutine].context, 2);
        return model->heads[model->at_context];
    case GO_FIELD_SITE:
        model->at_detail = go_slot(model->goroutines[model->at_goroutine].context, head);
        return model->details[model->at_detail].site;
    case GO_FIELD_OBJECT:
        model->at_object = go_slot(goroutine, head << 32 | values[GO_FIELD_SITE]);
        return model->objects[model->at_object];
    case GO_FIELD_OTHER:
        return model->details[model->at_detail].other;
    case GO_FIELD_VALUE:
        return model->details[model->at_detail].value;
    default:
        return head >> 16 == GO_EVENT_RUN ? model->tid : model->goroutines[model->at_goroutine].tid;
    }
}

/* The event is known now. */
static inline void go_model_learn(struct go_model *model, const uint64_t values[GO_FIELDS])
{
    uint64_t *context = &model->goroutines[model->at_goroutine].context;
    uint64_t event = go_mix(values[GO_FIELD_HEAD], values[GO_FIELD_SITE]) & 0x1fffff;

    model->next[model->at_next] = values[GO_FIELD_GOROUTINE];
    model->heads[model->at_context] = (uint32_t)values[GO_FIELD_HEAD];
    model->details[model->at_detail].site = (uint32_t)values[GO_FIELD_SITE];
    model->details[model->at_detail].other = values[GO_FIELD_OTHER];
    model->details[model->at_detail].value = values[GO_FIELD_VALUE];
    model->objects[model->at_object] = values[GO_FIELD_OBJECT];
    model->goroutines[model->at_goroutine].tid = (uint32_t)values[GO_FIELD_TID];
    *context = *context << 21 | event;
    model->goroutine = values[GO_FIELD_GOROUTINE];
    model->context = *context;
    model->tid = (uint32_t)values[GO_FIELD_TID];
}

/* ------------------------------------------------------------------------------------------ columns */

/* The columns of a segment, in their order: for each event a bit for each field that was not predicted and
 * the time; then for each field the ranks, and the differences of those without. */
enum go_column {
    GO_COLUMN_MISSES,
    GO_COLUMN_NS,
    GO_COLUMN_RANKS,
    GO_COLUMN_LITERALS = GO_COLUMN_RANKS + GO_FIELDS,
    GO_COLUMNS = GO_COLUMN_LITERALS + GO_FIELDS,
};

/* Whether `value` of an event of that kind is a function, which is in the dictionary. */
static inline int go_value_is_function(unsigned kind)
{
    return kind == GO_EVENT_CREATE || kind == GO_EVENT_TEST;
}

#endif
