/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The screen of `tracectl top`: lines above, functions below, which can be scrolled. */
#include <curses.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/live/top_live.h"

static SCREEN *screen;
static const struct top_view *shown;
static size_t first; /* function on the screen */

int top_screen_open(struct error *err)
{
    screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return error_say(err, -ENOTTY, "this terminal cannot show a screen (is TERM right?); use --batch");
    set_term(screen);
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    first = 0;
    return 0;
}

void top_screen_close(void)
{
    if (!screen)
        return;
    endwin();
    delscreen(screen);
    screen = NULL;
    shown = NULL;
}

/* As much of the text as there is place for. */
static void put_line(int line, const char *text)
{
    AUTO_FREE char *printable = text_printable(text);

    mvaddnstr(line, 0, printable ? printable : "?", COLS);
}

/* Numbers are aligned to the right; what does not fit is cut. */
static void put_row(int line, const char *const cells[TOP_COLUMNS], int place_width)
{
    char text[3 * TOP_CELL];

    snprintf(text, sizeof(text), "%13s %7s  %-8s %-*.*s  %s", cells[0], cells[1], cells[2], place_width,
             place_width, cells[3], cells[4]);
    put_line(line, text);
}

static int widest_place(const struct top_view *view)
{
    char cells[TOP_COLUMNS][TOP_CELL];
    int widest = (int)strlen(view->where), most = COLS / 4;

    for (size_t i = first; i < view->count && i < first + (size_t)LINES; i++) {
        top_cells(view, &view->functions[i], cells);
        if ((int)strlen(cells[3]) > widest)
            widest = (int)strlen(cells[3]);
    }
    return widest < most ? widest : most;
}

static void put_functions(const struct top_view *view, int from)
{
    const char *titles[TOP_COLUMNS], *pointers[TOP_COLUMNS];
    char cells[TOP_COLUMNS][TOP_CELL];
    int width = widest_place(view);

    for (size_t i = 0; i < TOP_COLUMNS; i++) {
        titles[i] = top_titles[i] + (top_titles[i][0] == '>');
        pointers[i] = cells[i];
    }
    titles[TOP_COLUMNS - 2] = view->where;
    attron(A_REVERSE);
    mvhline(from, 0, ' ', COLS);
    put_row(from, titles, width);
    attroff(A_REVERSE);
    for (int line = from + 1; line < LINES && first + (size_t)(line - from - 1) < view->count; line++) {
        const struct budget_function_status *function = &view->functions[first + (size_t)(line - from - 1)];

        top_cells(view, function, cells);
        if (function->state != FUNCTION_RECORDED)
            attron(A_BOLD);
        put_row(line, pointers, width);
        attroff(A_BOLD);
    }
}

void top_screen_show(const struct top_view *view)
{
    char lines[TOP_HEAD_LINES][TOP_CELL];
    int line = 0;

    shown = view;
    if (first >= view->count)
        first = view->count ? view->count - 1 : 0;
    top_head(view, lines);
    erase();
    for (size_t i = 0; i < TOP_HEAD_LINES; i++)
        if (lines[i][0])
            put_line(line++, lines[i]);
    put_functions(view, line);
    refresh();
}

static void scroll_by(long rows)
{
    long most = shown && shown->count ? (long)shown->count - 1 : 0, to = (long)first + rows;

    first = (size_t)(to < 0 ? 0 : to > most ? most : to);
}

bool top_screen_key(void)
{
    int key = getch();

    switch (key) {
    case 'q':
    case 'Q':
        return true;
    case KEY_DOWN:
        scroll_by(1);
        break;
    case KEY_UP:
        scroll_by(-1);
        break;
    case KEY_NPAGE:
        scroll_by(LINES / 2);
        break;
    case KEY_PPAGE:
        scroll_by(-(LINES / 2));
        break;
    case KEY_HOME:
        first = 0;
        break;
    case KEY_RESIZE:
        break;
    default:
        return false;
    }
    if (shown)
        top_screen_show(shown);
    return false;
}
