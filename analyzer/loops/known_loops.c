/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two-block rule: two equal consecutive blocks are a loop when their body is known from elsewhere, as in
 * table 3.3 of the dissertation, where ranks 0 and 3 send and receive only twice and still show L0 ^ 2 and L1
 * ^ 2.
 *
 * Applied while the events stream in, the rule would make a thread's summary depend on what the threads
 * before it did: the same events would give [A B B]^5 before somebody has repeated B three times, and [A
 * L0^2]^5 after, and a comparison of two runs would show differences that are none. So it is applied when all
 * streams have been reduced by Procedure 1 alone, in rounds. In a round each sequence is rewritten by itself,
 * with the bodies known when the round began:
 *
 *   1. from the longest body to the shortest, left to right: two or more equal consecutive blocks that are a
 *      known body become a loop; a known body behind a loop of that body extends it; neighbouring loops of
 *      one body are added up. Longest first, so that A B B A B B becomes [A B B]^2 although B may be known as
 *      well;
 *   2. Procedure 1 on the result, because new loops may make blocks equal; bodies that are new are known in
 *      the next round.
 *
 * Rounds continue until one changes nothing. Every step makes a sequence shorter or leaves it alone, so they
 * end. Equal sequences stay equal in every round: what a thread's summary is depends on its own events and on
 * the set of all bodies, never on the order in which threads were read.
 */
#include "analyzer/loops/known_loops.h"

#include <errno.h>
#include <stdlib.h>

#include "analyzer/loops/nlr.h"
#include "base/array.h"
#include "base/cleanup.h"

struct rewriter {
    const struct loop_table *table;
    size_t known;     /* bodies with an id below are known in this round */
    uint32_t longest; /* length of the longest known body */
    bool *lengths;    /* [length]: is there a known body of this length? */
    uint64_t *prefix; /* hashes of the elements in front of each position */
    size_t prefix_capacity;
};

static void rewriter_release(struct rewriter *rewriter)
{
    free(rewriter->lengths);
    free(rewriter->prefix);
}

static int rewriter_init(struct rewriter *rewriter, const struct loop_table *table)
{
    *rewriter = (struct rewriter){.table = table, .known = table->count};
    for (size_t id = 0; id < table->count; id++)
        if (table->bodies[id].length > rewriter->longest)
            rewriter->longest = table->bodies[id].length;
    rewriter->lengths = calloc((size_t)rewriter->longest + 1, sizeof(*rewriter->lengths));
    if (!rewriter->lengths)
        return -ENOMEM;
    for (size_t id = 0; id < table->count; id++)
        rewriter->lengths[table->bodies[id].length] = true;
    return 0;
}

static int hash_prefixes(struct rewriter *rewriter, const struct nlr_sequence *sequence)
{
    if (array_reserve(&rewriter->prefix, &rewriter->prefix_capacity, sequence->count + 1) ||
        !rewriter->prefix)
        return -ENOMEM;
    rewriter->prefix[0] = 0;
    for (size_t i = 0; i < sequence->count; i++)
        rewriter->prefix[i + 1] =
            rewriter->prefix[i] * NLR_HASH_BASE + nlr_hash_element(sequence->elements[i]);
    return 0;
}

static uint64_t power(uint64_t base, uint32_t exponent)
{
    uint64_t result = 1;

    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

/* One pass over a sequence for the known bodies of one length. */
struct pass {
    const struct rewriter *rewriter;
    struct nlr_sequence *sequence; /* read ahead of where it is written */
    uint32_t length;
    uint64_t power; /* NLR_HASH_BASE^length */
    size_t written;
};

static uint64_t pass_hash(const struct pass *pass, size_t at)
{
    return pass->rewriter->prefix[at + pass->length] - pass->rewriter->prefix[at] * pass->power;
}

/* The body that lies at `at`, if it is known. */
static bool known_body(const struct pass *pass, size_t at, uint32_t *ret_id)
{
    return loop_table_find(pass->rewriter->table, pass->sequence->elements + at, pass->length,
                           pass_hash(pass, at), ret_id) &&
           *ret_id < pass->rewriter->known;
}

/* How often the block at `at` is there, one behind the other. */
static size_t count_blocks(const struct pass *pass, size_t at)
{
    const struct nlr_element *elements = pass->sequence->elements;
    size_t blocks = 1, next = at + pass->length;

    while (next + pass->length <= pass->sequence->count && pass_hash(pass, next) == pass_hash(pass, at) &&
           nlr_same(elements + next, elements + at, pass->length)) {
        blocks++;
        next += pass->length;
    }
    return blocks;
}

/* The entry written last, if it is a loop. */
static struct nlr_element *last_loop(const struct pass *pass)
{
    struct nlr_element *last = pass->written ? &pass->sequence->elements[pass->written - 1] : NULL;

    return last && last->kind == NLR_LOOP ? last : NULL;
}

static void write_element(struct pass *pass, struct nlr_element element)
{
    struct nlr_element *last = element.kind == NLR_LOOP ? last_loop(pass) : NULL;

    if (last && last->id == element.id)
        last->count += element.count;
    else
        pass->sequence->elements[pass->written++] = element;
}

/* The loop written last when its body lies at `at`, else NULL. */
static struct nlr_element *extended_loop(const struct pass *pass, size_t at)
{
    struct nlr_element *last = last_loop(pass);
    const struct loop_body *body;

    if (!last)
        return NULL;
    body = &pass->rewriter->table->bodies[last->id];
    return body->length == pass->length && body->hash == pass_hash(pass, at) &&
                   nlr_same(loop_table_elements(pass->rewriter->table, last->id),
                            pass->sequence->elements + at, pass->length)
               ? last
               : NULL;
}

/* Writing never overtakes reading, and the elements from `at` on are unchanged until they are read: prefix
 * hashes stay true for them. */
static void run_pass(struct pass *pass)
{
    struct nlr_sequence *sequence = pass->sequence;
    size_t at = 0;

    while (at < sequence->count) {
        struct nlr_element loop = {.kind = NLR_LOOP};
        bool room = at + pass->length <= sequence->count;
        struct nlr_element *extended = room ? extended_loop(pass, at) : NULL;

        if (extended) {
            extended->count++;
            at += pass->length;
            continue;
        }
        loop.count = room ? count_blocks(pass, at) : 0;
        if (loop.count >= 2 && known_body(pass, at, &loop.id)) {
            write_element(pass, loop);
            at += pass->length * loop.count;
        } else {
            write_element(pass, sequence->elements[at++]);
        }
    }
    sequence->count = pass->written;
}

static int fold_known(struct rewriter *rewriter, struct nlr_sequence *sequence)
{
    bool hashed = false; /* the prefix hashes describe the sequence as it is */

    for (uint32_t length = rewriter->longest; length; length--) {
        struct pass pass = {rewriter, sequence, length, power(NLR_HASH_BASE, length), 0};
        size_t before;

        if (!rewriter->lengths[length])
            continue;
        if (!hashed && hash_prefixes(rewriter, sequence))
            return -ENOMEM;
        before = sequence->count;
        run_pass(&pass);
        hashed = sequence->count == before; /* a pass that changes something makes the sequence shorter */
    }
    return 0;
}

static int reduce_again(struct nlr_builder *builder, struct nlr_sequence *sequence)
{
    struct nlr_sequence reduced;
    int r;

    for (size_t i = 0; i < sequence->count; i++) {
        r = nlr_builder_push(builder, sequence->elements[i]);
        if (r < 0)
            return r;
    }
    r = nlr_builder_take(builder, &reduced);
    if (r < 0)
        return r;
    free(sequence->elements);
    *sequence = reduced;
    return 0;
}

/* One round. Returns 1 when a sequence has changed. */
static int run_round(struct nlr_builder *builder, struct loop_table *table,
                     struct nlr_sequence *const *sequences, size_t count)
{
    CLEANUP(rewriter_release) struct rewriter rewriter;
    int r = rewriter_init(&rewriter, table), changed = 0;

    for (size_t i = 0; i < count && r >= 0; i++) {
        size_t before = sequences[i]->count;

        r = fold_known(&rewriter, sequences[i]);
        if (r < 0 || sequences[i]->count == before)
            continue; /* Procedure 1 has nothing to do on what it has left behind itself */
        r = reduce_again(builder, sequences[i]);
        changed = 1;
    }
    return r < 0 ? r : changed;
}

DEFINE_CLEANUP(cleanup_builder, struct nlr_builder *, nlr_builder_free)

int known_loops_apply(struct loop_table *table, const struct nlr_options *options,
                      struct nlr_sequence *const *sequences, size_t count)
{
    CLEANUP(cleanup_builder) struct nlr_builder *builder = NULL;
    int r = nlr_builder_new(table, options, &builder);

    while (r >= 0) {
        r = run_round(builder, table, sequences, count);
        if (r <= 0)
            break;
    }
    return r;
}
