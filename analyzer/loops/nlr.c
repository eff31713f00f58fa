/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Procedure 1 of DiffTrace, streaming, without its K^2 comparisons per event.
 *
 * The procedure looks at i = 1, 2, ... elements from the top of the stack and takes the first of
 *   - a formation: i = repeats * b, and the top is `repeats` equal blocks of b elements;
 *   - an extension: element i from the top is a loop whose body is the i - 1 elements above it
 *
 * (formation first where both have the same i), then begins again. So the outcome is decided by the shortest
 * body that can be extended and the shortest block that repeats, which are found separately here:
 *
 *   - prefix hashes along the stack give the hash of any block in O(1); a formation is one comparison of the
 *     top (repeats - 1) * b elements with those b below;
 *   - a mark for each position, a hash of the last four elements, rules out nearly all b >= 4 with one
 *     comparison of 32 bits each, sixteen of them at a time;
 *   - each position knows the nearest loop below, so that extensions look at loops only.
 *
 * Equal hashes are verified element by element. Hashes, marks and nearest loops are kept for the top of the
 * stack only, as deep as the procedure looks: a window that follows the top, and is made anew from the
 * elements when the stack has shrunk to its lower end. So memory is the stack's, whose content is the result.
 */
#include "analyzer/loops/nlr.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

#define MARK_WINDOW 4u    /* elements that a mark covers */
#define WINDOW_ROOM 4096u /* positions that the window has beyond what is looked at */

struct nlr_builder {
    struct loop_table *table;
    uint32_t max_body, repeats;
    size_t count, capacity;       /* of the stack */
    struct nlr_element *elements; /* the stack, bottom first */
    size_t depth;                 /* elements that the procedure looks at */
    size_t base, window;          /* what follows is known of the positions base to base + window - 1 */
    uint64_t *prefix;             /* hash of the elements from base to below the position */
    uint32_t *marks;              /* by position; 0 in the first positions */
    uint32_t *loops;              /* position + 1 of the nearest loop at or below, 0: none */
    uint64_t *powers;             /* powers[i]: NLR_HASH_BASE^i, for every block length in use */
};

void nlr_builder_free(struct nlr_builder *builder)
{
    if (!builder)
        return;
    free(builder->elements);
    free(builder->prefix);
    free(builder->marks);
    free(builder->loops);
    free(builder->powers);
    free(builder);
}

DEFINE_CLEANUP(cleanup_builder, struct nlr_builder *, nlr_builder_free)

int nlr_builder_new(struct loop_table *table, const struct nlr_options *options,
                    struct nlr_builder **ret_builder)
{
    CLEANUP(cleanup_builder) struct nlr_builder *builder = NULL;
    size_t lengths;

    if (!options->max_body || options->max_body > NLR_MAX_BODY || options->repeats < 2 ||
        options->repeats > NLR_MAX_REPEATS)
        return -EINVAL;
    builder = calloc(1, sizeof(*builder));
    if (!builder)
        return -ENOMEM;
    builder->table = table;
    builder->max_body = options->max_body;
    builder->repeats = options->repeats;
    lengths = (size_t)options->max_body * (options->repeats - 1) + MARK_WINDOW + 1;
    builder->depth = (size_t)options->max_body * options->repeats + MARK_WINDOW;
    builder->window = 4 * builder->depth + WINDOW_ROOM;
    builder->powers = calloc(lengths, sizeof(*builder->powers));
    builder->prefix = calloc(builder->window + 1, sizeof(*builder->prefix));
    builder->marks = calloc(builder->window, sizeof(*builder->marks));
    builder->loops = calloc(builder->window, sizeof(*builder->loops));
    if (!builder->powers || !builder->prefix || !builder->marks || !builder->loops)
        return -ENOMEM;
    builder->powers[0] = 1;
    for (size_t i = 1; i < lengths; i++)
        builder->powers[i] = builder->powers[i - 1] * NLR_HASH_BASE;
    *ret_builder = take_pointer(builder);
    return 0;
}

size_t nlr_builder_count(const struct nlr_builder *builder)
{
    return builder->count;
}

static int grow(struct nlr_builder *builder)
{
    if (builder->count >= UINT32_MAX - 1)
        return -EOVERFLOW;
    return array_reserve(&builder->elements, &builder->capacity, builder->count + 1);
}

/* The hash of the `length` elements from `first` on, which are in the window. */
static inline uint64_t block_hash(const struct nlr_builder *builder, size_t first, size_t length)
{
    const uint64_t *prefix = builder->prefix + (first - builder->base);

    return prefix[length] - prefix[0] * builder->powers[length];
}

/* Fills in what the window knows of the element at `at`, from the position below. */
static inline void look_at(struct nlr_builder *builder, size_t at)
{
    struct nlr_element element = builder->elements[at];
    size_t place = at - builder->base;

    builder->prefix[place + 1] = builder->prefix[place] * NLR_HASH_BASE + nlr_hash_element(element);
    builder->marks[place] = place + 1 < MARK_WINDOW
                                ? 0
                                : (uint32_t)(block_hash(builder, at + 1 - MARK_WINDOW, MARK_WINDOW) >> 16);
    builder->loops[place] = element.kind == NLR_LOOP ? (uint32_t)at + 1
                            : place                  ? builder->loops[place - 1]
                                                     : 0;
}

/* Makes the window anew, the upper half free, where the top has left it. */
static void move_window(struct nlr_builder *builder)
{
    size_t below = builder->window / 2;

    builder->base = builder->count > below ? builder->count - below : 0;
    for (size_t at = builder->base; at < builder->count; at++)
        look_at(builder, at);
}

static inline int append(struct nlr_builder *builder, struct nlr_element element)
{
    size_t at = builder->count, place = at - builder->base;

    if (at == builder->capacity) {
        int r = grow(builder);

        if (r < 0)
            return r;
    }
    if (place == builder->window || (builder->base && (at < builder->base || place < builder->depth)))
        move_window(builder);
    builder->elements[at] = element;
    look_at(builder, at);
    builder->count = at + 1;
    return 0;
}

/* The length of the shortest body on top of its own loop, 0: there is none. */
static inline size_t find_extension(const struct nlr_builder *builder)
{
    size_t top = builder->count - 1, place = top - builder->base;

    for (size_t next = place ? builder->loops[place - 1] : 0; next && top - (next - 1) <= builder->max_body;
         next = next > builder->base + 1 ? builder->loops[next - 2 - builder->base] : 0) {
        size_t length = top - (next - 1);
        uint32_t id = builder->elements[next - 1].id;
        const struct loop_body *body = &builder->table->bodies[id];

        if (body->length == length && body->hash == block_hash(builder, next, length) &&
            nlr_same(loop_table_elements(builder->table, id), builder->elements + next, length))
            return length;
    }
    return 0;
}

/* Whether the top is `repeats` equal blocks of `length`. */
static inline bool is_repeated(const struct nlr_builder *builder, size_t length)
{
    size_t span = length * (builder->repeats - 1);
    size_t first = builder->count - span;

    return block_hash(builder, first, span) == block_hash(builder, first - length, span) &&
           nlr_same(builder->elements + first, builder->elements + first - length, span);
}

/* The shortest length from `length` to `longest` whose mark is the top's; longest + 1: none. The first loop
 * has no branch for a single mark, so that it compiles to vector comparisons. */
static inline size_t next_marked(const uint32_t *top, size_t length, size_t longest)
{
    uint32_t mark = *top;

    for (; length + 15 <= longest; length += 16) {
        const uint32_t *marks = top - length - 15;
        uint32_t any = 0;

        for (int i = 0; i < 16; i++)
            any |= marks[i] == mark;
        if (any)
            break;
    }
    while (length <= longest && top[-(ptrdiff_t)length] != mark)
        length++;
    return length;
}

/* The length of the shortest block up to `longest` that is on the top `repeats` times, 0: none. */
static inline size_t find_formation(const struct nlr_builder *builder, size_t longest)
{
    const uint32_t *top = builder->marks + (builder->count - 1 - builder->base);
    size_t fitting = builder->count / builder->repeats, length = 1;

    if (longest > fitting)
        longest = fitting;
    for (; length < MARK_WINDOW && length <= longest; length++)
        if (is_repeated(builder, length))
            return length;
    for (; (length = next_marked(top, length, longest)) <= longest; length++)
        if (is_repeated(builder, length))
            return length;
    return 0;
}

int nlr_builder_push(struct nlr_builder *builder, struct nlr_element element)
{
    for (;;) {
        size_t extension, formation, longest = builder->max_body;
        int r = append(builder, element);

        if (r < 0)
            return r;
        extension = find_extension(builder);
        if (extension && (extension + 1) / builder->repeats < longest)
            longest = (extension + 1) / builder->repeats; /* what the procedure would meet first */
        formation = find_formation(builder, longest);
        if (formation) {
            size_t first = builder->count - formation;

            r = loop_table_add(builder->table, builder->elements + first, (uint32_t)formation,
                               block_hash(builder, first, formation), &element.id);
            if (r < 0)
                return r;
            element.kind = NLR_LOOP;
            element.count = builder->repeats;
            builder->count -= formation * builder->repeats;
        } else if (extension) {
            builder->count -= extension + 1;
            element = builder->elements[builder->count];
            element.count++;
        } else {
            return 0;
        }
    }
}

int nlr_builder_take(struct nlr_builder *builder, struct nlr_sequence *ret_sequence)
{
    struct nlr_element *fitting;

    /* Smaller in place: no second copy, and no memory that is not used. */
    fitting = builder->count ? realloc(builder->elements, builder->count * sizeof(*builder->elements)) : NULL;
    if (builder->count && !fitting)
        return -ENOMEM;
    *ret_sequence = (struct nlr_sequence){fitting, builder->count};
    if (builder->count) {
        builder->elements = NULL;
        builder->capacity = 0;
    }
    builder->count = builder->base = 0;
    return 0;
}
