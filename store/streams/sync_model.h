/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the encoder and the decoder of synchronisation events keep alike (sync_codec.h): what is expected of
 * an event's fields. Tables are addressed by hashes and do not tell a collision, which costs a wrong
 * expectation only.
 */
#ifndef TRACESTORE_SYNC_MODEL_H
#define TRACESTORE_SYNC_MODEL_H

#include <stdint.h>

#include "store/streams/sync_events.h"

/* The fields, in the order in which they are coded: what is expected of one may depend on those before it. */
enum sync_field {
    SYNC_FIELD_THREAD,
    SYNC_FIELD_HEAD, /* kind and phase */
    SYNC_FIELD_SITE, /* local id of the segment's dictionary */
    SYNC_FIELD_OBJECT,
    SYNC_FIELD_OTHER,
    SYNC_FIELD_RESULT,
    SYNC_FIELD_POSITION,
    SYNC_FIELD_NS, /* the time since the event before */
    SYNC_FIELDS,
};

#define SYNC_TABLE_BITS 9
#define SYNC_TABLE (1u << SYNC_TABLE_BITS)

/* Zero-initialised at the start of a segment. */
struct sync_model {
    uint64_t thread; /* of the event before */
    struct {
        uint64_t head, position; /* of the thread's last event */
    } threads[SYNC_TABLE];
    struct {
        uint64_t head, site, object; /* what came next */
    } follows[SYNC_TABLE];           /* by thread and its last event */
    struct {
        uint64_t other, result;
    } objects[SYNC_TABLE]; /* by head and object */
};

static inline uint32_t sync_slot(uint64_t a, uint64_t b)
{
    uint64_t mixed = (a ^ (b << 32 | b >> 32)) * 0x9e3779b97f4a7c15ull;

    return (uint32_t)(mixed >> (64 - SYNC_TABLE_BITS));
}

static inline uint64_t sync_head(unsigned kind, unsigned phase)
{
    return (uint64_t)kind << 2 | phase;
}

static inline uint32_t sync_follow_slot(const struct sync_model *model, uint64_t thread)
{
    return sync_slot(thread, model->threads[sync_slot(thread, 1)].head);
}

/* A stream of bytes goes on behind what was sent or received last. */
static inline uint64_t sync_next_other(const struct sync_model *model, uint64_t head, uint64_t object)
{
    uint32_t slot = sync_slot(head, object);
    uint64_t kind = head >> 2;

    return model->objects[slot].other +
           (kind == SYNC_SEND || kind == SYNC_RECEIVE ? model->objects[slot].result : 0);
}

/* What the field is expected to be; `values`, by enum sync_field, has the fields before it. */
static inline uint64_t sync_model_expect(const struct sync_model *model, enum sync_field field,
                                         const uint64_t values[SYNC_FIELDS])
{
    uint64_t thread = values[SYNC_FIELD_THREAD];

    switch (field) {
    case SYNC_FIELD_THREAD:
        return model->thread;
    case SYNC_FIELD_HEAD:
        return model->follows[sync_follow_slot(model, thread)].head;
    case SYNC_FIELD_SITE:
        return model->follows[sync_follow_slot(model, thread)].site;
    case SYNC_FIELD_OBJECT:
        return model->follows[sync_follow_slot(model, thread)].object;
    case SYNC_FIELD_OTHER:
        return sync_next_other(model, values[SYNC_FIELD_HEAD], values[SYNC_FIELD_OBJECT]);
    case SYNC_FIELD_RESULT:
        return model->objects[sync_slot(values[SYNC_FIELD_HEAD], values[SYNC_FIELD_OBJECT])].result;
    case SYNC_FIELD_POSITION:
        return model->threads[sync_slot(thread, 1)].position;
    default:
        return 0;
    }
}

/* The event is known now. */
static inline void sync_model_learn(struct sync_model *model, const uint64_t values[SYNC_FIELDS])
{
    uint64_t thread = values[SYNC_FIELD_THREAD], head = values[SYNC_FIELD_HEAD];
    uint32_t follow = sync_follow_slot(model, thread), own = sync_slot(thread, 1);
    uint32_t object = sync_slot(head, values[SYNC_FIELD_OBJECT]);

    model->thread = thread;
    model->follows[follow].head = head;
    model->follows[follow].site = values[SYNC_FIELD_SITE];
    model->follows[follow].object = values[SYNC_FIELD_OBJECT];
    model->objects[object].other = values[SYNC_FIELD_OTHER];
    model->objects[object].result = values[SYNC_FIELD_RESULT];
    model->threads[own].head = head;
    model->threads[own].position = values[SYNC_FIELD_POSITION];
}

#endif
