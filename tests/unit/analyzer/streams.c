/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/unit/analyzer/streams.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t random_below(uint64_t *seed, uint32_t limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % limit;
}

static size_t random_body(uint64_t *seed, uint32_t symbols, size_t most, uint32_t *stream, int depth)
{
    size_t count = 0, parts = 1 + random_below(seed, 4);

    for (size_t part = 0; part < parts && count < most; part++) {
        size_t body, times;

        if (depth >= 4 || random_below(seed, 3) == 0) {
            stream[count++] = random_below(seed, symbols);
            continue;
        }
        body = random_body(seed, symbols, most - count, stream + count, depth + 1);
        times = 1 + random_below(seed, 6);
        for (size_t i = 1; i < times && count + (i + 1) * body <= most; i++)
            for (size_t j = 0; j < body; j++)
                stream[count + i * body + j] = stream[count + j];
        for (size_t i = 1; i < times && count + 2 * body <= most; i++)
            count += body;
        count += body;
    }
    return count;
}

size_t random_stream(uint64_t *seed, uint32_t symbols, size_t most, uint32_t *stream)
{
    size_t count = 0;

    while (count < most) {
        size_t more = random_body(seed, symbols, most - count, stream + count, 0);

        if (random_below(seed, 4) == 0) /* break a loop somewhere */
            stream[count + random_below(seed, (uint32_t)more)] = random_below(seed, symbols);
        count += more;
    }
    return count;
}

struct nlr_sequence reduce(struct loop_table *table, uint32_t max_body, uint32_t repeats,
                           const uint32_t *stream, size_t count)
{
    struct nlr_options options = {max_body, repeats};
    struct nlr_builder *builder = NULL;
    struct nlr_sequence sequence = {0};

    cr_assert_eq(nlr_builder_new(table, &options, &builder), 0);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(nlr_builder_push(builder, nlr_symbol(stream[i])), 0);
    cr_assert_eq(nlr_builder_take(builder, &sequence), 0);
    nlr_builder_free(builder);
    return sequence;
}

struct nlr_sequence reduce_text(struct loop_table *table, const char *text)
{
    struct nlr_options options = {NLR_DEFAULT_BODY, NLR_STRICT_REPEATS};
    struct nlr_builder *builder = NULL;
    struct nlr_sequence sequence = {0};

    cr_assert_eq(nlr_builder_new(table, &options, &builder), 0);
    for (; *text; text++)
        cr_assert_eq(nlr_builder_push(builder, *text == '?' ? loop_table_lost(table)
                                                            : nlr_symbol((uint32_t)(*text - 'A' + 1))),
                     0);
    cr_assert_eq(nlr_builder_take(builder, &sequence), 0);
    nlr_builder_free(builder);
    return sequence;
}

char *sequence_text(const struct loop_table *table, const struct nlr_sequence *sequence)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; i < sequence->count; i++) {
        const struct nlr_element *element = &sequence->elements[i];

        if (i)
            fputc(' ', out);
        if (element->kind == NLR_SYMBOL)
            fprintf(out, "%c", (char)('A' + element->id - 1));
        else if (element->kind == NLR_LOST)
            fputc('?', out);
        else
            fprintf(out, "L%" PRIu32 "^%" PRIu64,
                    table->number_count ? table->numbers[element->id] : element->id, element->count);
    }
    fclose(out);
    return text;
}

struct expectation {
    const uint32_t *stream;
    size_t count, at;
};

static int expect_symbol(void *context, const struct nlr_element *element)
{
    struct expectation *expected = context;

    cr_assert_lt(expected->at, expected->count, "the expansion is too long");
    cr_assert_eq(element->kind, NLR_SYMBOL);
    cr_assert_eq(element->id, expected->stream[expected->at], "symbol %zu differs", expected->at);
    expected->at++;
    return 0;
}

void expect_expansion(const struct loop_table *table, const struct nlr_sequence *sequence,
                      const uint32_t *stream, size_t count)
{
    struct expectation expected = {stream, count, 0};

    cr_assert_eq(nlr_expand(table, sequence->elements, sequence->count, expect_symbol, &expected), 0);
    cr_assert_eq(expected.at, count, "the expansion has %zu symbols of %zu", expected.at, count);
    cr_assert_eq(nlr_events(table, sequence->elements, sequence->count), count);
}
