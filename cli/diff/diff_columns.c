/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/diff/diff_columns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analyzer/diff/diff_rows.h"
#include "analyzer/symbols/short_names.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/analysis/loops.h"

enum { CONTEXT = 3, MIN_COLUMN = 16, MARK = 2, GAP = 2, INDENT = 2, PAPER = 132, NARROWEST = 40 };

/* What is shown of a long stretch that one run alone has. */
enum { LONG_HEAD = 16, LONG_TAIL = 4 };

/* ------------------------------------------------------------------------------------------ cut names */

void cut_names_release(struct cut_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->names[i].full);
        free(names->names[i].cut);
    }
    free(names->names);
    *names = (struct cut_names){0};
}

void cut_names_print(const struct cut_names *names)
{
    fputs(names->count ? "\n" : "", stdout);
    for (size_t i = 0; i < names->count; i++)
        text_print(stdout, "%s = %s\n", names->names[i].cut, names->names[i].full);
}

static bool is_taken(const struct cut_names *names, const char *cut)
{
    for (size_t i = 0; i < names->count; i++)
        if (!strcmp(names->names[i].cut, cut))
            return true;
    return false;
}

/* Names that would look the same get a number. */
static char *unused_cut(const struct cut_names *names, const char *full, size_t width)
{
    size_t size = SHORT_NAME_SIZE(width);
    char *cut = malloc(size + 24);

    if (!cut)
        return NULL;
    name_shorten(full, width, cut, size);
    for (unsigned number = 2; is_taken(names, cut) && number < 1000; number++) {
        char suffix[16];

        snprintf(suffix, sizeof(suffix), "~%u", number);
        name_shorten(full, width > strlen(suffix) ? width - strlen(suffix) : 1, cut, size);
        strcat(cut, suffix);
    }
    return cut;
}

/* What stands for the name in `width` characters, borrowed; NULL: no memory. */
static const char *cut_name(struct cut_names *names, const char *full, size_t width)
{
    struct cut_name name;

    for (size_t i = 0; i < names->count; i++)
        if (!strcmp(names->names[i].full, full) && text_width(names->names[i].cut) <= width)
            return names->names[i].cut;
    if (array_reserve(&names->names, &names->capacity, names->count + 1))
        return NULL;
    name = (struct cut_name){strdup(full), unused_cut(names, full, width)};
    if (!name.full || !name.cut) {
        free(name.full);
        free(name.cut);
        return NULL;
    }
    names->names[names->count++] = name;
    return name.cut;
}

/* ------------------------------------------------------------------------------------------ cells */

/* The sides of a difference: two threads, or two bodies inside them. */
struct level {
    const struct nlr_sequence *left, *right;
    const struct thread_loops *left_thread, *right_thread; /* NULL inside a loop */
    size_t indent;
};

struct cell {
    char loop[48];    /* where `text` points for a loop */
    const char *text; /* NULL: nothing stands here */
    bool is_name;
    const char *note; /* behind it */
    size_t indent;
};

static const char *note_of(const struct thread_loops *thread, size_t at)
{
    if (!thread || at + 1 != thread->loops.count)
        return "";
    if (thread->last_call == LAST_CALL_OPEN)
        return "  <- never returned";
    if (thread->last_call == LAST_CALL_UNKNOWN && thread->loops.elements[at].kind != NLR_LOST)
        return "  <- may not have returned";
    return "";
}

static void fill_cell(const struct loop_summary *summary, const struct level *level, bool right, size_t at,
                      struct cell *cell)
{
    const struct nlr_sequence *sequence = right ? level->right : level->left;

    *cell = (struct cell){.note = "", .indent = level->indent};
    if (at == DIFF_NO_ENTRY)
        return;
    cell->is_name = sequence->elements[at].kind == NLR_SYMBOL;
    if (cell->is_name)
        cell->text = symbols_demangled(&summary->symbols, sequence->elements[at].id);
    else
        cli_loops_text(summary, &sequence->elements[at], cell->loop, sizeof(cell->loop));
    if (!cell->text)
        cell->text = cell->loop;
    cell->note = note_of(right ? level->right_thread : level->left_thread, at);
}

static size_t cell_width(const struct cell *cell)
{
    return cell->text ? cell->indent + text_width(cell->text) + strlen(cell->note) : 0;
}

/* ------------------------------------------------------------------------------------------ two passes */

/* The same walk finds out how wide the columns are, and then prints them. */
struct pass {
    const struct diff_columns *columns;
    bool measures;
    size_t left, right; /* widths */
    struct cut_names *cut;
};

static int print_cell(const struct pass *pass, const struct cell *cell, size_t width, bool padded)
{
    size_t note = strlen(cell->note), used = cell->indent + note;
    size_t room = width > used ? width - used : 1;
    const char *text = cell->text ? cell->text : "";

    if (cell->is_name && (text_width(text) > room || !text_is_printable(text)))
        text = cut_name(pass->cut, text, room);
    if (!text)
        return -ENOMEM;
    used += text_width(text);
    text_print(stdout, "%*s%s%s", (int)cell->indent, "", text, cell->note);
    if (padded)
        text_print(stdout, "%*s", used < width ? (int)(width - used) : 0, "");
    return 0;
}

static enum cli_style style_of(char mark)
{
    switch (mark) {
    case '|':
        return CLI_CHANGED;
    case '<':
        return CLI_NORMAL;
    case '>':
        return CLI_FAULTY;
    case '?':
        return CLI_UNKNOWN;
    default:
        return CLI_PLAIN;
    }
}

static int print_row(const struct pass *pass, char mark, const struct cell *left, const struct cell *right)
{
    bool colour = pass->columns->colour && style_of(mark) != CLI_PLAIN;
    int r;

    cli_style(colour, style_of(mark));
    text_print(stdout, "%c ", mark);
    r = print_cell(pass, left, pass->left, right->text);
    if (right->text && !r) {
        text_print(stdout, "%*s", GAP, "");
        r = print_cell(pass, right, pass->right, false);
    }
    cli_style(colour, CLI_PLAIN);
    putchar('\n');
    return r;
}

static char mark_of(const struct diff_row *row)
{
    if (row->kind == ROW_UNKNOWN)
        return '?';
    if (row->kind != ROW_CHANGED)
        return ' ';
    return row->faulty == DIFF_NO_ENTRY ? '<' : row->normal == DIFF_NO_ENTRY ? '>' : '|';
}

static void print_folded(const struct pass *pass, char mark, size_t count, const char *what, size_t indent)
{
    bool colour = pass->columns->colour;

    cli_style(colour, CLI_DIM);
    text_print(stdout, "%c %*s... %zu %s entries", mark, (int)indent, "", count, what);
    cli_style(colour, CLI_PLAIN);
    putchar('\n');
}

static int walk_rows(struct pass *pass, const struct level *level, const struct diff_nlr *diff);

/* What the loops of a row do in one iteration, below it. */
static int walk_bodies(struct pass *pass, const struct level *level, const struct diff_row *row)
{
    const struct loop_table *table = &pass->columns->summary->table;
    uint32_t left = level->left->elements[row->normal].id, right = level->right->elements[row->faulty].id;
    struct nlr_sequence left_body = loop_body_sequence(table, left),
                        right_body = loop_body_sequence(table, right);
    struct level inner = {&left_body, &right_body, NULL, NULL, level->indent + INDENT};
    CLEANUP(diff_nlr_release) struct diff_nlr diff = {0};
    int r = diff_nlr_bodies(table, left, right, &diff);

    return r ? r : walk_rows(pass, &inner, &diff);
}

static int walk_row(struct pass *pass, const struct level *level, const struct diff_row *row)
{
    struct cell left, right;
    int r = 0;

    if (row->kind == ROW_FOLDED) {
        if (!pass->measures)
            print_folded(pass, ' ', row->folded, "equal", level->indent);
        return 0;
    }
    fill_cell(pass->columns->summary, level, false, row->normal, &left);
    fill_cell(pass->columns->summary, level, true, row->faulty, &right);
    if (pass->measures) {
        pass->left = cell_width(&left) > pass->left ? cell_width(&left) : pass->left;
        pass->right = cell_width(&right) > pass->right ? cell_width(&right) : pass->right;
    } else {
        r = print_row(pass, mark_of(row), &left, &right);
    }
    if (!r && row->loop && pass->columns->descend)
        r = walk_bodies(pass, level, row);
    return r;
}

/* Whether one run alone has the row, and the one before it, too. */
static bool goes_on(const struct diff_rows *rows, size_t row)
{
    char mark = mark_of(&rows->rows[row]);

    return row && (mark == '<' || mark == '>') && mark == mark_of(&rows->rows[row - 1]);
}

/* How many rows from this one on are omitted: the middle of a long stretch that one run alone has, of which
 * `shown` rows have been shown. */
static size_t hidden_rows(const struct diff_rows *rows, size_t row, size_t shown)
{
    size_t end = row;

    if (shown != LONG_HEAD)
        return 0;
    while (end < rows->count && goes_on(rows, end))
        end++;
    return end - row > LONG_TAIL + 2 ? end - row - LONG_TAIL : 0;
}

static int walk_rows(struct pass *pass, const struct level *level, const struct diff_nlr *diff)
{
    CLEANUP(diff_rows_release) struct diff_rows rows = {0};
    bool whole = pass->columns->full || level->indent;
    int r = diff_rows(diff, whole ? DIFF_NO_ENTRY : CONTEXT, &rows);

    for (size_t i = 0, shown = 0; i < rows.count && !r && !cli_output_broken(); i++) {
        size_t hidden;

        shown = goes_on(&rows, i) ? shown + 1 : 0;
        hidden = whole ? 0 : hidden_rows(&rows, i, shown);
        if (hidden && !pass->measures)
            print_folded(pass, mark_of(&rows.rows[i]), hidden, "more such", level->indent);
        i += hidden;
        r = walk_row(pass, level, &rows.rows[i]);
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ the table */

size_t diff_columns_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    unsigned long width = 0;

    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
        width = size.ws_col;
    if (!width && columns)
        width = strtoul(columns, NULL, 10);
    if (!width || width > 10000)
        width = PAPER;
    return width < NARROWEST ? NARROWEST : width;
}

/* Both columns as wide as they need if there is room; else the narrower one first, as far as half of it. */
static void share_width(struct pass *pass)
{
    size_t room = pass->columns->width - MARK - GAP, half = room / 2;

    if (pass->left < MIN_COLUMN)
        pass->left = MIN_COLUMN;
    if (pass->left + pass->right <= room)
        return;
    if (pass->left <= half)
        pass->right = room - pass->left;
    else if (pass->right <= half)
        pass->left = room - pass->right;
    else
        pass->left = pass->right = half;
}

int diff_columns_print(const struct diff_columns *columns, struct cut_names *cut)
{
    struct level level = {&columns->left->loops, &columns->right->loops, columns->left, columns->right, 0};
    struct cell left = {.text = columns->left_title, .note = ""};
    struct cell right = {.text = columns->right_title, .note = ""};
    struct pass pass = {.columns = columns,
                        .measures = true,
                        .left = text_width(columns->left_title),
                        .right = text_width(columns->right_title),
                        .cut = cut};
    int r = walk_rows(&pass, &level, columns->diff);

    if (r)
        return r;
    share_width(&pass);
    pass.measures = false;
    cli_style(columns->colour, CLI_BOLD);
    r = print_row(&pass, ' ', &left, &right);
    cli_style(columns->colour, CLI_PLAIN);
    return r ? r : walk_rows(&pass, &level, columns->diff);
}
