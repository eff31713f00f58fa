/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the encoder and the decoder of process events share (process_codec.h): the tables that predict an
 * event's fields, and the last different values of each field.
 *
 * Tables are addressed by hashes and do not detect collisions, which only cost a wrong prediction.
 */
#ifndef TRACESTORE_PROCESS_MODEL_H
#define TRACESTORE_PROCESS_MODEL_H

#include <stdint.h>
#include <string.h>

#include "store/streams/process_streams.h"

/* The fields that are predicted, in the order in which they are coded: each may depend on those before it. */
enum process_field {
    PROCESS_FIELD_ACTOR,
    PROCESS_FIELD_HEAD, /* kind, detail and flags */
    PROCESS_FIELD_SITE, /* local id of the segment's dictionary */
    PROCESS_FIELD_OBJECT,
    PROCESS_FIELD_OTHER,
    PROCESS_FIELD_VALUE,
    PROCESS_FIELD_PLACE,
    PROCESS_FIELDS,
};

static inline uint64_t process_head_kind(uint64_t head)
{
    return head >> 16;
}

/* ------------------------------------------------------------------------------------------ recent values */

#define PROCESS_RECENT 32u
#define PROCESS_RANK_NONE 0xffu /* the value is not among the recent ones */

/* The last different values of a field, the last one first. */
struct process_recent {
    uint64_t values[PROCESS_RECENT];
    unsigned count;
    uint64_t literal; /* the last one that had no rank */
};

static inline unsigned process_recent_rank(const struct process_recent *recent, uint64_t value)
{
    for (unsigned rank = 0; rank < recent->count; rank++)
        if (recent->values[rank] == value)
            return rank;
    return PROCESS_RANK_NONE;
}

/* The value, which has that rank, comes to the front. */
static inline void process_recent_use(struct process_recent *recent, uint64_t value, unsigned rank)
{
    if (rank == PROCESS_RANK_NONE) {
        recent->literal = value;
        if (recent->count < PROCESS_RECENT)
            recent->count++;
        rank = recent->count - 1;
    }
    memmove(recent->values + 1, recent->values, rank * sizeof(*recent->values));
    recent->values[0] = value;
}

/* ------------------------------------------------------------------------------------------ predictions */

#define PROCESS_TABLE_BITS 12
#define PROCESS_TABLE (1u << PROCESS_TABLE_BITS)

/* All but `traits` is zero at the start of a segment. */
struct process_model {
    const struct process_stream_traits *traits;
    struct process_recent recent[PROCESS_FIELDS];
    struct {
        uint64_t context; /* its last three events, 21 bits each */
        uint64_t place;
    } actors[PROCESS_TABLE];
    uint64_t next[PROCESS_TABLE];    /* whose event came behind one in a context; 0: not known */
    uint32_t heads[PROCESS_TABLE];   /* by context */
    uint32_t sites[PROCESS_TABLE];   /* by context and head */
    uint64_t objects[PROCESS_TABLE]; /* by actor, head and site */
    struct {
        uint64_t other, value;
    } details[PROCESS_TABLE]; /* by head and object; without an object by context and head */

    uint64_t actor, context, place; /* of the last event: whose it was, that one's context behind it, where */

    /* Where the present event's predictions stand. */
    uint32_t at_next, at_actor, at_context, at_site, at_object, at_detail;
};

static inline uint64_t process_mix(uint64_t a, uint64_t b)
{
    uint64_t mixed = (a ^ (b << 32 | b >> 32)) * 0x9e3779b97f4a7c15ull;

    return mixed ^ mixed >> 29;
}

static inline uint32_t process_slot(uint64_t a, uint64_t b)
{
    return (uint32_t)((process_mix(a, b) * 0xd6e8feb86659fd93ull) >> (64 - PROCESS_TABLE_BITS));
}

static inline uint64_t process_predict_other(struct process_model *model, uint64_t head, uint64_t object)
{
    bool transfer = process_kind_in(model->traits->transfers, process_head_kind(head));

    model->at_detail = object ? process_slot(head, object) : model->at_site;
    return model->details[model->at_detail].other + (transfer ? model->details[model->at_detail].value : 0);
}

/* What the field is expected to be; `values`, by enum process_field, has the fields before it. All fields of
 * an event are asked for in their order. */
static inline __attribute__((always_inline)) uint64_t
process_model_predict(struct process_model *model, enum process_field field,
                      const uint64_t values[PROCESS_FIELDS])
{
    uint64_t actor = values[PROCESS_FIELD_ACTOR], head = values[PROCESS_FIELD_HEAD];

    switch (field) {
    case PROCESS_FIELD_ACTOR:
        model->at_next = process_slot(model->actor, model->context);
        return model->next[model->at_next] ? model->next[model->at_next] : model->actor;
    case PROCESS_FIELD_HEAD:
        model->at_actor = process_slot(actor, 1);
        model->at_context = process_slot(model->actors[model->at_actor].context, 2);
        return model->heads[model->at_context];
    case PROCESS_FIELD_SITE:
        model->at_site = process_slot(model->actors[model->at_actor].context, head);
        return model->sites[model->at_site];
    case PROCESS_FIELD_OBJECT:
        model->at_object = process_slot(actor, head << 32 | values[PROCESS_FIELD_SITE]);
        return model->objects[model->at_object];
    case PROCESS_FIELD_OTHER:
        return process_predict_other(model, head, values[PROCESS_FIELD_OBJECT]);
    case PROCESS_FIELD_VALUE:
        return model->details[model->at_detail].value;
    default:
        return process_kind_in(model->traits->dispatches, process_head_kind(head))
                   ? model->place
                   : model->actors[model->at_actor].place;
    }
}

/* The event is known now. */
static inline void process_model_learn(struct process_model *model, const uint64_t values[PROCESS_FIELDS])
{
    uint64_t *context = &model->actors[model->at_actor].context;
    uint64_t event = process_mix(values[PROCESS_FIELD_HEAD], values[PROCESS_FIELD_SITE]) & 0x1fffff;

    model->next[model->at_next] = values[PROCESS_FIELD_ACTOR];
    model->heads[model->at_context] = (uint32_t)values[PROCESS_FIELD_HEAD];
    model->sites[model->at_site] = (uint32_t)values[PROCESS_FIELD_SITE];
    model->objects[model->at_object] = values[PROCESS_FIELD_OBJECT];
    model->details[model->at_detail].other = values[PROCESS_FIELD_OTHER];
    model->details[model->at_detail].value = values[PROCESS_FIELD_VALUE];
    model->actors[model->at_actor].place = values[PROCESS_FIELD_PLACE];
    *context = *context << 21 | event;
    model->actor = values[PROCESS_FIELD_ACTOR];
    model->context = *context;
    model->place = values[PROCESS_FIELD_PLACE];
}

/* ------------------------------------------------------------------------------------------ columns */

/* The columns of a segment, in their order: for each event a bit for each field that was not predicted and
 * the time; then for each field the ranks, and the differences of those without. */
enum process_column {
    PROCESS_COLUMN_MISSES,
    PROCESS_COLUMN_NS,
    PROCESS_COLUMN_RANKS,
    PROCESS_COLUMN_LITERALS = PROCESS_COLUMN_RANKS + PROCESS_FIELDS,
    PROCESS_COLUMNS = PROCESS_COLUMN_LITERALS + PROCESS_FIELDS,
};

#endif
