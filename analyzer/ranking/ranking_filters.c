/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/ranking/ranking_filters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

/* The functions called in a run. */
struct called {
    struct tracestore_function *functions;
    size_t count;
};

/* Which of all runs' functions each set keeps, a byte a function. */
struct kept {
    struct called *called;
    size_t runs, functions;
    unsigned char **sets;
    size_t count;
};

static void kept_release(struct kept *kept)
{
    for (size_t i = 0; kept->called && i < kept->runs; i++)
        tracestore_functions_free(kept->called[i].functions, kept->called[i].count);
    for (size_t i = 0; kept->sets && i < kept->count; i++)
        free(kept->sets[i]);
    free(kept->called);
    free(kept->sets);
}

static int read_called(const struct loop_source *sources, struct kept *kept, struct error *err)
{
    kept->called = calloc(kept->runs, sizeof(*kept->called));
    if (!kept->called)
        return error_no_memory(err);
    for (size_t i = 0; i < kept->runs; i++) {
        int r = tracestore_functions(sources[i].store, sources[i].run->run_id, &kept->called[i].functions,
                                     &kept->called[i].count, err);

        if (r < 0)
            return r;
        kept->functions += kept->called[i].count;
    }
    return 0;
}

/* Whether the filter keeps something, and not the same as one of those before. */
static bool is_new(struct kept *kept, const struct filter *filter, unsigned char *bytes)
{
    size_t at = 0, any = 0;

    for (size_t run = 0; run < kept->runs; run++)
        for (size_t i = 0; i < kept->called[run].count; i++) {
            const struct tracestore_function *function = &kept->called[run].functions[i];

            bytes[at] = filter_keeps(filter, &(struct filter_function){function->name, function->demangled,
                                                                       function->image, function->file,
                                                                       function->aliases});
            any += bytes[at++];
        }
    for (size_t i = 0; i < kept->count; i++)
        if (!memcmp(kept->sets[i], bytes, kept->functions))
            return false;
    return any > 0;
}

DEFINE_CLEANUP(cleanup_filter, struct filter *, filter_free)

static int try_set(struct kept *kept, const char *name, const char **names, struct error *err)
{
    CLEANUP(cleanup_filter) struct filter *filter = NULL;
    AUTO_FREE unsigned char *bytes = malloc(kept->functions + 1);
    int r = filter_new(name, NULL, &filter, err);

    if (r < 0)
        return r;
    if (!bytes)
        return error_no_memory(err);
    if (is_new(kept, filter, bytes)) {
        names[kept->count] = name;
        kept->sets[kept->count++] = take_pointer(bytes);
    }
    return 0;
}

int ranking_filters(const struct loop_source *sources, size_t runs, const char ***ret_names,
                    size_t *ret_count, struct error *err)
{
    CLEANUP(kept_release) struct kept kept = {.runs = runs};
    AUTO_FREE const char **names = NULL;
    size_t sets = 0;
    int r = read_called(sources, &kept, err);

    while (filter_sets[sets].name)
        sets++;
    names = calloc(sets + 1, sizeof(*names));
    kept.sets = calloc(sets + 1, sizeof(*kept.sets));
    if (!names || !kept.sets)
        return error_no_memory(err), -ENOMEM;
    if (r >= 0)
        r = try_set(&kept, "everything", names, err);
    for (size_t i = 0; i < sets && r >= 0; i++)
        r = try_set(&kept, filter_sets[i].name, names, err);
    if (r < 0)
        return r;
    *ret_names = take_pointer(names);
    *ret_count = kept.count;
    return 0;
}
