/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Leaf i is on line 2i, join i on line 2i + 1; so each line belongs to one of them. It has a horizontal
 * stroke from where it is drawn to the column of the join above it in the tree, where a vertical one begins
 * or ends. All that has to be kept from line to line is how many vertical strokes pass through each column.
 */
#include "cli/cluster/dendrogram_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/output.h"

enum { UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8 };

/* By the strokes that meet in a character. */
static const char *const unicode[16] = {" ", "│", "│", "│", "─", "┘", "┐", "┤",
                                        "─", "└", "┌", "├", "─", "┴", "┬", "┼"};
static const char *const plain[16] = {" ", "|", "|", "|", "-", "+", "+", "+",
                                      "-", "+", "+", "+", "-", "+", "+", "+"};

enum { LEAST_NAMES = 8, MOST_NAMES = 40, LEAST_TREE = 20, MOST_TREE = 80, DISTANCE = 12 };

struct picture {
    const struct dendrogram *dendrogram;
    const char *const *names;
    const char *const *strokes;
    size_t name_width, tree_width;
    uint32_t *parents; /* by join */
    uint32_t *passing; /* by column: vertical strokes */
};

/* What a line shows: where its stroke begins, where it ends, and whether the vertical one there begins or
 * ends. */
struct line {
    size_t from, to;
    bool begins, ends;
};

static size_t column_of(const struct picture *picture, uint32_t join)
{
    const struct dendrogram *dendrogram = picture->dendrogram;
    double highest = dendrogram->joins[dendrogram->root].height;

    return 1 + (size_t)(dendrogram->joins[join].height / highest * (double)(picture->tree_width - 2));
}

/* Blanks at the end are printed only where something follows. */
static void print_strokes(struct picture *picture, const struct line *line, bool fill)
{
    int blanks = 1;

    for (size_t column = 0; column < picture->tree_width; column++) {
        unsigned strokes = picture->passing[column] ? UP : 0;

        if (column == line->to && line->begins)
            picture->passing[column]++;
        if (column == line->to && line->ends)
            picture->passing[column]--;
        strokes |= picture->passing[column] ? DOWN : 0;
        if (column >= line->from && column < line->to)
            strokes |= RIGHT;
        if ((column > line->from || !line->from) && column <= line->to)
            strokes |= LEFT;
        if (strokes) {
            text_print(stdout, "%*s%s", blanks, "", picture->strokes[strokes]);
            blanks = 0;
        } else {
            blanks++;
        }
    }
    if (fill)
        text_print(stdout, "%*s", blanks, "");
}

/* The names of a leaf's objects, as many as fit, in exactly name_width columns. */
static void print_names(const struct picture *picture, size_t leaf)
{
    const struct dendrogram *dendrogram = picture->dendrogram;
    size_t first = dendrogram->starts[leaf], end = dendrogram->starts[leaf + 1];
    char text[MOST_NAMES + 1] = "", tail[40] = "", more[8] = "";
    size_t used = 0;

    if (end - first > 1)
        snprintf(tail, sizeof(tail), " (%zu)", end - first);
    for (size_t i = first; i < end; i++) {
        const char *name = picture->names[dendrogram->objects[i]];
        size_t needed = strlen(name) + (i > first ? 2 : 0);
        size_t reserved = strlen(tail) + (i + 1 < end ? strlen(", ...") : 0);

        if (i > first && used + needed + reserved > picture->name_width) {
            snprintf(more, sizeof(more), ", ...");
            break;
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i > first ? ", " : "", name);
        if (used >= sizeof(text))
            used = sizeof(text) - 1;
    }
    used = (size_t)text_print(stdout, "%s%s%s", text, more, tail);
    text_print(stdout, "%*s", used < picture->name_width ? (int)(picture->name_width - used) : 0, "");
}

static struct line leaf_line(const struct picture *picture, size_t leaf)
{
    const struct dendrogram *dendrogram = picture->dendrogram;
    struct line line = {0};

    if (leaf + 1 < dendrogram->leaf_count && dendrogram->joins[leaf].upper == DENDROGRAM_LEAF) {
        line.to = column_of(picture, (uint32_t)leaf);
        line.begins = true;
    } else if (leaf > 0) {
        line.to = column_of(picture, (uint32_t)leaf - 1);
        line.ends = true;
    }
    return line;
}

static struct line join_line(const struct picture *picture, uint32_t join)
{
    uint32_t parent = picture->parents[join];
    struct line line = {.from = column_of(picture, join)};

    line.to = line.from;
    if (join == picture->dendrogram->root)
        return line;
    line.to = column_of(picture, parent);
    line.begins = parent > join;
    line.ends = parent < join;
    return line;
}

static void find_parents(struct picture *picture)
{
    const struct dendrogram *dendrogram = picture->dendrogram;

    for (uint32_t join = 0; join + 1 < dendrogram->leaf_count; join++) {
        if (dendrogram->joins[join].upper != DENDROGRAM_LEAF)
            picture->parents[dendrogram->joins[join].upper] = join;
        if (dendrogram->joins[join].lower != DENDROGRAM_LEAF)
            picture->parents[dendrogram->joins[join].lower] = join;
    }
}

static size_t clamp(size_t value, size_t low, size_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* As much for the names as the longest needs, and the rest for the tree. */
static void choose_widths(struct picture *picture, size_t width)
{
    const struct dendrogram *dendrogram = picture->dendrogram;
    size_t needed = 0, most = clamp(width / 3, LEAST_NAMES, MOST_NAMES);

    for (size_t leaf = 0; leaf < dendrogram->leaf_count; leaf++) {
        size_t begin = dendrogram->starts[leaf], end = dendrogram->starts[leaf + 1], length = 0;
        char tail[40];

        for (size_t i = begin; i < end && length < most; i++)
            length += strlen(picture->names[dendrogram->objects[i]]) + (i > begin ? 2 : 0);
        if (end - begin > 1)
            length += (size_t)snprintf(tail, sizeof(tail), " (%zu)", end - begin);
        needed = length > needed ? length : needed;
    }
    picture->name_width = clamp(needed, 0, most);
    width = width > picture->name_width + DISTANCE ? width - picture->name_width - DISTANCE : 0;
    picture->tree_width = clamp(width, LEAST_TREE, MOST_TREE);
}

int dendrogram_print(const struct dendrogram *dendrogram, const char *const *names, size_t width, bool ascii)
{
    AUTO_FREE uint32_t *parents = calloc(dendrogram->leaf_count + 1, sizeof(*parents));
    AUTO_FREE uint32_t *passing = calloc(MOST_TREE, sizeof(*passing));
    struct picture picture = {.dendrogram = dendrogram,
                              .names = names,
                              .strokes = ascii ? plain : unicode,
                              .parents = parents,
                              .passing = passing};

    if (!parents || !passing)
        return -ENOMEM;
    choose_widths(&picture, width);
    find_parents(&picture);
    for (size_t leaf = 0; leaf < dendrogram->leaf_count && !cli_output_broken(); leaf++) {
        struct line line = leaf_line(&picture, leaf);

        print_names(&picture, leaf);
        if (dendrogram->leaf_count > 1)
            print_strokes(&picture, &line, false);
        putchar('\n');
        if (leaf + 1 == dendrogram->leaf_count)
            break;
        line = join_line(&picture, (uint32_t)leaf);
        text_print(stdout, "%*s", (int)picture.name_width, "");
        print_strokes(&picture, &line, true);
        text_print(stdout, " %.6g\n", dendrogram->joins[leaf].distance);
    }
    return 0;
}
