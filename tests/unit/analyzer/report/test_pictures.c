/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Heat maps, dendrograms, lattices and pages: well-formed, escaped, with as many shapes as there are things.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/dendrogram_picture.h"
#include "analyzer/picture/folded_names.h"
#include "analyzer/picture/heat_map.h"
#include "analyzer/picture/lattice_graph.h"
#include "analyzer/picture/layers.h"
#include "analyzer/report/html.h"
#include "tests/unit/analyzer/markup_check.h"
#include "tests/unit/analyzer/two_runs.h"

enum { MOST = 200 };

/* "0.0", "0.1" and so on; the second one is hostile. */
static const char *const *names(size_t count)
{
    static char texts[MOST][24];
    static const char *pointers[MOST];

    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof(texts[i]), i == 1 ? "<b>&\"'\x01" : "0.%zu", i);
        pointers[i] = texts[i];
    }
    return pointers;
}

/* ------------------------------------------------------------------------------------------ heat maps */

static char *heat_map(size_t count, enum heat_scale scale, double value, const size_t *rows, size_t row_count)
{
    struct similarity similarity = {count, calloc(similarity_size(count) + 1, sizeof(double))};
    bool marked[MOST] = {[2] = true};
    struct heat_map map = {&similarity, scale, names(count), marked, rows, row_count, "T", "D"};
    char *svg;

    for (size_t i = 0; i < similarity_size(count); i++)
        similarity.values[i] = value;
    svg = heat_map_svg(&map);
    cr_assert_not_null(svg);
    check_markup(svg);
    similarity_release(&similarity);
    return svg;
}

Test(heat_map, a_small_one_has_its_numbers)
{
    char *svg = heat_map(4, HEAT_SIMILARITY, 0.25, NULL, 0);

    cr_assert_eq(count_of(svg, "class=\"cell\""), 16);
    cr_assert_eq(count_of(svg, ">1</text>"), 4 + 1, "the diagonal, and the scale");
    cr_assert_eq(count_of(svg, ">.25</text>"), 12);
    cr_assert_eq(count_of(svg, "<title>0.0 and 0.3: 0.250</title>"), 1);
    cr_assert_eq(count_of(svg, "#ffea46"), 4 + 1, "cividis' brightest for 1");
    cr_assert_eq(count_of(svg, "font-weight=\"bold\""), 2, "the marked row and column");
    cr_assert_null(strstr(svg, "<b>"));
    cr_assert_not_null(strstr(svg, "&lt;b&gt;&amp;&quot;&#39;\xef\xbf\xbd"));
    free(svg);
}

Test(heat_map, changes_have_a_scale_of_their_size)
{
    char *small = heat_map(3, HEAT_CHANGE, 0.05, NULL, 0), *large = heat_map(3, HEAT_CHANGE, 0.8, NULL, 0);
    char *none = heat_map(3, HEAT_CHANGE, 0, NULL, 0);

    cr_assert_eq(count_of(small, ">0.1</text>"), 1);
    cr_assert_eq(count_of(large, ">0.1</text>"), 0);
    cr_assert_eq(count_of(large, ">0.75</text>"), 1);
    cr_assert_eq(count_of(none, ">0.75</text>"), 1);
    cr_assert_eq(count_of(large, ">0</text>"), 3 + 1, "the diagonal, and the scale");
    free(small);
    free(large);
    free(none);
}

Test(heat_map, rows_can_be_chosen)
{
    const size_t rows[] = {0, 3};
    char *svg = heat_map(4, HEAT_SIMILARITY, 0.5, rows, 2);

    cr_assert_eq(count_of(svg, "class=\"cell\""), 4);
    cr_assert_eq(count_of(svg, ">0.0</text>"), 2);
    cr_assert_eq(count_of(svg, ">0.2</text>"), 0);
    free(svg);
}

Test(heat_map, a_large_one_is_small)
{
    char *svg = heat_map(MOST, HEAT_SIMILARITY, 0.5, NULL, 0);

    cr_assert_eq(count_of(svg, "class=\"cell\""), 0);
    /* Each row's one cell of 1, and the two stretches beside it. */
    cr_assert_eq(count_of(svg, "v3h-"), MOST + 2 * MOST - 2);
    cr_assert_lt(strlen(svg), 30000);
    cr_assert_not_null(strstr(svg, ">0.2</text>"), "the marked row's name is there");
    free(svg);
}

Test(heat_map, nothing_and_one)
{
    for (size_t count = 0; count < 2; count++) {
        char *svg = heat_map(count, HEAT_CHANGE, 0, NULL, 0);

        cr_assert_eq(count_of(svg, "class=\"cell\""), count);
        free(svg);
    }
}

/* ------------------------------------------------------------------------------------------ dendrograms */

static char *dendrogram(size_t count, double distance, size_t most, size_t *ret_undrawn)
{
    struct linkage_merge *merges = calloc(count + 1, sizeof(*merges));
    struct dendrogram tree;
    bool marked[MOST] = {[2] = true};
    struct dendrogram_picture picture = {&tree, names(count), marked, most, "T", "D"};
    char *svg;

    /* A chain: each object joins all before it, a little further away. */
    for (size_t i = 0; i + 1 < count; i++)
        merges[i] = (struct linkage_merge){(uint32_t)(i ? i + 1 : 0), (uint32_t)(i ? count + i - 1 : 1),
                                           distance * (double)(i + 1), (uint32_t)(i + 2)};
    cr_assert_eq(dendrogram_build(merges, count, &tree), 0);
    svg = dendrogram_svg(&picture, ret_undrawn);
    cr_assert_not_null(svg);
    check_markup(svg);
    dendrogram_release(&tree);
    free(merges);
    return svg;
}

Test(dendrogram_picture, leaves_and_joins)
{
    size_t undrawn;
    char *svg = dendrogram(6, 0.1, 10, &undrawn);

    cr_assert_eq(undrawn, 0);
    cr_assert_eq(count_of(svg, "class=\"leaf\""), 6);
    cr_assert_eq(count_of(svg, "class=\"join\""), 5);
    cr_assert_eq(count_of(svg, "<title>6 threads, 0.5 apart</title>"), 1);
    cr_assert_eq(count_of(svg, "font-weight=\"bold\""), 1);
    cr_assert_null(strstr(svg, "<b>"));
    free(svg);
}

Test(dendrogram_picture, equal_ones_share_a_leaf)
{
    size_t undrawn;
    char *svg = dendrogram(40, 0, 10, &undrawn);

    cr_assert_eq(undrawn, 0);
    cr_assert_eq(count_of(svg, "class=\"leaf\""), 1);
    cr_assert_eq(count_of(svg, ">0.0 \xe2\x80\xa6 0.39 (40)</text>"), 1);
    free(svg);
}

Test(dendrogram_picture, of_large_ones_the_highest_merges)
{
    size_t undrawn;
    char *svg = dendrogram(100, 0.01, 5, &undrawn);

    cr_assert_eq(undrawn, 95);
    cr_assert_eq(count_of(svg, "class=\"leaf\""), 5);
    cr_assert_eq(count_of(svg, "class=\"join\""), 4);
    cr_assert_eq(count_of(svg, ">0.0 \xe2\x80\xa6 0.95 (96)</text>"), 1);
    cr_assert_eq(count_of(svg, "<title>100 threads, 0.99 apart</title>"), 1);
    cr_assert_eq(count_of(svg, "<title>97 threads, 0.96 apart</title>"), 1);
    free(svg);
}

Test(dendrogram_picture, one_object)
{
    size_t undrawn;
    char *svg = dendrogram(1, 0, 1, &undrawn);

    cr_assert_eq(count_of(svg, "class=\"leaf\""), 1);
    cr_assert_eq(count_of(svg, "class=\"join\""), 0);
    free(svg);
}

/* ------------------------------------------------------------------------------------------ lattices */

Test(layers, boxes_do_not_overlap_and_lie_below_each_other)
{
    struct layers_box boxes[] = {{.width = 80, .height = 30},
                                 {.width = 120, .height = 50},
                                 {.width = 60, .height = 20},
                                 {.width = 40, .height = 20}};
    struct layers_edge edges[] = {{0, 1, NULL}, {0, 2, NULL}, {1, 3, NULL}, {2, 3, NULL}};
    struct svg_point size;

    cr_assert_eq(layers_place(boxes, 4, edges, 4, &size), 0);
    cr_assert_lt(boxes[0].centre.y + 15, boxes[1].centre.y - 25);
    cr_assert_lt(boxes[1].centre.y + 25, boxes[3].centre.y - 10);
    cr_assert_geq(fabs(boxes[1].centre.x - boxes[2].centre.x), 60 + 30);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_geq(boxes[i].centre.x - boxes[i].width / 2, 0);
        cr_assert_leq(boxes[i].centre.x + boxes[i].width / 2, size.x);
        cr_assert_geq(boxes[i].centre.y - boxes[i].height / 2, 0);
        cr_assert_leq(boxes[i].centre.y + boxes[i].height / 2, size.y);
        cr_assert_eq(edges[i].path[0], 'M');
        cr_assert_not_null(strchr(edges[i].path, 'C'));
        free(edges[i].path);
    }
}

/* Thread i calls what texts[i] says, and the lattice is that of single entries. */
static struct lattice_drawn draw_lattice(const char *const *texts, size_t count, size_t most, double widest)
{
    char both[2][MOST_THREADS][LONGEST_TEXT] = {{""}};
    struct attribute_set sets[MOST_THREADS] = {{0}};
    uint32_t threads[MOST_THREADS];
    size_t first[MOST_THREADS + 1];
    struct attribute_table table = {0};
    struct lattice lattice;
    struct lattice_drawn drawn;
    struct loop_summary summary;
    struct lattice_graph graph = {&lattice, &table, &summary, names(count), threads,
                                  first,    most,   widest,   "T",          "D"};

    for (size_t i = 0; i < count; i++)
        snprintf(both[0][i], LONGEST_TEXT, "%s", texts[i]);
    memcpy(both[1], both[0], sizeof(both[1]));
    summary = two_runs(both, count);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(attribute_set_of(&table, (struct attribute_kind){ATTRIBUTE_SINGLE, FREQUENCY_NONE},
                                      &summary.runs[0].threads[i].loops, &sets[i]),
                     0);
        threads[i] = (uint32_t)i;
        first[i] = i;
    }
    first[count] = count;
    cr_assert_eq(lattice_of_sets(sets, count, LATTICE_DEFAULT_LIMIT, &lattice), 0);
    cr_assert_eq(lattice_graph_draw(&graph, &drawn), 0);
    check_markup(drawn.svg);
    for (size_t i = 0; i < count; i++)
        attribute_set_release(&sets[i]);
    lattice_release(&lattice);
    attribute_table_release(&table);
    loop_summary_release(&summary);
    return drawn;
}

Test(lattice_graph, boxes_name_what_is_new)
{
    const char *const texts[] = {"AB", "AB", "AC"};
    struct lattice_drawn drawn = draw_lattice(texts, 3, 40, 1000);

    /* A; AB with the first two threads, AC with the third, and ABC with none. */
    cr_assert_eq(drawn.drawn, 4);
    cr_assert_eq(drawn.least, 0);
    cr_assert_eq(count_of(drawn.svg, "class=\"concept\""), 4);
    cr_assert_eq(count_of(drawn.svg, ">A</text>"), 1);
    cr_assert_eq(count_of(drawn.svg, ">B</text>"), 1);
    cr_assert_eq(count_of(drawn.svg, ">0.2</text>"), 1);
    cr_assert_eq(count_of(drawn.svg, ">0.0, &lt;b&gt;&amp;&quot;&#39;\xef\xbf\xbd</text>"), 1);
    cr_assert_eq(count_of(drawn.svg, "<title>C0: 3 threads share 1 attribute</title>"), 1);
    free(drawn.svg);
}

Test(lattice_graph, of_large_ones_the_top)
{
    const char *const texts[] = {"ABC", "ABD", "ABE", "ACD", "ACE", "ADE"};
    struct lattice_drawn all = draw_lattice(texts, 6, 40, 10000);
    struct lattice_drawn some = draw_lattice(texts, 6, 6, 10000);

    cr_assert_eq(count_of(all.svg, "class=\"concept\""), all.drawn);
    cr_assert_gt(all.drawn, 6);
    /* A with all six threads, and AB, AC, AD and AE with three each; the other concepts have one. */
    cr_assert_eq(some.drawn, 5);
    cr_assert_eq(some.least, 2);
    cr_assert_eq(count_of(some.svg, "class=\"concept\""), 5);
    free(all.svg);
    free(some.svg);
}

Test(lattice_graph, too_wide_ones_are_made_smaller)
{
    const char *const texts[] = {"AB", "AC", "AD", "AE", "AG", "AH", "AJ", "AL", "AM", "AN", "AO", "AP"};
    struct lattice_drawn wide = draw_lattice(texts, 12, 40, 10000);
    struct lattice_drawn narrow = draw_lattice(texts, 12, 40, 100);

    cr_assert_eq(wide.drawn, 14);
    cr_assert_lt(narrow.drawn, wide.drawn);
    free(wide.svg);
    free(narrow.svg);
}

/* ------------------------------------------------------------------------------------------ names */

static void expect_names(const uint32_t *objects, size_t count, const char *name, const char *ranges)
{
    char *got_name = folded_name(names(50), objects, count);
    char *got_ranges = folded_ranges(names(50), objects, count, 3);

    cr_assert_str_eq(got_name, name);
    cr_assert_str_eq(got_ranges, ranges);
    free(got_name);
    free(got_ranges);
}

Test(folded_names, ranges)
{
    expect_names((uint32_t[]){7}, 1, "0.7", "0.7");
    expect_names((uint32_t[]){7, 8}, 2, "0.7, 0.8", "0.7, 0.8");
    expect_names((uint32_t[]){7, 8, 9}, 3, "0.7 \xe2\x80\xa6 0.9 (3)", "0.7 \xe2\x80\xa6 0.9");
    expect_names((uint32_t[]){2, 4, 5, 6, 9, 20, 21}, 7, "0.2, 0.4, \xe2\x80\xa6 (7)",
                 "0.2, 0.4 \xe2\x80\xa6 0.6, 0.9 and 2 more");
}

/* ------------------------------------------------------------------------------------------ pages */

Test(html, texts_are_escaped_and_elements_ended)
{
    static const char *const titles[] = {"Name", ">Number"};
    struct html_table table;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    html_begin(out, "<title>", "p { color: black; }\n");
    html_section_begin(out, "one", "a & b");
    html_paragraph(out, "note", "%s", "<script>alert('x')</script>");
    html_list_begin(out);
    html_list_item(out, "%d < %d", 1, 2);
    html_list_end(out);
    html_table_begin(&table, out, "<caption>", titles, 2);
    table.row_class = "suspect";
    html_cell(&table, "<i>");
    html_cell_count(&table, 1234567);
    html_cell_format(&table, "%s", "\"&\"");
    html_cell_share(&table, 1.05);
    html_table_end(&table);
    html_section_end(out);
    html_end(out);
    fclose(out);
    check_markup(text);
    cr_assert_null(strstr(text, "<script"));
    cr_assert_null(strstr(text, "<i>"));
    cr_assert_not_null(strstr(text,
                              "<tr class=\"suspect\"><th scope=\"row\">&lt;i&gt;</th><td "
                              "class=\"right\">1,234,567</td></tr>"));
    cr_assert_not_null(strstr(text, "width:100.0%"));
    cr_assert_not_null(strstr(text, " 1.050</td>"));
    free(text);
}
