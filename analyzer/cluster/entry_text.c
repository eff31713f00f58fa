/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cluster/entry_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

char *entry_text(const struct loop_summary *summary, const struct nlr_element *element)
{
    char *text = NULL;

    if (element->kind == NLR_SYMBOL)
        return strdup(symbols_demangled(&summary->symbols, element->id));
    if (element->kind == NLR_LOST)
        return strdup("?");
    if (asprintf(&text, "L%" PRIu32 " ^ %" PRIu64, summary->table.numbers[element->id], element->count) < 0)
        return NULL;
    return text;
}

char *loop_body_text(const struct loop_summary *summary, uint32_t loop)
{
    const struct nlr_element *elements = loop_table_elements(&summary->table, loop);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    for (uint32_t i = 0; i < summary->table.bodies[loop].length; i++) {
        AUTO_FREE char *entry = entry_text(summary, &elements[i]);

        fprintf(out, "%s%s", i ? " " : "", entry ? entry : "");
    }
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

static void print_entry(const struct loop_summary *summary, const struct attribute_entry *entry, FILE *stream)
{
    if (entry->kind == NLR_SYMBOL)
        fputs(symbols_demangled(&summary->symbols, entry->id), stream);
    else
        fprintf(stream, "L%" PRIu32, summary->table.numbers[entry->id]);
}

/* "10-99" for 1; from a million on "10^6" */
static void print_magnitude(uint64_t log10, FILE *stream)
{
    uint64_t low = 1;

    if (log10 > 5) {
        fprintf(stream, "10^%" PRIu64, log10);
        return;
    }
    while (log10--)
        low *= 10;
    fprintf(stream, "%" PRIu64 "-%" PRIu64, low, low * 10 - 1);
}

void attribute_text(const struct loop_summary *summary, const struct attribute *attribute, char *text,
                    size_t size)
{
    FILE *stream = fmemopen(text, size, "w");

    *text = 0;
    if (!stream)
        return;
    print_entry(summary, &attribute->entries[0], stream);
    if (attribute->kind.unit == ATTRIBUTE_DOUBLE) {
        fputs(" -> ", stream);
        print_entry(summary, &attribute->entries[1], stream);
    }
    if (attribute->kind.frequency != FREQUENCY_NONE)
        fputc(':', stream);
    if (attribute->kind.frequency == FREQUENCY_ACTUAL)
        fprintf(stream, "%" PRIu64, attribute->frequency);
    else if (attribute->kind.frequency == FREQUENCY_LOG10)
        print_magnitude(attribute->frequency, stream);
    fclose(stream);
    text[size - 1] = 0;
}
