/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The structures of groups, shared by groups.c (events), groups_origins.c (chains of creation),
 * groups_objects.c (who used what) and groups_judge.c (the end). Functions return 0 or -ENOMEM. */
#ifndef TRACECTL_ANALYZER_GO_GROUPS_STATE_H
#define TRACECTL_ANALYZER_GO_GROUPS_STATE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "analyzer/go/groups.h"

/* When a goroutine last made one of an origin. */
struct made {
    uint32_t origin;
    uint64_t ns;
    struct made *next;
};

struct offer {
    uint64_t object;
    bool send;
};

struct member {
    uint64_t goroutine, parent;
    uint64_t created_ns, since_ns;
    uint64_t timer_due_ns;    /* the last of the timers that it, or who made it, has set */
    uint64_t timer_before_ns; /* the same before the timer that it set last, */
    uint64_t timer_set_ns;    /* which is due then */
    uint64_t object;
    struct offer *offers; /* of a select */
    struct made *made;
    uint32_t origin, site;
    uint32_t stop; /* while blocked */
    uint16_t offer_count;
    int16_t wait_reason;
    uint8_t operation, state;
    bool matches; /* while blocked: it waits in `operation` */
    bool may_go_on;
    UT_hash_handle hh;
};

/* What could let a goroutine continue that waits to receive (or for a lock, group, condition), and to send. */
enum direction { TO_RECEIVE, TO_SEND, DIRECTIONS };

struct use {
    uint64_t goroutine, ns;
    uint32_t site;
    uint8_t operation;
};

struct used_object {
    uint64_t object;
    uint32_t waiting; /* goroutines */
    struct use last[DIRECTIONS];
    uint64_t due_ns; /* when a timer will send there at the latest; 0: none */
    UT_hash_handle hh;
};

/* Without padding: it is hashed as bytes. */
struct origin_key {
    uint32_t parent, created_at, function;
};

struct origin_node {
    struct origin_key key;
    uint32_t number;
    UT_hash_handle hh;
};

/* Where goroutines of an origin wait, or what else they do. */
struct stop_key {
    uint32_t origin, site;
    int16_t wait_reason; /* -1: it does not wait */
    uint8_t operation, state;
};

struct stop {
    struct stop_key key;
    uint32_t number;
    uint64_t completed, longest_ns;
    UT_hash_handle hh;
};

struct go_groups {
    struct go_groups_options options;
    struct member *members;
    struct used_object *objects;
    size_t sweep_objects_at;
    struct origin_node *origin_table;
    struct go_origin *origins;
    size_t origin_count, origin_capacity;
    struct stop *stop_table;
    struct stop **stops; /* by number */
    size_t stop_count, stop_capacity;
    uint64_t now_ns;
    enum go_detail detail; /* what GO_EVENT_DETAIL said last, and when */
    uint64_t detail_ns;
    uint64_t complete_ns; /* since when it is seen what is done to objects; UINT64_MAX: it is not */
    struct go_group_totals totals;
};

/* -------------------------------------------------------------------- groups.c */

/* The twelfth of the observed time that a moment is in. */
unsigned groups_window(const struct go_groups *groups, uint64_t ns);
/* The time since the last GO_EVENT_DETAIL, if there was one, into the totals. */
void groups_pass_detail(struct go_groups *groups);
enum go_wait groups_wait(const struct go_groups *groups, int64_t wait_reason);

/* -------------------------------------------------------------------- groups_origins.c */

/* Of what goroutines of origin `parent` make. */
int origin_get(struct go_groups *groups, uint32_t parent, uint32_t created_at, uint32_t function,
               uint32_t *ret_origin);
int stop_get(struct go_groups *groups, const struct stop_key *key, uint32_t *ret_stop);
void origins_free(struct go_groups *groups);

/* -------------------------------------------------------------------- groups_objects.c */

/* An operation on an object; a select offers `send` or not. */
int object_used(struct go_groups *groups, uint64_t object, enum go_op operation, bool send,
                uint64_t goroutine, uint32_t site);
/* Somebody was let continue who waited there. */
void object_released(struct go_groups *groups, uint64_t object, uint64_t goroutine);
/* One more waits there (1), or one less (-1). */
int object_waits(struct go_groups *groups, uint64_t object, int change);
/* A timer will send on a channel. */
int object_due(struct go_groups *groups, uint64_t object, uint64_t due_ns);
/* NULL: not known. */
const struct used_object *object_get(const struct go_groups *groups, uint64_t object);
void used_objects_free(struct go_groups *groups);

#endif
