/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/completion.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* A command line up to the word to complete. */
struct line {
    const struct argp *argp;               /* of the command that was named, or of tracectl */
    const struct command *const *commands; /* that may be named next; NULL: none */
    char *const *words;
    size_t count, arguments; /* all words; those before the last that are arguments, behind the command */
    const char *pending;     /* metavariable of the option whose argument the last word is; NULL: of none */
    bool behind_dashes;
};

/* ------------------------------------------------------------------------------------ options */

static bool is_end(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc && !option->group;
}

/* Calls `visit` for the options of an argp and of its children until it returns true; returns that option. */
static const struct argp_option *
each_option(const struct argp *argp, bool (*visit)(const struct argp_option *option, const char *word),
            const char *word)
{
    const struct argp_option *found = NULL;

    for (const struct argp_option *option = argp->options; option && !is_end(option); option++)
        if (visit(option, word))
            return option;
    for (const struct argp_child *child = argp->children; child && child->argp && !found; child++)
        found = each_option(child->argp, visit, word);
    return found;
}

static bool has_letter(const struct argp_option *option, const char *letter)
{
    return isgraph(option->key) && option->key == (unsigned char)*letter;
}

static bool has_name(const struct argp_option *option, const char *name)
{
    size_t length = strcspn(name, "=");

    return option->name && strlen(option->name) == length && !strncmp(option->name, name, length);
}

/* The option whose argument is the word behind `word`; NULL: there is none. */
static const struct argp_option *option_that_waits(const struct argp *argp, const char *word)
{
    const struct argp_option *option = NULL;

    if (!strncmp(word, "--", 2)) {
        option = strchr(word, '=') ? NULL : each_option(argp, has_name, word + 2);
        return option && option->arg ? option : NULL;
    }
    for (const char *letter = word + 1; *word == '-' && *letter; letter++) {
        option = each_option(argp, has_letter, letter);
        if (option && option->arg)
            return letter[1] ? NULL : option;
    }
    return NULL;
}

/* The first sentence of an option's text. */
static void print_candidate(const char *word, const char *end, const char *doc)
{
    size_t length = doc ? strcspn(doc, "\n") : 0;
    const char *stop = doc ? strpbrk(doc, ".;(") : NULL;

    if (stop && (size_t)(stop - doc) < length)
        length = (size_t)(stop - doc);
    while (length && doc[length - 1] == ' ')
        length--;
    if (length)
        text_print(stdout, "%s%s\t%.*s\n", word, end, (int)length, doc);
    else
        text_print(stdout, "%s%s\n", word, end);
}

static bool print_option(const struct argp_option *option, const char *begin)
{
    char word[80];

    if (!option->name || option->flags & OPTION_HIDDEN)
        return false;
    snprintf(word, sizeof(word), "--%s", option->name);
    if (!strncmp(word, begin, strlen(begin)))
        print_candidate(word, option->arg ? "=" : "", option->doc);
    return false;
}

/* ------------------------------------------------------------------------------------ the line */

static const struct command *find_command(const struct command *const *commands, const char *name)
{
    size_t count = 0;

    while (commands[count])
        count++;
    return cli_find_command(commands, count, name);
}

/* What a word that is complete says of those behind it. */
static void read_word(struct line *line, const char *word)
{
    const struct argp_option *option;
    const struct command *command;

    if (!strcmp(word, "--")) {
        line->behind_dashes = true;
    } else if (*word == '-' && word[1]) {
        option = option_that_waits(line->argp, word);
        line->pending = option ? option->arg : NULL;
        if (option && option->key == 'd')
            line->pending = "STORE";
    } else if (line->commands) {
        command = find_command(line->commands, word);
        line->commands = command ? command->commands : NULL;
        line->argp = command ? command->argp : line->argp;
    } else {
        line->arguments++;
    }
}

static void read_line(struct line *line)
{
    for (size_t i = 0; i + 1 < line->count && !line->behind_dashes; i++) {
        bool is_value = line->pending;

        /* -d STORE also says where the names of runs come from. */
        if (is_value && !strcmp(line->pending, "STORE"))
            cli.store_path = line->words[i];
        line->pending = NULL;
        if (!is_value)
            read_word(line, line->words[i]);
    }
}

/* The metavariable of the command's next argument, of the first line of its synopsis that begins with one. */
static const char *next_argument(const struct line *line, char *ret_name, size_t size)
{
    const char *at = line->argp->args_doc ? line->argp->args_doc : "";

    while (*at == '-' && strchr(at, '\n'))
        at = strchr(at, '\n') + 1;
    for (size_t i = 0; i < line->arguments; i++) {
        const char *space = at + strcspn(at, " \n");

        if (*space != ' ') /* "RUN..." */
            break;
        at = space + 1;
    }
    at += strspn(at, "[");
    snprintf(ret_name, size, "%.*s", (int)strcspn(at, " \n.]"), at);
    return ret_name;
}

static void print_commands(const struct command *const *commands, const char *begin)
{
    for (; *commands; commands++)
        if (!strncmp(cli_last_name(*commands), begin, strlen(begin)))
            text_print(stdout, "%s\t%s\n", cli_last_name(*commands), (*commands)->summary);
}

/* "--backend=au": the values of the option. */
static void print_long_values(const struct line *line, const char *word)
{
    const struct argp_option *option = each_option(line->argp, has_name, word + 2);
    const char *value = strchr(word, '=') + 1;
    AUTO_FREE char *before = strndup(word, (size_t)(value - word));

    if (option && option->arg && before)
        completion_print_values(option->arg, before, value);
}

int completion_print(const struct argp *argp, const struct command *const *commands, char *const *words,
                     size_t count)
{
    struct line line = {.argp = argp, .commands = commands, .words = words, .count = count};
    const char *word = count ? words[count - 1] : "";
    char name[64];

    read_line(&line);
    if (line.behind_dashes)
        puts(":commands");
    else if (line.pending)
        completion_print_values(line.pending, "", word);
    else if (!strncmp(word, "--", 2) && strchr(word, '='))
        print_long_values(&line, word);
    else if (*word == '-')
        each_option(line.argp, print_option, word);
    else if (line.commands)
        print_commands(line.commands, word);
    else
        completion_print_values(next_argument(&line, name, sizeof(name)), "", word);
    return fflush(stdout) ? EXIT_FAILED : EXIT_NOTHING_FOUND;
}
