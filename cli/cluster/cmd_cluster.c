/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl cluster: which threads of a run belong together, as a dendrogram. */
#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <sys/ioctl.h>

#include "analyzer/cluster/linkage.h"
#include "analyzer/cluster/similarity.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/cluster/dendrogram_text.h"
#include "cli/cluster/objects.h"
#include "cli/common/command.h"

enum { KEY_LINKAGE = 0x300, KEY_CLUSTERS, DEFAULT_WIDTH = 100 };

struct cluster_arguments {
    struct objects_arguments objects;
    enum linkage_method method;
    size_t clusters; /* 0: not asked for */
};

static const struct argp_option options[] = {
    {"linkage", KEY_LINKAGE, "NAME", 0,
     "Linkage, the distance between clusters: single, complete, average, weighted, centroid, median or "
     "ward (default ward)",
     0},
    {"clusters", KEY_CLUSTERS, "N", 0, "Print the N clusters that exist before the last N - 1 merges", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct cluster_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        arguments->method = LINKAGE_WARD;
        state->child_inputs[0] = &arguments->objects;
        return 0;
    case KEY_LINKAGE:
        if (linkage_parse(arg, &arguments->method) < 0)
            argp_error(
                state,
                "--linkage must be single, complete, average, weighted, centroid, median or ward, not '%s'",
                arg);
        return 0;
    case KEY_CLUSTERS:
        arguments->clusters = cli_parse_number(state, "--clusters", arg, 1, LINKAGE_MAX_COUNT);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ------------------------------------------------------------------------------------------ clustering */

struct clustering {
    struct linkage_merge *merges; /* one fewer than objects */
    uint32_t *labels;             /* the flat cluster of each object; NULL: not asked for */
};

static void clustering_release(struct clustering *clustering)
{
    free(clustering->merges);
    free(clustering->labels);
}

static int cut(const struct cluster_arguments *arguments, const struct objects *objects,
               struct clustering *clustering, struct error *err)
{
    if (!arguments->clusters)
        return 0;
    if (arguments->clusters > objects->count)
        return error_say(err, -EINVAL, "cannot make %zu clusters of run %s: it has %zu %s",
                         arguments->clusters, arguments->objects.run, objects->count,
                         cli_objects_key(objects));
    clustering->labels = malloc(objects->count * sizeof(*clustering->labels));
    if (!clustering->labels)
        return error_no_memory(err);
    if (linkage_cut(clustering->merges, objects->count, arguments->clusters, clustering->labels) < 0)
        return error_no_memory(err);
    return 0;
}

/* Release `ret_clustering` also after a failure. */
static int make_clusters(const struct cluster_arguments *arguments, const struct objects *objects,
                         struct clustering *ret_clustering, struct error *err)
{
    CLEANUP(similarity_release) struct similarity similarity = {0};
    int r = similarity_of_sets(objects->sets, objects->count, &similarity);

    ret_clustering->merges = calloc(objects->count + 1, sizeof(*ret_clustering->merges));
    if (r < 0 || !ret_clustering->merges)
        return error_no_memory(err);
    for (size_t i = 0; i < similarity_size(objects->count); i++)
        similarity.values[i] = 1 - similarity.values[i];
    r = linkage_of(arguments->method, objects->count, similarity.values, ret_clustering->merges);
    if (r < 0)
        return error_set(err, r, NULL, "clustering the %s of run %s", cli_objects_key(objects),
                         arguments->objects.run);
    return cut(arguments, objects, ret_clustering, err);
}

/* ------------------------------------------------------------------------------------------ output */

/* SciPy's linkage matrix. */
static json_t *merges_json(const struct linkage_merge *merges, size_t count)
{
    json_t *rows = json_array();

    for (size_t i = 0; i + 1 < count; i++) {
        json_t *row = json_array();

        json_array_append_new(row, json_integer(merges[i].a));
        json_array_append_new(row, json_integer(merges[i].b));
        json_array_append_new(row, json_real(merges[i].distance));
        json_array_append_new(row, json_integer(merges[i].size));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *clusters_json(const struct objects *objects, const uint32_t *labels)
{
    json_t *clusters = json_array();

    for (size_t i = 0; i < objects->count; i++) {
        if (labels[i] == json_array_size(clusters))
            json_array_append_new(clusters, json_array());
        json_array_append_new(json_array_get(clusters, labels[i]), cli_json_text(objects->labels[i]));
    }
    return clusters;
}

static void print_json(const struct cluster_arguments *arguments, const struct loops_input *input,
                       const struct objects *objects, const struct clustering *clustering)
{
    const struct run_loops *run = &input->summary.runs[0];
    AUTO_JSON json_t *document = json_object();

    json_object_set_new(document, "run", json_integer(run->run_id));
    json_object_set_new(document, "attributes", json_string(attribute_kind_name(arguments->objects.kind)));
    json_object_set_new(document, "linkage", json_string(linkage_name(arguments->method)));
    json_object_set_new(document, cli_objects_key(objects), cli_objects_labels(objects));
    json_object_set_new(document, "merges", merges_json(clustering->merges, objects->count));
    json_object_set_new(document, "clusters",
                        clustering->labels ? clusters_json(objects, clustering->labels) : json_null());
    json_object_set_new(document, "unknown", cli_objects_json_unknown(run));
    json_object_set_new(document, "completeness", completeness_json(input->completeness, 1));
    cli_json_print(document);
}

static size_t line_width(void)
{
    struct winsize size;

    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        return size.ws_col;
    return DEFAULT_WIDTH;
}

static int print_tree(const struct objects *objects, const struct clustering *clustering, struct error *err)
{
    CLEANUP(dendrogram_release) struct dendrogram dendrogram = {0};
    int r = dendrogram_build(clustering->merges, objects->count, &dendrogram);

    setlocale(LC_CTYPE, "");
    if (r == 0)
        r = dendrogram_print(&dendrogram, (const char *const *)objects->labels, line_width(),
                             strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
    return r < 0 ? error_no_memory(err) : 0;
}

static void print_clusters(const struct objects *objects, const struct clustering *clustering,
                           size_t clusters)
{
    AUTO_JSON json_t *members = clusters_json(objects, clustering->labels);

    for (size_t i = 0; i < clusters && !cli_output_broken(); i++) {
        const json_t *cluster = json_array_get(members, i);

        fputs(i ? "" : "\n", stdout);
        text_print(stdout, "cluster %zu (%zu): ", i + 1, json_array_size(cluster));
        for (size_t j = 0; j < json_array_size(cluster); j++)
            text_print(stdout, "%s%s", j ? ", " : "", json_string_value(json_array_get(cluster, j)));
        putchar('\n');
    }
}

static int print_text(const struct cluster_arguments *arguments, const struct loops_input *input,
                      const struct objects *objects, const struct clustering *clustering, struct error *err)
{
    int r;

    text_print(stdout, "run %" PRId64 ": %zu %s by %s, %s linkage\n\n", input->summary.runs[0].run_id,
               objects->count, cli_objects_key(objects), attribute_kind_name(arguments->objects.kind),
               linkage_name(arguments->method));
    r = print_tree(objects, clustering, err);
    if (r == 0 && clustering->labels)
        print_clusters(objects, clustering, arguments->clusters);
    if (r == 0)
        cli_objects_print_unknown(input);
    return r;
}

/* ------------------------------------------------------------------------------------------ the command */

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN",
    .doc =
        "Cluster the threads of a run by similarity: repeatedly merge the two nearest clusters and draw "
        "the tree. The distance of two threads is 1 minus their similarity (tracectl jsm).\vThe tree is "
        "drawn from the threads on the left to the last merge on the right; the number in a line is the "
        "distance at that merge. Threads of distance 0 share a line. Ward linkage keeps clusters "
        "compact, so that an outlier is merged last; the DiffTrace papers used it to find faulty "
        "threads. Its distances can exceed 1. The merges of --json are the rows of SciPy's "
        "linkage matrix.",
    .children = cli_objects_children,
};

static int run(int argc, char **argv)
{
    CLEANUP(cli_loops_release) struct loops_input input = {0};
    CLEANUP(cli_objects_release) struct objects objects = {0};
    CLEANUP(clustering_release) struct clustering clustering = {0};
    struct cluster_arguments arguments = {0};
    struct error err = {0};
    int r;

    cli_parse(&cmd_cluster, argc, argv, &arguments);
    r = cli_objects_read(&arguments.objects, &input, &objects, &err);
    if (r < 0)
        return cli_loops_fail(r, &err);
    r = make_clusters(&arguments, &objects, &clustering, &err);
    if (r == 0 && cli.json)
        print_json(&arguments, &input, &objects, &clustering);
    else if (r == 0)
        r = print_text(&arguments, &input, &objects, &clustering, &err);
    return r < 0 ? cli_fail(&err) : cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_cluster = {
    .name = "cluster",
    .summary = "cluster the threads of a run by similarity",
    .argp = &argp,
    .examples =
        "Print the dendrogram of the threads of a run:\n"
        "  tracectl cluster latest\n"
        "Split the threads into two clusters:\n"
        "  tracectl cluster latest --clusters 2\n",
    .run = run,
};
