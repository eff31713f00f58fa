/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/renames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/cleanup.h"

/* Neighbours that are no functions of both sides. */
#define START UINT32_MAX
#define ONE_SIDED (UINT32_MAX - 1)

/* More functions of one side than this are not compared each with each: the program is another one. */
#define MOST_CANDIDATES 512u

/* The functions before and behind a call, as one number; at least one of them is known to both sides. */
typedef uint64_t place;

struct candidate {
    uint32_t symbol;
    place *places; /* sorted, each once */
    size_t count, capacity;
};

struct candidates {
    struct candidate *items;
    size_t count;
};

struct search {
    const struct loop_summary *summary;
    const struct function_facts *facts;
    struct candidates sides[2];
    uint32_t *candidate_of; /* by symbol: index in its side + 1 */
};

static void search_release(struct search *search)
{
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < search->sides[side].count; i++)
            free(search->sides[side].items[i].places);
        free(search->sides[side].items);
    }
    free(search->candidate_of);
}

/* ------------------------------------------------------------------------------------------ places */

static bool is_candidate(const struct function_facts *facts, size_t symbol, bool faulty)
{
    const struct function_side *mine = &facts->functions[symbol][faulty];
    const struct function_side *other = &facts->functions[symbol][!faulty];

    return mine->called && !other->called && other->in_program != IN_PROGRAM_YES;
}

static int collect_candidates(struct search *search)
{
    size_t symbols = search->facts->count;

    search->candidate_of = calloc(symbols + 1, sizeof(*search->candidate_of));
    if (!search->candidate_of)
        return -ENOMEM;
    for (int side = 0; side < 2; side++) {
        struct candidates *candidates = &search->sides[side];

        candidates->items = calloc(MOST_CANDIDATES, sizeof(*candidates->items));
        if (!candidates->items)
            return -ENOMEM;
        for (size_t symbol = 1; symbol < symbols && candidates->count < MOST_CANDIDATES; symbol++) {
            if (!is_candidate(search->facts, symbol, side))
                continue;
            candidates->items[candidates->count++].symbol = (uint32_t)symbol;
            search->candidate_of[symbol] = (uint32_t)candidates->count;
        }
    }
    return 0;
}

/* A neighbour as both sides know it. */
static uint32_t neutral(const struct search *search, uint32_t symbol)
{
    const struct function_facts *facts = search->facts;

    if (symbol >= facts->count || symbol == SYMBOL_RETURN)
        return symbol;
    return facts->functions[symbol][0].called && facts->functions[symbol][1].called ? symbol : ONE_SIDED;
}

/* The symbol that an element begins or ends with; START at the ends and at lost events. */
static uint32_t edge(const struct loop_table *table, const struct nlr_element *element, bool last)
{
    while (element->kind == NLR_LOOP)
        element =
            loop_table_elements(table, element->id) + (last ? table->bodies[element->id].length - 1 : 0);
    return element->kind == NLR_SYMBOL ? element->id : START;
}

static int add_place(struct search *search, bool faulty, uint32_t symbol, uint32_t before, uint32_t behind)
{
    struct candidate *candidate;
    uint32_t number = symbol < search->facts->count ? search->candidate_of[symbol] : 0;

    if (!number || !is_candidate(search->facts, symbol, faulty) || before == START || behind == START)
        return 0;
    before = neutral(search, before);
    behind = neutral(search, behind);
    if (before == ONE_SIDED && behind == ONE_SIDED)
        return 0;
    candidate = &search->sides[faulty].items[number - 1];
    if (array_reserve(&candidate->places, &candidate->capacity, candidate->count + 1))
        return -ENOMEM;
    candidate->places[candidate->count++] = (place)neutral(search, before) << 32 | neutral(search, behind);
    return 0;
}

/* The places in a stretch of elements that has these symbols before and behind it. */
static int add_places(struct search *search, bool faulty, const struct nlr_element *elements, size_t count,
                      uint32_t before, uint32_t behind)
{
    const struct loop_table *table = &search->summary->table;
    int r = 0;

    for (size_t i = 0; i < count && !r; i++) {
        uint32_t previous = i ? edge(table, &elements[i - 1], true) : before;
        uint32_t next = i + 1 < count ? edge(table, &elements[i + 1], false) : behind;

        if (elements[i].kind == NLR_SYMBOL)
            r = add_place(search, faulty, elements[i].id, previous, next);
    }
    return r;
}

/* The bodies of the loops of a stretch, each body once: behind its last entry comes its first one. */
static int add_bodies(struct search *search, bool faulty, const struct nlr_element *elements, size_t count,
                      bool *done)
{
    const struct loop_table *table = &search->summary->table;
    int r = 0;

    for (size_t i = 0; i < count && !r; i++) {
        uint32_t id = elements[i].id, length;
        const struct nlr_element *body;

        if (elements[i].kind != NLR_LOOP || done[id])
            continue;
        done[id] = true;
        body = loop_table_elements(table, id);
        length = table->bodies[id].length;
        r = add_places(search, faulty, body, length, edge(table, &body[length - 1], true),
                       edge(table, &body[0], false));
        if (!r)
            r = add_bodies(search, faulty, body, length, done);
    }
    return r;
}

static int compare_places(const void *a, const void *b)
{
    place x = *(const place *)a, y = *(const place *)b;

    return x < y ? -1 : x > y;
}

static void sort_places(struct candidate *candidate)
{
    size_t kept = 0;

    if (!candidate->count)
        return;
    qsort(candidate->places, candidate->count, sizeof(*candidate->places), compare_places);
    for (size_t i = 0; i < candidate->count; i++)
        if (!i || candidate->places[i] != candidate->places[i - 1])
            candidate->places[kept++] = candidate->places[i];
    candidate->count = kept;
}

static int collect_places(struct search *search, const struct run_loops *run, bool faulty)
{
    AUTO_FREE bool *done = calloc(search->summary->table.count + 1, sizeof(*done));
    int r = done ? 0 : -ENOMEM;

    for (size_t i = 0; i < run->thread_count && !r; i++) {
        const struct nlr_sequence *loops = &run->threads[i].loops;

        r = add_places(search, faulty, loops->elements, loops->count, START, START);
        if (!r)
            r = add_bodies(search, faulty, loops->elements, loops->count, done);
    }
    for (size_t i = 0; i < search->sides[faulty].count; i++)
        sort_places(&search->sides[faulty].items[i]);
    return r;
}

/* ------------------------------------------------------------------------------------------ pairs */

/* Common places, of all places of both. */
static double likeness(const struct candidate *a, const struct candidate *b)
{
    size_t i = 0, j = 0, common = 0;

    while (i < a->count && j < b->count) {
        if (a->places[i] == b->places[j])
            common++, i++, j++;
        else if (a->places[i] < b->places[j])
            i++;
        else
            j++;
    }
    return a->count + b->count ? (double)common / (double)(a->count + b->count - common) : 0;
}

static bool sizes_agree(uint64_t a, uint64_t b, double share)
{
    return (double)(a < b ? a : b) >= share * (double)(a < b ? b : a);
}

/* What is left of a name without scopes and arguments; functions without a name have none. */
static const char *last_part(const char *name, size_t *ret_length)
{
    const char *part = name, *end = NULL;
    int depth = 0;

    for (const char *c = name; *c; c++) {
        if (!depth && (*c == '(' || *c == '<') && !end)
            end = c;
        depth += (*c == '(' || *c == '<') - (*c == ')' || *c == '>');
        if (!depth && c[0] == ':' && c[1] == ':') {
            part = c + 2;
            end = NULL;
        }
    }
    *ret_length = strstr(part, "+0x") ? 0 : end ? (size_t)(end - part) : strlen(part);
    return part;
}

/* Whether the names have so many letters in a row in common. */
static bool names_agree(const char *a, const char *b)
{
    size_t a_length, b_length;

    a = last_part(a, &a_length);
    b = last_part(b, &b_length);
    for (size_t i = 0; i + RENAME_LETTERS <= a_length; i++)
        for (size_t j = 0; j + RENAME_LETTERS <= b_length; j++)
            if (!strncasecmp(a + i, b + j, RENAME_LETTERS))
                return true;
    return false;
}

/* The place of one function may have been taken by another one. */
static bool looks_renamed(const struct search *search, uint32_t normal, uint32_t faulty)
{
    const struct symbol_table *symbols = &search->summary->symbols;
    uint64_t a = search->facts->functions[normal][0].size, b = search->facts->functions[faulty][1].size;

    if (a && b && !sizes_agree(a, b, RENAME_SIZE))
        return false;
    return names_agree(symbols_demangled(symbols, normal), symbols_demangled(symbols, faulty)) ||
           (a >= RENAME_TELLING_SIZE && b >= RENAME_TELLING_SIZE && sizes_agree(a, b, RENAME_SAME_SIZE));
}

static int compare_renames(const void *a, const void *b)
{
    const struct rename *x = a, *y = b;

    if (x->likeness != y->likeness)
        return x->likeness > y->likeness ? -1 : 1;
    if (x->normal != y->normal)
        return x->normal < y->normal ? -1 : 1;
    return x->faulty < y->faulty ? -1 : x->faulty > y->faulty;
}

/* All pairs that may be, the most alike first. */
static int collect_pairs(const struct search *search, struct rename **ret_pairs, size_t *ret_count)
{
    const struct candidates *left = &search->sides[0], *right = &search->sides[1];
    struct rename *pairs = NULL;
    size_t count = 0, capacity = 0;

    for (size_t i = 0; i < left->count; i++)
        for (size_t j = 0; j < right->count; j++) {
            const struct candidate *a = &left->items[i], *b = &right->items[j];
            struct rename pair = {a->symbol, b->symbol, likeness(a, b)};

            if (pair.likeness <= RENAME_LIKENESS || !looks_renamed(search, a->symbol, b->symbol))
                continue;
            if (array_reserve(&pairs, &capacity, count + 1)) {
                free(pairs);
                return -ENOMEM;
            }
            pairs[count++] = pair;
        }
    if (count)
        qsort(pairs, count, sizeof(*pairs), compare_renames);
    *ret_pairs = pairs;
    *ret_count = count;
    return 0;
}

/* A function that another one is as much like is guessed at no more: keeps pairs that have no rival. */
static size_t keep_clear_pairs(struct rename *pairs, size_t count, uint32_t *candidate_of)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        bool rival = false;

        for (size_t j = i + 1; j < count && pairs[j].likeness == pairs[i].likeness; j++)
            rival |= pairs[j].normal == pairs[i].normal || pairs[j].faulty == pairs[i].faulty;
        if (candidate_of[pairs[i].normal] && candidate_of[pairs[i].faulty] && !rival)
            pairs[kept++] = pairs[i];
        candidate_of[pairs[i].normal] = candidate_of[pairs[i].faulty] = 0;
    }
    return kept;
}

int find_renames(const struct loop_summary *summary, const struct function_facts *facts,
                 struct renames *ret_renames)
{
    CLEANUP(search_release) struct search search = {.summary = summary, .facts = facts};
    struct renames renames = {0};
    int r = collect_candidates(&search);

    if (r)
        return r;
    if (search.sides[0].count && search.sides[1].count) {
        r = collect_places(&search, &summary->runs[0], false);
        if (!r)
            r = collect_places(&search, &summary->runs[summary->run_count - 1], true);
        if (!r)
            r = collect_pairs(&search, &renames.renames, &renames.count);
        if (r)
            return r;
        renames.count = keep_clear_pairs(renames.renames, renames.count, search.candidate_of);
    }
    *ret_renames = renames;
    return 0;
}

void renames_release(struct renames *renames)
{
    free(renames->renames);
    *renames = (struct renames){0};
}
