/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which groups of threads have what in common. */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/picture/lattice_graph.h"
#include "analyzer/report/parts.h"
#include "base/cleanup.h"
#include "base/error.h"

/* With twelve objects a lattice has at most 4,096 concepts. */
enum { MOST_CONCEPTS = 20000, MOST_DRAWN = 40, FEW_OBJECTS = 12 };

#define WIDEST 1400.0

/* The groups that are a lattice's objects: all of the report, or a few. */
struct objects {
    struct attribute_set *sets; /* borrowed ones */
    uint32_t *threads;
    size_t *first, count;
};

static void objects_release(struct objects *objects)
{
    free(objects->sets);
    free(objects->threads);
    free(objects->first);
    *objects = (struct objects){0};
}

static int choose_objects(const struct report *report, size_t run, size_t most, struct objects *ret_objects)
{
    const struct report_objects *all = &report->objects;
    AUTO_FREE size_t *groups = report_objects_choose(all, most, &ret_objects->count);
    size_t threads = 0;

    ret_objects->sets = calloc(all->group_count + 1, sizeof(*ret_objects->sets));
    ret_objects->threads = calloc(all->count + 1, sizeof(*ret_objects->threads));
    ret_objects->first = calloc(all->group_count + 1, sizeof(*ret_objects->first));
    if (!groups || !ret_objects->sets || !ret_objects->threads || !ret_objects->first)
        return -ENOMEM;
    for (size_t i = 0; i < ret_objects->count; i++) {
        size_t group = groups[i];

        ret_objects->sets[i] = all->sets[run * all->group_count + group];
        ret_objects->first[i] = threads;
        for (size_t j = all->first[group]; j < all->first[group + 1]; j++)
            ret_objects->threads[threads++] = all->threads[j];
    }
    ret_objects->first[ret_objects->count] = threads;
    return 0;
}

static void print_drawn(struct report *report, const struct lattice *lattice,
                        const struct lattice_drawn *drawn, const char *title, bool few)
{
    char part[256] = "", objects[160] = "";

    if (drawn->drawn < lattice->count)
        snprintf(part, sizeof(part),
                 " Drawn are the %zu with at least %zu threads: the top of the lattice. tracectl "
                 "lattice lists all.",
                 drawn->drawn, drawn->least);
    if (few)
        snprintf(objects, sizeof(objects),
                 " Only for the %d rows that %s: the lattice of all threads has more than %d concepts.",
                 FEW_OBJECTS, report_compares(report) ? "changed most" : "come first", MOST_CONCEPTS);
    html_figure(report->out, drawn->svg, "%s: %zu concept%s.%s%s", title, lattice->count,
                lattice->count == 1 ? "" : "s", part, objects);
}

static int print_lattice(struct report *report, size_t run, const char *title, struct error *err)
{
    CLEANUP(objects_release) struct objects objects = {0};
    CLEANUP(lattice_release) struct lattice lattice = {0};
    struct lattice_drawn drawn = {0};
    struct lattice_graph graph = {
        .lattice = &lattice,
        .attributes = &report->objects.table,
        .summary = report->input->summary,
        .names = report->objects.names,
        .most = MOST_DRAWN,
        .widest = WIDEST,
        .title = title,
        .description =
            "Boxes are concepts. A box names the attributes that its threads share in addition to those "
            "of the boxes above it, and in bold the threads that are in no box below it.",
    };
    int r = choose_objects(report, run, SIZE_MAX - 1, &objects);
    bool few = false;

    if (r == 0)
        r = lattice_of_sets(objects.sets, objects.count, MOST_CONCEPTS, &lattice);
    if (r == -E2BIG) {
        few = true;
        objects_release(&objects);
        r = choose_objects(report, run, FEW_OBJECTS, &objects);
        if (r == 0)
            r = lattice_of_sets(objects.sets, objects.count, MOST_CONCEPTS, &lattice);
    }
    graph.threads = objects.threads;
    graph.first = objects.first;
    if (r == 0)
        r = lattice_graph_draw(&graph, &drawn);
    if (r == -EIO) {
        html_paragraph(report->out, "note",
                       "%s: not drawn because Graphviz is not completely installed (try dot -c as root).",
                       title);
        return 0;
    }
    if (r < 0)
        return error_set(err, r, NULL, "drawing the concept lattice");
    print_drawn(report, &lattice, &drawn, title, few);
    free(drawn.svg);
    return 0;
}

int report_lattices(struct report *report, struct error *err)
{
    size_t last = report->input->run_count - 1;
    int r;

    if (!report->objects.count) {
        html_paragraph(report->out, NULL, "There are no threads for a lattice.");
        return 0;
    }
    html_paragraph(
        report->out, NULL,
        "Each box is a group of threads together with everything they have in common. It names what its "
        "threads share in addition to the boxes above it; threads are in bold in the lowest box that "
        "contains them. L0, L1 and so on are the loops in the table at the end.");
    html_side_by_side_begin(report->out);
    r = print_lattice(report, 0, last ? "Concept lattice of the baseline run" : "Concept lattice", err);
    if (r == 0 && last)
        r = print_lattice(report, last, "Concept lattice of the candidate run", err);
    html_side_by_side_end(report->out);
    return r;
}
