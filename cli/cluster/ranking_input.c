/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/cluster/ranking_input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/ranking/ranking_filters.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"
#include "cli/common/command.h"
#include "cli/common/filter_file.h"

/* ------------------------------------------------------------------------------------------ options */

enum {
    KEY_BASELINE = 0x600,
    KEY_FILTER,
    KEY_FILTER_FILE,
    KEY_CUSTOM,
    KEY_K,
    KEY_ATTRIBUTES,
    KEY_LINKAGE,
    KEY_RETURNS,
    KEY_STRICT
};

static const struct argp_option options[] = {
    {"baseline", KEY_BASELINE, "RUN", 0,
     "Another baseline run: differences that also occur between baseline runs are not reported. May "
     "be repeated",
     1},
    {"filter", KEY_FILTER, "SPEC", 0,
     "Use this filter (see tracectl-nlr(1)). May be repeated (default: every predefined set that keeps "
     "something)",
     1},
    {"filter-file", KEY_FILTER_FILE, "FILE", 0, FILTER_FILE_HELP, 1},
    {"custom", KEY_CUSTOM, "REGEX", 0, "Also keep functions whose name matches, whatever the filter", 1},
    {"k", KEY_K, "K[,K]", 0, "Longest loop body to recognise (default 10)", 1},
    {"attributes", KEY_ATTRIBUTES, "KIND[,KIND]", 0,
     "Attributes to compare: sing.actual, sing.log10, sing.noFreq, doub.actual, doub.log10, doub.noFreq "
     "(default: all)",
     1},
    {"linkage", KEY_LINKAGE, "NAME[,NAME]", 0,
     "Linkages to use: single, complete, average, weighted, centroid, median, ward (default: all; ward "
     "alone for more than 500 threads)",
     1},
    {"with-returns", KEY_RETURNS, 0, 0, "Keep returns", 1},
    {"strict", KEY_STRICT, 0, 0, "Form loops only after three equal blocks", 1},
    {0},
};

/* Calls `add` for each item of a list with commas. */
static void each_item(struct argp_state *state, const char *list, const char *what,
                      bool (*add)(struct ranking_arguments *arguments, const char *item))
{
    AUTO_FREE char *copy = strdup(list);
    char *rest = copy;

    if (!copy)
        argp_failure(state, EXIT_FAILED, ENOMEM, "%s", what);
    for (const char *item; (item = strsep(&rest, ","));)
        if (!add(state->input, item))
            argp_error(state, "%s cannot be '%s' (see --help)", what, item);
}

static bool add_attributes(struct ranking_arguments *arguments, const char *item)
{
    return arguments->attribute_count < ARRAY_SIZE(arguments->attributes) &&
           !attribute_kind_parse(item, &arguments->attributes[arguments->attribute_count++]);
}

static bool add_linkage(struct ranking_arguments *arguments, const char *item)
{
    return arguments->linkage_count < ARRAY_SIZE(arguments->linkages) &&
           !linkage_parse(item, &arguments->linkages[arguments->linkage_count++]);
}

static bool add_max_body(struct ranking_arguments *arguments, const char *item)
{
    uint64_t number = 0;

    if (!number_parse_count(item, &number) || !number || number > NLR_MAX_BODY ||
        arguments->max_body_count == ARRAY_SIZE(arguments->max_bodies))
        return false;
    arguments->max_bodies[arguments->max_body_count++] = (unsigned)number;
    return true;
}

#define ADD_ITEM(state, list, what, item) \
    do { \
        if ((list).count == ARRAY_SIZE((list).items)) \
            argp_error(state, "%s was given too many times", what); \
        (list).items[(list).count++] = (item); \
    } while (0)

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct ranking_arguments *arguments = state->input;

    switch (key) {
    case KEY_BASELINE:
        ADD_ITEM(state, arguments->baselines, "--baseline", arg);
        return 0;
    case KEY_FILTER:
        ADD_ITEM(state, arguments->filters, "--filter", arg);
        return 0;
    case KEY_FILTER_FILE:
        arguments->filter_file = arg;
        return 0;
    case KEY_CUSTOM:
        arguments->custom = arg;
        return 0;
    case KEY_K:
        each_item(state, arg, "--k", add_max_body);
        return 0;
    case KEY_ATTRIBUTES:
        each_item(state, arg, "--attributes", add_attributes);
        return 0;
    case KEY_LINKAGE:
        each_item(state, arg, "--linkage", add_linkage);
        return 0;
    case KEY_RETURNS:
        arguments->with_returns = true;
        return 0;
    case KEY_STRICT:
        arguments->min_repeats = NLR_STRICT_REPEATS;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp ranking_argp = {.options = options, .parser = parse, .help_filter = filter_file_help};

/* ------------------------------------------------------------------------------------------ views */

struct filter_list {
    struct filter_library *library;
    struct filter *filters[RANKING_MOST_RUNS];
    const char *names[RANKING_MOST_RUNS];
    size_t count;
};

static void filter_list_release(struct filter_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        filter_free(list->filters[i]);
    filter_library_free(list->library);
}

static int make_filters(const struct ranking_arguments *arguments, struct ranking_input *input,
                        struct filter_list *list, struct error *err)
{
    const char *const *names = arguments->filters.items;
    size_t count = arguments->filters.count;
    int r = 0;

    if (!count) {
        r = ranking_filters(input->runs.sources, input->runs.count, &input->filter_names, &count, err);
        if (r < 0)
            return r == -EINVAL ? -EIO : r;
        names = input->filter_names;
    }
    r = filter_file_read(arguments->filter_file, &list->library, err);
    if (r >= 0 && count > ARRAY_SIZE(list->filters))
        return error_say(err, -E2BIG, "too many filters: %zu (at most %zu at once)", count,
                         ARRAY_SIZE(list->filters));
    for (size_t i = 0; i < count && r >= 0; i++) {
        list->names[i] = names[i];
        r = filter_new_with(list->library, names[i], arguments->custom, &list->filters[i], err);
        if (r >= 0)
            list->count = i + 1;
    }
    return r;
}

/* Every filter with every K; a filter that has a K of its own with that one. */
static void make_views(const struct ranking_arguments *arguments, const struct filter_list *filters,
                       struct ranking_input *input, struct loop_options *how)
{
    const unsigned usual[] = {NLR_DEFAULT_BODY};
    const unsigned *bodies = arguments->max_body_count ? arguments->max_bodies : usual;
    size_t body_count = arguments->max_body_count ? arguments->max_body_count : 1;

    for (size_t i = 0; i < filters->count; i++)
        for (size_t k = 0; k < body_count; k++) {
            unsigned own = arguments->max_body_count ? 0 : filter_max_body(filters->filters[i]);

            input->views[input->view_count] = (struct ranking_view){
                .filter = filters->names[i],
                .max_body = own ? own : bodies[k],
                .summary = &input->summaries[input->view_count],
            };
            how[input->view_count] = (struct loop_options){
                .filter = filters->filters[i],
                .with_returns = arguments->with_returns,
                .max_body = input->views[input->view_count].max_body,
                .min_repeats = arguments->min_repeats,
            };
            input->view_count++;
        }
}

static bool any_kept(const struct ranking_input *input)
{
    for (size_t i = 0; i < input->view_count; i++)
        if (!loop_summary_keeps_nothing(&input->summaries[i]))
            return true;
    return !input->view_count;
}

static int read_views(const struct ranking_arguments *arguments, struct ranking_input *input,
                      struct error *err)
{
    CLEANUP(filter_list_release) struct filter_list filters = {0};
    AUTO_FREE struct loop_options *how = calloc(RANKING_MOST_VIEWS, sizeof(*how));
    int r;

    input->view_count = 0;
    input->views = calloc(RANKING_MOST_VIEWS, sizeof(*input->views));
    input->summaries = calloc(RANKING_MOST_VIEWS, sizeof(*input->summaries));
    if (!how || !input->views || !input->summaries)
        return error_no_memory(err), -ENOMEM;
    r = make_filters(arguments, input, &filters, err);
    if (r < 0)
        return r;
    make_views(arguments, &filters, input, how);
    r = loop_summary_read_each(input->runs.sources, input->runs.count, how, input->view_count,
                               input->summaries, err);
    if (r >= 0 && !any_kept(input))
        r = cli_loops_kept_nothing(err);
    return r == -EINVAL ? -EIO : r;
}

/* ------------------------------------------------------------------------------------------ ranking */

enum { FEW_THREADS = 500, MANY_THREADS = 4000, FEW_EVENTS = 20000000 };

static const struct attribute_kind all_attributes[] = {
    {ATTRIBUTE_SINGLE, FREQUENCY_ACTUAL}, {ATTRIBUTE_SINGLE, FREQUENCY_LOG10},
    {ATTRIBUTE_SINGLE, FREQUENCY_NONE},   {ATTRIBUTE_DOUBLE, FREQUENCY_ACTUAL},
    {ATTRIBUTE_DOUBLE, FREQUENCY_LOG10},  {ATTRIBUTE_DOUBLE, FREQUENCY_NONE},
};

static const enum linkage_method all_linkages[] = {
    LINKAGE_WARD,     LINKAGE_SINGLE,   LINKAGE_COMPLETE, LINKAGE_AVERAGE,
    LINKAGE_WEIGHTED, LINKAGE_CENTROID, LINKAGE_MEDIAN,
};

static int rank(const struct ranking_sweep *sweep, struct ranking *ret_ranking, struct error *err)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct ranking_sweep how = *sweep;
    const struct loop_summary *summary;
    size_t threads;
    int r;

    if (!how.view_count)
        return error_say(err, -ENODATA, "nothing to compare: these runs contain no calls");
    summary = how.views->summary;
    threads = summary->runs[summary->run_count - 1].thread_count;
    if (!how.attribute_count) {
        how.attributes = all_attributes;
        how.attribute_count = ARRAY_SIZE(all_attributes);
    }
    if (!how.linkage_count) {
        how.linkages = all_linkages;
        how.linkage_count = threads > FEW_THREADS ? 1 : ARRAY_SIZE(all_linkages);
    }
    /* Each works on matrices of its own. */
    how.workers = threads > MANY_THREADS || processors < 1 ? 1 : (unsigned)processors;
    r = rank_runs(&how, ret_ranking);
    return r == -ENOMEM ? error_no_memory(err)
           : r          ? error_say(err, -EIO, "these runs cannot be ranked: %s", strerror(-r))
                        : 0;
}

bool ranking_is_cheap(const struct loop_summary *summary)
{
    uint64_t events = 0;

    for (size_t run = 0; run < summary->run_count; run++)
        for (size_t i = 0; i < summary->runs[run].thread_count; i++)
            events += summary->runs[run].threads[i].events;
    return events <= FEW_EVENTS;
}

int ranking_of_summary(const struct loop_summary *summary, struct ranking *ret_ranking, struct error *err)
{
    const struct ranking_view view = {.filter = "", .summary = summary};
    const struct ranking_sweep sweep = {
        .views = &view, .view_count = 1, .linkages = all_linkages, .linkage_count = 1};

    return rank(&sweep, ret_ranking, err);
}

int ranking_input_read(const struct ranking_arguments *arguments, const char *normal, const char *faulty,
                       struct ranking_input *ret_input, struct error *err)
{
    const char *runs[RANKING_MOST_RUNS + 2] = {normal};
    struct ranking_sweep sweep = {.attributes = arguments->attributes,
                                  .attribute_count = arguments->attribute_count,
                                  .linkages = arguments->linkages,
                                  .linkage_count = arguments->linkage_count};
    size_t count = 1;
    int r;

    for (size_t i = 0; i < arguments->baselines.count; i++)
        runs[count++] = arguments->baselines.items[i];
    runs[count++] = faulty;
    r = cli_runs_open(runs, count, &ret_input->runs, err);
    if (r < 0)
        return r == -EINVAL ? -EIO : r;
    r = read_views(arguments, ret_input, err);
    if (r < 0)
        return r;
    sweep.views = ret_input->views;
    sweep.view_count = ret_input->view_count;
    return rank(&sweep, &ret_input->ranking, err);
}

void ranking_input_release(struct ranking_input *input)
{
    ranking_release(&input->ranking);
    for (size_t i = 0; i < input->view_count; i++)
        loop_summary_release(&input->summaries[i]);
    free(input->summaries);
    free(input->views);
    free(input->filter_names);
    cli_runs_close(&input->runs);
}

bool ranking_finds(const struct ranking *ranking)
{
    for (size_t i = 0; i < ranking->unranked_count; i++)
        if (ranking->unranked[i].why == UNRANKED_ONLY_NORMAL ||
            ranking->unranked[i].why == UNRANKED_ONLY_FAULTY)
            return true;
    return ranking_suspects(&ranking->threads) > 0;
}
