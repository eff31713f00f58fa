/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/streams/go_lives.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

bool go_reason_in_operation(const char *name)
{
    static const char *const beginnings[] = {"chan ", "select", "sync.", "semacquire", "sleep"};

    for (size_t i = 0; name && i < ARRAY_SIZE(beginnings); i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* NULL: out of memory, or goroutine 0. */
static struct go_life *find_life(struct go_lives *lives, uint64_t goroutine, int *ret_code)
{
    struct go_life *life = NULL;

    if (!goroutine)
        return NULL;
    HASH_FIND(hh, lives->table, &goroutine, sizeof(goroutine), life);
    if (life)
        return life;
    life = calloc(1, sizeof(*life));
    if (!life) {
        *ret_code = -ENOMEM;
        return NULL;
    }
    life->goroutine = goroutine;
    HASH_ADD(hh, lives->table, goroutine, sizeof(life->goroutine), life);
    return life;
}

static void forget(struct go_lives *lives, struct go_life *life)
{
    HASH_DEL(lives->table, life);
    free(life);
}

void go_lives_release(struct go_lives *lives)
{
    while (lives->table)
        forget(lives, lives->table);
}

/* ------------------------------------------------------------------------------------------ blocks */

/* Whether a goroutine can be waiting in the operation. */
static bool can_wait(const struct go_life_operation *operation)
{
    return go_op_can_wait(operation->operation) && !(operation->flags & (GO_FLAG_TRY | GO_FLAG_DONE));
}

static void begin_block(const struct go_lives *lives, struct go_life *life, const struct process_event *event,
                        uint64_t seq)
{
    bool in_operation = !lives->operations_unseen && event->value >= 0 &&
                        event->value < (int64_t)ARRAY_SIZE(lives->in_operation) &&
                        lives->in_operation[event->value];

    life->block = (struct go_life_block){
        .goroutine = life->goroutine, .seq = seq, .ns = event->ns, .reason = event->value};
    if (in_operation && can_wait(&life->inner))
        life->block.operation = life->inner;
    else if (in_operation && can_wait(&life->outer))
        life->block.operation = life->outer;
    life->waits = true;
}

/* What is known of the end of a block goes out. */
static void give_block(struct go_life *life, struct go_lives_updates *updates)
{
    if (!life->waits)
        return;
    life->waits = false;
    updates->block[updates->blocks++] = life->block;
}

/* The goroutine does something, or `waker` unblocks it (NULL: not seen). */
static void end_block(struct go_life *life, uint64_t ns, const uint64_t *waker,
                      struct go_lives_updates *updates)
{
    if (life->waits && life->state == GO_LIFE_BLOCKED) {
        life->block.ended = true;
        life->block.end_ns = ns;
        life->block.woken = waker != NULL;
        life->block.woken_by = waker ? *waker : 0;
    }
    give_block(life, updates);
}

/* ------------------------------------------------------------------------------------------ events */

static void set_state(struct go_life *life, enum go_life_state state, uint64_t ns)
{
    if (life->state != state)
        life->since_ns = ns;
    life->state = state;
}

static void note_operation(struct go_life *life, const struct process_event *event)
{
    struct go_life_operation operation = {event->object, event->site, event->operation, event->flags};

    if (event->flags & GO_FLAG_INNER) {
        life->inner = operation;
        return;
    }
    life->outer = operation;
    life->inner = (struct go_life_operation){0};
}

/* To the goroutine that an event is of. */
static void act(struct go_lives *lives, struct go_life *life, const struct process_event *event, uint64_t seq,
                struct go_lives_updates *updates)
{
    end_block(life, event->ns, NULL, updates);
    set_state(life,
              event->kind == GO_EVENT_BLOCK   ? GO_LIFE_BLOCKED
              : event->kind == GO_EVENT_YIELD ? GO_LIFE_RUNNABLE
              : event->kind == GO_EVENT_END   ? GO_LIFE_ENDED
                                              : GO_LIFE_RUNNING,
              event->ns);
    if (event->kind == GO_EVENT_OPERATE)
        note_operation(life, event);
    else if (event->kind == GO_EVENT_BLOCK)
        begin_block(lives, life, event, seq);
}

static void be_created(struct go_life *life, const struct process_event *event)
{
    life->parent = event->goroutine;
    life->created_ns = event->ns;
    life->created_at = event->site;
    life->function = (uint32_t)event->value;
    set_state(life, GO_LIFE_RUNNABLE, event->ns);
}

/* Events are missing: no state is known. */
static void lose(struct go_lives *lives, uint64_t ns)
{
    for (struct go_life *life = lives->table; life; life = life->hh.next)
        set_state(life, GO_LIFE_UNKNOWN, ns);
}

/* Less is recorded from now on, or more again: what was begun last is not known. */
static void change_detail(struct go_lives *lives, const struct process_event *event)
{
    lives->states_unseen = event->value < GO_DETAIL_SCHEDULE;
    lives->operations_unseen = event->value < GO_DETAIL_WAITING;
    for (struct go_life *life = lives->table; life; life = life->hh.next)
        life->outer = life->inner = (struct go_life_operation){0};
    if (lives->states_unseen)
        lose(lives, event->ns);
}

int go_lives_event(struct go_lives *lives, const struct process_event *event, uint64_t seq,
                   struct go_lives_updates *ret_news)
{
    bool moves = event->kind == GO_EVENT_CREATE || event->kind == GO_EVENT_WAKE;
    struct go_life *life, *other;
    int code = 0;

    ret_news->blocks = 0;
    ret_news->has_life = false;
    if (event->kind == GO_EVENT_LOST) {
        lose(lives, event->ns);
        return 0;
    }
    if (event->kind == GO_EVENT_DETAIL) {
        change_detail(lives, event);
        return 0;
    }
    life = find_life(lives, event->goroutine, &code);
    other = moves && !code ? find_life(lives, event->other, &code) : NULL;
    if (code)
        return code;
    if (life)
        act(lives, life, event, seq, ret_news);
    if (other && event->kind == GO_EVENT_CREATE)
        be_created(other, event);
    if (lives->states_unseen && life && event->kind != GO_EVENT_END)
        set_state(life, GO_LIFE_UNKNOWN, event->ns);
    if (lives->states_unseen && other)
        set_state(other, GO_LIFE_UNKNOWN, event->ns);
    if (other && event->kind == GO_EVENT_WAKE) {
        end_block(other, event->ns, &event->goroutine, ret_news);
        set_state(other, GO_LIFE_RUNNABLE, event->ns);
    }
    if (life && event->kind == GO_EVENT_END) {
        life->ended_ns = event->ns;
        ret_news->has_life = true;
        ret_news->life = *life;
        forget(lives, life);
    }
    return 0;
}

bool go_lives_take(struct go_lives *lives, struct go_lives_updates *ret_news)
{
    struct go_life *life = lives->table;

    if (!life)
        return false;
    *ret_news = (struct go_lives_updates){.has_life = true, .life = *life};
    give_block(life, ret_news);
    forget(lives, life);
    return true;
}
