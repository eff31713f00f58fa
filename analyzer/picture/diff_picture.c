/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/diff_picture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cluster/entry_text.h"
#include "analyzer/diff/diff_rows.h"
#include "analyzer/symbols/short_names.h"
#include "base/cleanup.h"

#define MARGIN 20.0
#define PICTURE_WIDTH 800.0
#define COLUMN 300.0 /* of one run; the stem takes both, and what is between them */
#define BETWEEN 60.0
#define ROW 24.0
#define ROW_GAP 8.0
#define TEXT_DROP 4.5 /* from the middle of a block to its base line */
#define SIGN_ROOM 22.0
#define NAME_WIDTH 34 /* characters of a name in a column */
#define CONTEXT 3
#define HATCH "unknown-hatch"
#define NEVER_RETURNED "never returned"

/* Okabe and Ito's colours, which look different to colour-blind people too, on light tints of them. */
enum look { LOOK_COMMON, LOOK_NORMAL, LOOK_FAULTY, LOOK_UNKNOWN, LOOK_FOLDED };

static const struct {
    const char *name, *sign, *css_class, *meaning;
    struct svg_style style;
} looks[] = {
    [LOOK_COMMON] = {"both runs",
                     "=",
                     "common",
                     "in both runs",
                     {.fill = "#e3f3ec", .stroke = "#00664b", .stroke_width = 1}},
    [LOOK_NORMAL] = {"baseline run only",
                     "\xe2\x88\x92",
                     "normal",
                     "only in the baseline run",
                     {.fill = "#deedf8", .stroke = "#0072b2", .stroke_width = 1.5, .dashes = "5 3"}},
    [LOOK_FAULTY] = {"candidate run only",
                     "+",
                     "faulty",
                     "only in the candidate run",
                     {.fill = "#fce6d8", .stroke = "#b34700", .stroke_width = 3}},
    [LOOK_UNKNOWN] = {"unknown: events are missing",
                      "?",
                      "unknown",
                      "unknown: events are missing here",
                      {.fill = "url(#" HATCH ")", .stroke = "#555555", .stroke_width = 1, .dashes = "1 2"}},
    [LOOK_FOLDED] = {NULL, "", "folded", NULL, {.stroke = "none"}},
};

void diff_picture_prepare(struct svg *svg)
{
    svg_hatch(svg, HATCH, "#ffffff", "#e0e0e0");
}

/* ------------------------------------------------------------------------------------------ texts */

/* What the pointer shows of a block: everything in full. */
static char *block_title(const struct loop_summary *summary, const struct nlr_element *element,
                         enum look look, const char *text)
{
    AUTO_FREE char *body = element->kind == NLR_LOOP ? loop_body_text(summary, element->id) : NULL;
    char *title = NULL;

    if (asprintf(&title, "%s%s%s%s, %s", text, body ? " = [" : "", body ? body : "", body ? "]" : "",
                 looks[look].meaning) < 0)
        return NULL;
    return title;
}

/* ------------------------------------------------------------------------------------------ blocks */

struct drawing {
    struct svg *svg;
    const struct loop_summary *summary;
    const struct thread_diff *thread;
    double x;
};

static void draw_box(struct svg *svg, const struct svg_box *box, enum look look, const char *text)
{
    static const struct svg_font sign = {.size = 15, .bold = true};
    static const struct svg_font plain = {.monospace = true, .anchor = SVG_MIDDLE};
    struct svg_style style = looks[look].style;
    double base_line = box->y + box->height / 2 + TEXT_DROP;

    style.radius = 3;
    svg_rect(svg, box, &style);
    svg_text(svg, (struct svg_point){box->x + 7, base_line}, looks[look].sign, &sign);
    svg_text(svg, (struct svg_point){box->x + SIGN_ROOM / 2 + box->width / 2, base_line}, text, &plain);
}

static bool never_returned(const struct thread_loops *side, size_t at)
{
    return side->last_call == LAST_CALL_OPEN && at + 1 == side->loops.count;
}

/* A cross beside a block, and the words: the thread is still in there. */
static void draw_hang(struct svg *svg, const struct svg_box *box)
{
    static const struct svg_style stroke = {.stroke = "#000000", .stroke_width = 2.5};
    static const struct svg_font bold = {.size = 11, .bold = true};
    double x = box->x + 8, y = box->y + box->height + 9;

    svg_line(svg, (struct svg_point){x - 4, y - 4}, (struct svg_point){x + 4, y + 4}, &stroke);
    svg_line(svg, (struct svg_point){x - 4, y + 4}, (struct svg_point){x + 4, y - 4}, &stroke);
    svg_text(svg, (struct svg_point){x + 10, y + 4}, NEVER_RETURNED, &bold);
}

static int draw_entry(const struct drawing *drawing, bool faulty, size_t at, const struct svg_box *box,
                      enum look look)
{
    const struct thread_loops *side = faulty ? drawing->thread->faulty : drawing->thread->normal;
    const struct nlr_element *element = &side->loops.elements[at];
    size_t width = look == LOOK_COMMON ? 2 * NAME_WIDTH : NAME_WIDTH;
    char name[SHORT_NAME_SIZE(2 * NAME_WIDTH)];
    AUTO_FREE char *text = entry_text(drawing->summary, element);
    AUTO_FREE char *title = text ? block_title(drawing->summary, element, look, text) : NULL;

    if (!text || !title)
        return -ENOMEM;
    name_shorten(text, width, name, sizeof(name));
    svg_begin_group(drawing->svg, looks[look].css_class, title);
    draw_box(drawing->svg, box, look, name);
    svg_end_group(drawing->svg);
    return 0;
}

static enum look look_of(const struct diff_row *row, bool faulty)
{
    if (row->kind == ROW_UNKNOWN)
        return LOOK_UNKNOWN;
    return faulty ? LOOK_FAULTY : LOOK_NORMAL;
}

/* Between two loops that are the same, or nearly so: one run's became the other's. */
static void draw_arrow(const struct drawing *drawing, const struct diff_row *row, double y)
{
    static const struct svg_style line = {.stroke = "#333333", .stroke_width = 1.5};
    static const struct svg_style head = {.fill = "#333333"};
    static const struct svg_font small = {.size = 9, .anchor = SVG_MIDDLE};
    double from = drawing->x + COLUMN + 6, to = drawing->x + COLUMN + BETWEEN - 6, middle = y + ROW / 2;
    char commands[96];

    snprintf(commands, sizeof(commands), "M%d %d l-7 -4 v8 z", (int)to, (int)middle);
    svg_line(drawing->svg, (struct svg_point){from, middle}, (struct svg_point){to - 6, middle}, &line);
    svg_path(drawing->svg, commands, &head);
    svg_text(drawing->svg, (struct svg_point){(from + to) / 2, middle - 4},
             row->loop->same ? "same loop" : "similar", &small);
}

/* Returns the height that the row takes, or -ENOMEM. */
static int draw_row(const struct drawing *drawing, const struct diff_row *row, double y, double *ret_height)
{
    struct svg_box stem = {drawing->x, y, 2 * COLUMN + BETWEEN, ROW};
    struct svg_box left = {drawing->x, y, COLUMN, ROW};
    struct svg_box right = {drawing->x + COLUMN + BETWEEN, y, COLUMN, ROW};
    bool hangs[2] = {row->normal != DIFF_NO_ENTRY && never_returned(drawing->thread->normal, row->normal),
                     row->faulty != DIFF_NO_ENTRY && never_returned(drawing->thread->faulty, row->faulty)};
    char text[64];
    int r = 0;

    if (row->kind == ROW_FOLDED) {
        snprintf(text, sizeof(text), "... %zu equal entries ...", row->folded);
        draw_box(drawing->svg, &stem, LOOK_FOLDED, text);
    } else if (row->kind == ROW_COMMON) {
        r = draw_entry(drawing, false, row->normal, &stem, LOOK_COMMON);
    } else {
        if (row->normal != DIFF_NO_ENTRY)
            r = draw_entry(drawing, false, row->normal, &left, look_of(row, false));
        if (!r && row->faulty != DIFF_NO_ENTRY)
            r = draw_entry(drawing, true, row->faulty, &right, look_of(row, true));
        if (row->loop)
            draw_arrow(drawing, row, y);
    }
    if (hangs[0])
        draw_hang(drawing->svg, &left);
    if (hangs[1])
        draw_hang(drawing->svg, &right);
    *ret_height = ROW + (hangs[0] || hangs[1] ? ROW_GAP + 8 : 0);
    return r;
}

/* From a row to the one below it, where both have a block. */
static void draw_joints(const struct drawing *drawing, const struct diff_row *above,
                        const struct diff_row *below, double y)
{
    static const struct svg_style line = {.stroke = "#888888", .stroke_width = 1};

    for (int faulty = 0; faulty < 2; faulty++) {
        bool has_above = (faulty ? above->faulty : above->normal) != DIFF_NO_ENTRY;
        bool has_below = (faulty ? below->faulty : below->normal) != DIFF_NO_ENTRY;
        double x = drawing->x + COLUMN / 2 + (faulty ? COLUMN + BETWEEN : 0);

        if (has_above && has_below)
            svg_line(drawing->svg, (struct svg_point){x, y - ROW_GAP}, (struct svg_point){x, y}, &line);
    }
}

int diff_picture_draw(struct svg *svg, struct svg_point at, const struct loop_summary *summary,
                      const struct thread_diff *thread, bool full, struct svg_point *ret_size)
{
    CLEANUP(diff_rows_release) struct diff_rows rows = {0};
    struct drawing drawing = {svg, summary, thread, at.x};
    double y = at.y;
    int r = diff_rows(&thread->diff, full ? DIFF_NO_ENTRY : CONTEXT, &rows);

    for (size_t i = 0; i < rows.count && !r; i++) {
        double height = 0;

        if (i)
            draw_joints(&drawing, &rows.rows[i - 1], &rows.rows[i], y);
        r = draw_row(&drawing, &rows.rows[i], y, &height);
        y += height + ROW_GAP;
    }
    if (r)
        return r;
    *ret_size = (struct svg_point){2 * COLUMN + BETWEEN, y - at.y};
    return 0;
}

/* ------------------------------------------------------------------------------------------ the document */

/* A sample of each look with what it means. Returns the y below. */
static double draw_key(struct svg *svg, double y)
{
    double x = MARGIN;

    for (int look = LOOK_COMMON; look <= LOOK_UNKNOWN; look++) {
        struct svg_box box = {x, y, SIGN_ROOM, 18};

        draw_box(svg, &box, look, "");
        svg_text(svg, (struct svg_point){x + SIGN_ROOM + 6, y + 13}, looks[look].name, NULL);
        x += SIGN_ROOM + 18 + svg_text_width(looks[look].name, NULL);
    }
    return y + 34;
}

static void mark_loops(const struct loop_summary *summary, const struct nlr_element *elements, size_t count,
                       bool *wanted)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t id = elements[i].id;

        if (elements[i].kind != NLR_LOOP || wanted[summary->table.numbers[id]])
            continue;
        wanted[summary->table.numbers[id]] = true;
        mark_loops(summary, loop_table_elements(&summary->table, id), summary->table.bodies[id].length,
                   wanted);
    }
}

static double draw_loops(const struct diff_picture *picture, struct svg *svg, const bool *wanted, double y)
{
    static const struct svg_font monospace = {.monospace = true};
    const struct loop_table *table = &picture->summary->table;

    for (size_t number = 0; number < table->number_count; number++) {
        AUTO_FREE char *body = NULL;
        AUTO_FREE char *text = NULL;

        if (!wanted[number])
            continue;
        body = loop_body_text(picture->summary, table->numbered[number]);
        if (!body || asprintf(&text, "L%zu = [%s]", number, body) < 0)
            return y; /* svg_finish will not have memory either */
        y = svg_wrapped_text(svg, (struct svg_point){MARGIN, y}, PICTURE_WIDTH - 2 * MARGIN, text,
                             &monospace);
    }
    return y;
}

/* Its heading, what is said of it, and its blocks. */
static int draw_thread(const struct diff_picture *picture, struct svg *svg, const struct thread_diff *thread,
                       double *y)
{
    static const struct svg_font heading = {.size = 14, .bold = true};
    static const struct svg_font column = {.bold = true, .anchor = SVG_MIDDLE};
    AUTO_FREE char *words = NULL;
    AUTO_FREE char *text = NULL;
    struct svg_point size = {0, 0};
    double x = (PICTURE_WIDTH - 2 * COLUMN - BETWEEN) / 2;
    int r;

    if (!thread->normal || !thread->faulty) {
        if (asprintf(&text, "thread %s exists only in the %s run%s", thread_diff_label(thread),
                     thread->normal ? "baseline" : "candidate",
                     thread->unknown ? " (unknown: the other run is incomplete)" : "") < 0)
            return -ENOMEM;
        *y = svg_wrapped_text(svg, (struct svg_point){MARGIN, *y + 14}, PICTURE_WIDTH - 2 * MARGIN, text,
                              &heading);
        return 0;
    }
    words = thread_diff_differs(thread) ? thread_diff_words(picture->summary, thread) : strdup("");
    if (!words || asprintf(&text, "thread %s %s%s", thread_diff_label(thread),
                           *words ? "differs: " : "does not differ", words) < 0)
        return -ENOMEM;
    *y = svg_wrapped_text(svg, (struct svg_point){MARGIN, *y + 14}, PICTURE_WIDTH - 2 * MARGIN, text,
                          &heading);
    svg_text(svg, (struct svg_point){x + COLUMN / 2, *y + 8}, "baseline", &column);
    svg_text(svg, (struct svg_point){x + COLUMN * 1.5 + BETWEEN, *y + 8}, "candidate", &column);
    r = diff_picture_draw(svg, (struct svg_point){x, *y + 18}, picture->summary, thread, picture->full,
                          &size);
    *y += 18 + size.y + 24;
    return r;
}

char *diff_picture_svg(const struct diff_picture *picture)
{
    static const struct svg_font title_font = {.size = 16, .bold = true};
    struct svg *svg = svg_new();
    AUTO_FREE bool *wanted = calloc(picture->summary->table.number_count + 1, sizeof(*wanted));
    AUTO_FREE char *title = NULL;
    double y = MARGIN + 16;
    int r = 0;

    if (!wanted || asprintf(&title, "diffNLR: %s (baseline) and %s (candidate)", picture->normal_name,
                            picture->faulty_name) < 0) {
        svg_free(svg);
        return NULL;
    }
    diff_picture_prepare(svg);
    svg_rect(svg, &(struct svg_box){0, 0, PICTURE_WIDTH, 1e6}, &(struct svg_style){.fill = "#ffffff"});
    y = svg_wrapped_text(svg, (struct svg_point){MARGIN, y}, PICTURE_WIDTH - 2 * MARGIN, title, &title_font);
    y = draw_key(svg, y);
    if (!picture->count)
        svg_text(svg, (struct svg_point){MARGIN, y += 14}, "no thread differs", NULL);
    for (size_t i = 0; i < picture->count && !r; i++) {
        const struct thread_diff *thread = &picture->comparison->threads[picture->threads[i]];

        r = draw_thread(picture, svg, thread, &y);
        if (thread->normal && thread->faulty) {
            mark_loops(picture->summary, thread->normal->loops.elements, thread->normal->loops.count, wanted);
            mark_loops(picture->summary, thread->faulty->loops.elements, thread->faulty->loops.count, wanted);
        }
    }
    if (r) {
        svg_free(svg);
        return NULL;
    }
    y = draw_loops(picture, svg, wanted, y + 14);
    return svg_finish(svg, PICTURE_WIDTH, y + MARGIN, title,
                      "The stem in the middle shows the calls of both runs; on the left are calls of "
                      "the baseline run only, on the right calls of the candidate run only.",
                      SVG_DOCUMENT);
}
