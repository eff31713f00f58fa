/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/sql/sql_input.h"

#include <ctype.h>
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"

#define HISTORY_ENTRIES 1000
#define MOST_SHOWN 200 /* possible completions */

struct sql_input {
    const struct sql_names *names;
    EditLine *edit; /* NULL: not a terminal */
    History *history;
    char *history_path; /* NULL: not saved */
    bool goes_on, cancelled;
    char *line; /* of getline, or a copy of libedit's */
    size_t capacity;
};

DEFINE_CLEANUP(cleanup_input, struct sql_input *, sql_input_free)

static struct sql_input *input_of(EditLine *edit)
{
    void *input = NULL;

    el_get(edit, EL_CLIENTDATA, &input);
    return input;
}

/* ------------------------------------------------------------------------------------------ keys */

static char *prompt(EditLine *edit)
{
    static char first[] = "tracectl> ", next[] = "     ...> ";

    return input_of(edit)->goes_on ? next : first;
}

/* The terminal sends Ctrl-C as a character while a line is edited, so that no signal gets into libedit. */
static unsigned char cancel(EditLine *edit, int key)
{
    input_of(edit)->cancelled = true;
    fputs("^C\n", stdout);
    return CC_NEWLINE;
}

static bool is_word(char character)
{
    return isalnum((unsigned char)character) || character == '_';
}

/* Inserts what all of the words have behind the prefix, in its case. */
static bool insert_common(EditLine *edit, const char *prefix, size_t length, const char *const *words,
                          size_t count)
{
    size_t common = sql_names_common(words, count);
    AUTO_FREE char *rest = common > length ? strndup(words[0] + length, common - length) : NULL;
    bool upper = length && isupper((unsigned char)prefix[length - 1]);

    for (char *at = rest; upper && at && *at; at++)
        *at = (char)toupper((unsigned char)*at);
    return rest && el_insertstr(edit, rest) == 0;
}

static void show(const char *const *words, size_t count)
{
    putchar('\n');
    for (size_t i = 0; i < count && i < MOST_SHOWN; i++)
        text_print(stdout, i + 1 < count ? "%s  " : "%s\n", words[i]);
    if (count > MOST_SHOWN)
        puts("...");
    fflush(stdout);
}

/* TAB: completes the word before the cursor as far as that is certain; shows the choice where it is not. */
static unsigned char complete(EditLine *edit, int key)
{
    const LineInfo *line = el_line(edit);
    const char *start = line->cursor, *const * words;
    size_t length, count;

    while (start > line->buffer && is_word(start[-1]))
        start--;
    if (start > line->buffer && start == line->buffer + 1 && start[-1] == '.')
        start--; /* one of the shell's commands */
    length = (size_t)(line->cursor - start);
    if (!length)
        return CC_ERROR;
    count = sql_names_match(input_of(edit)->names, start, length, &words);
    if (insert_common(edit, start, length, words, count)) {
        if (count == 1)
            el_insertstr(edit, " ");
        return CC_REFRESH;
    }
    if (count < 2)
        return CC_ERROR;
    show(words, count);
    return CC_REDISPLAY;
}

/* ------------------------------------------------------------------------------------------ history */

/* Makes the folders of a path. What fails is found when the file is opened. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

static char *make_history_path(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int r = -1;

    if (state && *state == '/') /* the specification ignores other paths */
        r = asprintf(&path, "%s/tracectl/sql_history", state);
    else if (home && *home == '/')
        r = asprintf(&path, "%s/.local/state/tracectl/sql_history", home);
    return r < 0 ? NULL : path;
}

static void open_history(struct sql_input *input)
{
    HistEvent event;

    history(input->history, &event, H_SETSIZE, HISTORY_ENTRIES);
    history(input->history, &event, H_SETUNIQUE, 1);
    input->history_path = make_history_path();
    if (input->history_path)
        history(input->history, &event, H_LOAD, input->history_path);
}

void sql_input_remember(struct sql_input *input, const char *text)
{
    AUTO_FREE char *line = input->history ? strdup(text) : NULL;
    HistEvent event;
    size_t length;
    mode_t mask;

    if (!line)
        return;
    for (char *at = line; *at; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    for (length = strlen(line); length && line[length - 1] == ' '; length--)
        line[length - 1] = '\0';
    if (!length)
        return;
    history(input->history, &event, H_ENTER, line);
    if (!input->history_path)
        return;
    make_folders(input->history_path);
    mask = umask(0077);
    history(input->history, &event, H_SAVE, input->history_path);
    umask(mask);
}

/* ------------------------------------------------------------------------------------------ lines */

static int open_editor(struct sql_input *input)
{
    setlocale(LC_CTYPE, "");
    input->edit = el_init("tracectl", stdin, stdout, stderr);
    input->history = history_init();
    if (!input->edit || !input->history)
        return -ENOMEM;
    open_history(input);
    el_set(input->edit, EL_CLIENTDATA, input);
    el_set(input->edit, EL_SIGNAL, 1); /* a terminal that changes its size, or is hung up, is put in order */
    el_set(input->edit, EL_PROMPT, prompt);
    el_set(input->edit, EL_EDITOR, "emacs");
    el_set(input->edit, EL_HIST, history, input->history);
    el_set(input->edit, EL_ADDFN, "complete", "complete a name", complete);
    el_set(input->edit, EL_ADDFN, "cancel", "drop the statement", cancel);
    el_source(input->edit, NULL);
    el_set(input->edit, EL_SETTY, "-d", "-isig", NULL);
    el_set(input->edit, EL_BIND, "^I", "complete", NULL);
    el_set(input->edit, EL_BIND, "^C", "cancel", NULL);
    el_set(input->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    return 0;
}

int sql_input_new(const struct sql_names *names, struct sql_input **ret_input, struct error *err)
{
    CLEANUP(cleanup_input) struct sql_input *input = calloc(1, sizeof(*input));

    if (!input)
        return error_no_memory(err);
    input->names = names;
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && open_editor(input) < 0)
        return error_no_memory(err);
    *ret_input = take_pointer(input);
    return 0;
}

void sql_input_free(struct sql_input *input)
{
    if (!input)
        return;
    if (input->edit)
        el_end(input->edit);
    if (input->history)
        history_end(input->history);
    free(input->history_path);
    free(input->line);
    free(input);
}

bool sql_input_is_terminal(const struct sql_input *input)
{
    return input->edit != NULL;
}

enum sql_line sql_input_read(struct sql_input *input, bool goes_on, const char **ret_line)
{
    int length = 0;

    if (!input->edit) {
        *ret_line = input->line;
        if (getline(&input->line, &input->capacity, stdin) < 0)
            return SQL_LINE_END;
        *ret_line = input->line;
        return SQL_LINE_READ;
    }
    input->goes_on = goes_on;
    input->cancelled = false;
    *ret_line = el_gets(input->edit, &length);
    if (input->cancelled)
        return SQL_LINE_CANCELLED;
    return *ret_line && length > 0 ? SQL_LINE_READ : SQL_LINE_END;
}
