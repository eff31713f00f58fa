/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/go/strategy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/array.h"

enum {
    OPEN_WEIGHT = 4,      /* of a place with open requirements; others have 1 */
    WAITING_WEIGHT = 4,   /* of a pair whose second place is before an operation that may have to wait */
    RANDOM_EVERY = 8,     /* so many executions one is held up anywhere */
    LATE_HITS_ONE_IN = 4, /* choices are not among the first hits of a place */
    FIRST_HITS = 3,
    LATER_ALONE_EVERY = 4, /* so many executions one of these that is not the first is tried alone */
    PAIRS_OF = 4,          /* so many executions without a single delay, all but one have a pair */
    PAIR_TRIES = 64,       /* to draw one that is new */
    TRIED_MAX = 1 << 14,
    BLIND_ONE_IN = 8,    /* pairs are chosen without regard to what followed what */
    EXECUTIONS_LONG = 2, /* a hold is, at most */
};

#define RANDOM_CHANCE 0x40000000u /* a quarter */

struct place {
    struct go_place_use use; /* hits: the most */
    uint32_t alone;          /* its first hits that have been held up alone */
};

struct delay {
    size_t place;
    uint32_t hit;
};

/* Places of which the second was come to while a goroutine was held up at the first. */
struct followed {
    struct go_choice pair[2];
    unsigned tries;
    UT_hash_handle hh;
};

struct go_strategy {
    uint64_t state;
    unsigned delays, executions;
    bool tries_alone;          /* the execution that was chosen last */
    uint64_t took_ns, took_of; /* all executions with short holds, and their number */
    struct place *places;
    size_t count, capacity;
    struct followed *followed; /* in the order in which they were seen */
    uint64_t *tried;           /* pairs, in no order */
    size_t tried_count, tried_capacity;
};

int go_strategy_new(uint64_t seed, unsigned delays, struct go_strategy **ret_strategy)
{
    struct go_strategy *strategy = calloc(1, sizeof(*strategy));

    if (!strategy)
        return -ENOMEM;
    strategy->state = seed;
    strategy->delays = delays > GO_CHOICES_MAX ? GO_CHOICES_MAX : delays;
    *ret_strategy = strategy;
    return 0;
}

void go_strategy_free(struct go_strategy *strategy)
{
    struct followed *followed = NULL, *next = NULL;

    if (!strategy)
        return;
    HASH_ITER (hh, strategy->followed, followed, next) {
        HASH_DEL(strategy->followed, followed);
        free(followed);
    }
    free(strategy->places);
    free(strategy->tried);
    free(strategy);
}

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t draw(struct go_strategy *strategy)
{
    uint64_t mixed = strategy->state += 0x9e3779b97f4a7c15u;

    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

static struct place *find(struct go_strategy *strategy, uint32_t index)
{
    for (size_t i = 0; i < strategy->count; i++)
        if (strategy->places[i].use.index == index)
            return &strategy->places[i];
    return NULL;
}

int go_strategy_learn(struct go_strategy *strategy, const struct go_place_use *use)
{
    struct place *place = find(strategy, use->index);

    if (!place) {
        if (array_reserve(&strategy->places, &strategy->capacity, strategy->count + 1))
            return -ENOMEM;
        strategy->places[strategy->count++] = (struct place){.use = *use};
        return 0;
    }
    if (use->hits > place->use.hits)
        place->use.hits = use->hits;
    place->use.open = use->open;
    place->use.waits = use->waits;
    place->use.users.kinds |= use->users.kinds;
    place->use.users.several |= use->users.several;
    return 0;
}

int go_strategy_follows(struct go_strategy *strategy, const struct go_choice *first,
                        const struct go_choice *second)
{
    struct followed *followed;
    struct go_choice pair[2];

    if (second->hit >= FIRST_HITS || HASH_COUNT(strategy->followed) >= TRIED_MAX)
        return 0;
    memset(pair, 0, sizeof(pair)); /* it is hashed byte by byte */
    pair[0] = *first;
    pair[1] = *second;
    HASH_FIND(hh, strategy->followed, pair, sizeof(pair), followed);
    if (followed)
        return 0;
    followed = calloc(1, sizeof(*followed));
    if (!followed)
        return -ENOMEM;
    memcpy(followed->pair, pair, sizeof(pair));
    HASH_ADD(hh, strategy->followed, pair, sizeof(pair), followed);
    if (followed->hh.tbl)
        return 0;
    free(followed); /* no memory */
    return -ENOMEM;
}

static unsigned weight_of(const struct place *place)
{
    return place->use.open ? OPEN_WEIGHT : 1;
}

/* There is at least one place. */
static size_t choose_place(struct go_strategy *strategy)
{
    uint64_t total = 0, at;
    size_t i = 0;

    for (size_t k = 0; k < strategy->count; k++)
        total += weight_of(&strategy->places[k]);
    at = draw(strategy) % (total ? total : 1);
    while (i + 1 < strategy->count && at >= weight_of(&strategy->places[i]))
        at -= weight_of(&strategy->places[i++]);
    return i;
}

/* A place one of whose first hits has not been held up alone yet, of those the one with the fewest that have;
 * NULL: there is none. */
static struct place *untried(struct go_strategy *strategy)
{
    struct place *found = NULL;

    for (size_t i = 0; i < strategy->count; i++) {
        struct place *place = &strategy->places[i];

        if (place->alone < FIRST_HITS && place->alone < place->use.hits &&
            (!found || place->alone < found->alone))
            found = place;
    }
    return found;
}

/* Loops make most hits, and the first ones are those that matter: later ones are chosen less often. */
static uint32_t choose_hit(struct go_strategy *strategy, const struct place *place)
{
    bool late = draw(strategy) % LATE_HITS_ONE_IN == 0;
    uint32_t among = !late && place->use.hits > FIRST_HITS ? FIRST_HITS : place->use.hits;

    return (uint32_t)(draw(strategy) % among);
}

static struct delay choose_delay(struct go_strategy *strategy)
{
    size_t place = choose_place(strategy);

    return (struct delay){place, choose_hit(strategy, &strategy->places[place])};
}

/* Whether different goroutines may be held up by the two. */
static bool are_apart(const struct go_strategy *strategy, const struct delay *pair)
{
    const struct go_place_users *first = &strategy->places[pair[0].place].use.users;
    const struct go_place_users *second = &strategy->places[pair[1].place].use.users;

    return first->kinds != second->kinds || first->several || second->several;
}

static uint64_t pair_key(const struct delay *pair)
{
    uint64_t first = (uint64_t)pair[0].place << 16 | (pair[0].hit & 0xffff);
    uint64_t second = (uint64_t)pair[1].place << 16 | (pair[1].hit & 0xffff);

    return first < second ? first << 32 | (second & UINT32_MAX) : second << 32 | (first & UINT32_MAX);
}

static bool was_tried(const struct go_strategy *strategy, uint64_t key)
{
    for (size_t i = 0; i < strategy->tried_count; i++)
        if (strategy->tried[i] == key)
            return true;
    return false;
}

static void note_tried(struct go_strategy *strategy, uint64_t key)
{
    if (strategy->tried_count < TRIED_MAX &&
        !array_reserve(&strategy->tried, &strategy->tried_capacity, strategy->tried_count + 1))
        strategy->tried[strategy->tried_count++] = key; /* otherwise it may be tried again */
}

static bool is_new(const struct go_strategy *strategy, const struct delay *pair)
{
    bool same = pair[0].place == pair[1].place && pair[0].hit == pair[1].hit;

    return !same && !was_tried(strategy, pair_key(pair));
}

/* A new pair of different goroutines if one is drawn soon, else a new one, else any. */
static void choose_pair(struct go_strategy *strategy, struct delay *ret_pair)
{
    bool found = false;

    ret_pair[0] = choose_delay(strategy);
    ret_pair[1] = choose_delay(strategy);
    for (unsigned i = 0; i < PAIR_TRIES; i++) {
        const struct delay pair[2] = {choose_delay(strategy), choose_delay(strategy)};
        bool apart = are_apart(strategy, pair);

        if (!is_new(strategy, pair) || (found && !apart))
            continue;
        ret_pair[0] = pair[0];
        ret_pair[1] = pair[1];
        found = true;
        if (apart)
            break;
    }
    note_tried(strategy, pair_key(ret_pair));
}

static void add_choice(const struct go_strategy *strategy, const struct delay *delay,
                       struct go_schedule *schedule)
{
    schedule->choices[schedule->choice_count].probe = strategy->places[delay->place].use.index;
    schedule->choices[schedule->choice_count++].hit = delay->hit;
}

/* 0: it has been tried often enough. */
static unsigned weight_of_pair(struct go_strategy *strategy, const struct followed *followed)
{
    static const unsigned weights[] = {32, 4, 1};
    const struct place *second = find(strategy, followed->pair[1].probe);

    if (followed->tries >= ARRAY_SIZE(weights))
        return 0;
    return weights[followed->tries] * (second && second->use.waits ? WAITING_WEIGHT : 1);
}

/* Chooses a pair that was seen to follow each other, mostly one that has not been tried; false: there is
 * none, or a blind choice is due. */
static bool choose_followed(struct go_strategy *strategy, struct go_schedule *schedule)
{
    struct followed *followed = NULL;
    uint64_t total = 0, at;

    for (followed = strategy->followed; followed; followed = followed->hh.next)
        total += weight_of_pair(strategy, followed);
    if (!total || strategy->delays < 2 || draw(strategy) % BLIND_ONE_IN == 0)
        return false;
    at = draw(strategy) % total;
    followed = strategy->followed;
    while (followed && at >= weight_of_pair(strategy, followed)) {
        at -= weight_of_pair(strategy, followed);
        followed = followed->hh.next;
    }
    if (!followed)
        return false;
    followed->tries++;
    schedule->choices[0] = followed->pair[0];
    schedule->choices[1] = followed->pair[1];
    schedule->choices[1].hit |= GO_HIT_FOLLOWING;
    schedule->choice_count = 2;
    return true;
}

/* As many as there may be; mostly two. */
static void choose_several(struct go_strategy *strategy, struct go_schedule *schedule)
{
    struct delay pair[2], more;

    if (choose_followed(strategy, schedule))
        return;
    if (strategy->delays < 2) {
        more = choose_delay(strategy);
        add_choice(strategy, &more, schedule);
        return;
    }
    choose_pair(strategy, pair);
    add_choice(strategy, &pair[0], schedule);
    add_choice(strategy, &pair[1], schedule);
    if (draw(strategy) % PAIRS_OF)
        return;
    for (unsigned left = (unsigned)(draw(strategy) % (strategy->delays - 1)); left > 0; left--) {
        more = choose_delay(strategy);
        add_choice(strategy, &more, schedule);
    }
}

void go_strategy_choose(struct go_strategy *strategy, struct go_schedule *schedule)
{
    bool anywhere = !strategy->count || strategy->executions % RANDOM_EVERY == RANDOM_EVERY - 1;
    struct place *alone = strategy->executions % 2 ? untried(strategy) : NULL;

    if (alone && alone->alone && strategy->executions % LATER_ALONE_EVERY != 1)
        alone = NULL;
    strategy->executions++;
    strategy->tries_alone = false;
    schedule->seed = draw(strategy);
    schedule->left = (int32_t)strategy->delays;
    schedule->chance = RANDOM_CHANCE;
    schedule->choice_count = 0;
    if (anywhere || !strategy->delays)
        return;
    if (alone) {
        const struct delay delay = {(size_t)(alone - strategy->places), alone->alone++};

        add_choice(strategy, &delay, schedule);
        strategy->tries_alone = true;
        return;
    }
    choose_several(strategy, schedule);
}

void go_strategy_holds(struct go_strategy *strategy, uint64_t longest_ns, struct go_hold_rule *ret_rule)
{
    bool is_short = draw(strategy) & 1;
    uint64_t limit = strategy->took_of ? EXECUTIONS_LONG * strategy->took_ns / strategy->took_of : 0;

    *ret_rule = (struct go_hold_rule){.limit_ns = GO_HOLD_SHORT_NS};
    if (!limit || (!strategy->tries_alone && is_short))
        return;
    ret_rule->outlasts_timers = true;
    if (limit > longest_ns)
        limit = longest_ns;
    if (limit > GO_HOLD_SHORT_NS)
        ret_rule->limit_ns = limit;
}

void go_strategy_took(struct go_strategy *strategy, const struct go_hold_rule *rule, uint64_t ns)
{
    if (rule->outlasts_timers)
        return; /* most of it may be the holds */
    strategy->took_ns += ns;
    strategy->took_of++;
}

int go_schedule_parse(const char *text, struct go_schedule *schedule)
{
    uint32_t count = 0;

    while (*text) {
        unsigned probe, hit;
        int length = 0;

        if (sscanf(text, "%u.%u%n", &probe, &hit, &length) < 2 || (text[length] && text[length] != ','))
            return -EINVAL;
        if (count == GO_CHOICES_MAX)
            return -E2BIG;
        schedule->choices[count].probe = probe;
        schedule->choices[count++].hit = hit;
        text += length + (text[length] == ',');
    }
    schedule->choice_count = count;
    schedule->left = (int32_t)count;
    return count ? 0 : -EINVAL;
}

void go_schedule_write(const struct go_schedule *schedule, char *text, size_t size)
{
    size_t at = 0;

    *text = '\0';
    for (uint32_t i = 0; i < schedule->choice_count && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%u.%u", i ? "," : "", schedule->choices[i].probe,
                               schedule->choices[i].hit);
}
