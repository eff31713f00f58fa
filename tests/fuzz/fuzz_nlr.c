/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bytes are a stream: what comes out of nested loop recognition must expand to what went in. */
#include <stdint.h>
#include <stdlib.h>

#include "analyzer/loops/known_loops.h"
#include "analyzer/loops/nlr.h"

struct expected {
    const uint8_t *stream;
    size_t size, at;
};

static int expect_symbol(void *context, const struct nlr_element *element)
{
    struct expected *expected = context;

    if (expected->at >= expected->size)
        abort();
    if (expected->stream[expected->at] == 0xff ? element->kind != NLR_LOST
                                               : element->id != expected->stream[expected->at])
        abort();
    expected->at++;
    return 0;
}

static void check(const struct loop_table *table, const struct nlr_sequence *sequence, const uint8_t *stream,
                  size_t size)
{
    struct expected expected = {stream, size, 0};

    if (nlr_expand(table, sequence->elements, sequence->count, expect_symbol, &expected) ||
        expected.at != size)
        abort();
}

/* The two halves of the input are two threads: body length, repeats, then the stream; 0xff is a lost place.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nlr_options options;
    struct loop_table table = {0};
    struct nlr_builder *builder = NULL;
    struct nlr_sequence sequences[2], *pointers[2] = {&sequences[0], &sequences[1]};
    const uint8_t *streams[2];
    size_t sizes[2];

    if (size < 2)
        return 0;
    options = (struct nlr_options){1 + data[0] % 60, 2 + data[1] % 4};
    streams[0] = data + 2;
    sizes[0] = (size - 2) / 2;
    streams[1] = streams[0] + sizes[0];
    sizes[1] = size - 2 - sizes[0];
    if (nlr_builder_new(&table, &options, &builder))
        abort();
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; at < sizes[i]; at++)
            if (nlr_builder_push(builder, streams[i][at] == 0xff ? loop_table_lost(&table)
                                                                 : nlr_symbol(streams[i][at])))
                abort();
        if (nlr_builder_take(builder, &sequences[i]))
            abort();
        check(&table, &sequences[i], streams[i], sizes[i]);
    }
    if (known_loops_apply(&table, &options, pointers, 2))
        abort();
    for (int i = 0; i < 2; i++) {
        check(&table, &sequences[i], streams[i], sizes[i]);
        free(sequences[i].elements);
    }
    nlr_builder_free(builder);
    loop_table_release(&table);
    return 0;
}
