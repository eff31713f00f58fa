/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The goroutines of a service that continues: how many there are from each place, what they do and since when,
 * and which of them look as if they will never continue. Events are fed one by one; memory goes with the
 * goroutines that live and with the objects that they wait for (some 300 bytes each), not with those that
 * have ended.
 *
 * An *origin* is a chain of creation sites; one that is made where one of its ancestors was made is in that
 * one's origin (equation 4.1 of Taheri's dissertation, 2022). A *group* is the goroutines of one origin that
 * are in the same state, of those that wait at the same operation for the same reason.
 *
 * A goroutine is *abandoned* when all of this holds:
 *
 *     it was seen being made, and it waits for others in an operation on objects that are known;
 *     it has waited for a fifth of the observed time, for a second, and three times as long as any wait there
 *     that has ended;
 *     nobody has used its objects since in a way that could let it continue (of a channel: in the other
 * direction); no timer of packages time and context is pending that it, or who made it (before that), has
 * set; none of its relatives may be about to let it continue. Relatives are its children, who made it unless
 * that one has since made another at the same place, and what that one made in between at other places; they
 * may when they are not abandoned themselves.
 *
 * Where less was recorded for a while (GO_EVENT_DETAIL), only what was waited since counts.
 *
 * A group whose abandoned goroutines are at least five, made in at least three twelfths of the observed time,
 * is a leak. So idle workers are none: they share a channel that is used, or do not become more.
 */
#ifndef TRACECTL_ANALYZER_GO_GROUPS_H
#define TRACECTL_ANALYZER_GO_GROUPS_H

#include "analyzer/go/replay.h"

enum { GO_WINDOWS = 12, GO_GROUP_MEMBERS = 8 };
#define GO_ORIGIN_BEFORE 0u /* goroutines that nobody was seen making */

struct go_groups;

struct go_groups_options {
    uint64_t from_ns, until_ns; /* the observed time */
    char *const *wait_reasons;  /* the program's, by number; they must live as long */
    size_t wait_reason_count;
    /* Whether goroutines that begin with a function (function_id) are the runtime's own. NULL: none. */
    bool (*is_runtime)(void *context, uint32_t function);
    /* Whether a timer that was set at `site` is of package time or context. NULL: all are. */
    bool (*is_timer)(void *context, uint32_t site);
    void *context;
};

int go_groups_new(const struct go_groups_options *options, struct go_groups **ret_groups);
void go_groups_free(struct go_groups *groups);

/* 0 or -ENOMEM. */
int go_groups_event(struct go_groups *groups, const struct process_event *event);

struct go_origin {
    uint32_t parent;               /* an origin; of GO_ORIGIN_BEFORE itself */
    uint32_t created_at, function; /* site and function_id; 0: not known */
    bool system;                   /* the runtime's own */
    uint64_t created, ended;       /* of GO_ORIGIN_BEFORE `created` is the number that was met */
    uint64_t created_in[GO_WINDOWS], ended_in[GO_WINDOWS]; /* the same, by parts of the observed time */
};

struct go_group_member {
    uint64_t goroutine, parent;    /* parent 0: not known */
    uint64_t created_ns, since_ns; /* created_ns 0: before the recording */
    uint64_t object;               /* 0: none, not known, or a select's */
    uint64_t user, used_ns;        /* who used the object last but for those that wait there; 0: nobody did */
    uint32_t used_at;              /* site */
    uint8_t used_with;             /* enum go_op */
    bool abandoned;
};

enum go_suspicion {
    GO_SUSPICION_NONE,
    GO_SUSPICION_GROWS, /* at least five were made in three parts of the time, and hardly any has ended */
    GO_SUSPICION_STILL, /* some are abandoned */
    GO_SUSPICION_LEAK,  /* see above */
};

struct go_group {
    uint32_t origin;
    enum go_state state;
    int64_t wait_reason;  /* of GO_STATE_BLOCKED, otherwise -1 */
    enum go_op operation; /* that it waits in; GO_OP_NONE: not known */
    uint32_t site;
    size_t count, abandoned;
    uint64_t oldest_ns, median_ns; /* since when they are so */
    uint64_t completed;            /* waits of that kind that have ended */
    uint64_t longest_ns;           /* the longest of these, a duration */
    enum go_suspicion suspicion;
    struct go_group_member members[GO_GROUP_MEMBERS]; /* the oldest, abandoned ones first */
    size_t member_count;
};

struct go_group_totals {
    uint64_t events, lost;
    uint64_t detail_ns[GO_DETAILS]; /* how long so much was recorded, where that changed (GO_EVENT_DETAIL) */
    uint64_t created, ended;
    uint64_t met;     /* goroutines of before the recording that did something since */
    uint64_t unknown; /* that live, but events are missing since they were seen last */
    bool has_fatal, exited;
    enum go_fatal fatal;
};

struct go_grouping {
    struct go_group *groups; /* suspicious ones first, then by count */
    size_t count;
    const struct go_origin *origins; /* the go_groups' own */
    size_t origin_count;
    struct go_group_totals totals;
};

/* Groups what lives at the end of the observed time. Events must not be fed any more. -ENOMEM. */
int go_groups_judge(struct go_groups *groups, struct go_grouping *ret_grouping);
void go_grouping_release(struct go_grouping *grouping);

#endif
