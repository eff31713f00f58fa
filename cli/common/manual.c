/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/manual.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Text as troff wants it: no line begins with a control character, hyphens stay hyphens when copied. */
static void put_text(FILE *out, const char *text, size_t length)
{
    bool line_start = true;

    for (size_t i = 0; i < length; i++) {
        if (line_start && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", out);
        line_start = text[i] == '\n';
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else
            putc(text[i], out);
    }
    putc('\n', out);
}

static void put_line(FILE *out, const char *text)
{
    put_text(out, text, strlen(text));
}

static void put_option(FILE *out, const struct argp_option *option)
{
    fputs(".TP\n", out);
    if (isprint(option->key))
        fprintf(out, "\\fB\\-%c\\fR%s%s%s", option->key, option->arg ? " \\fI" : "",
                option->arg ? option->arg : "", option->arg ? "\\fR" : "");
    if (option->name)
        fprintf(out, "%s\\fB\\-\\-%s\\fR%s%s%s", isprint(option->key) ? ", " : "", option->name,
                option->arg ? "=\\fI" : "", option->arg ? option->arg : "", option->arg ? "\\fR" : "");
    putc('\n', out);
    put_line(out, option->doc ? option->doc : "");
}

static bool is_end(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc && !option->group;
}

static void put_options(FILE *out, const struct argp *argp)
{
    for (const struct argp_option *option = argp->options; option && !is_end(option); option++)
        if (option->name && !(option->flags & OPTION_HIDDEN))
            put_option(out, option);
    for (const struct argp_child *child = argp->children; child && child->argp; child++)
        put_options(out, child->argp);
}

/* The lists that help filters put behind the options, line by line as they are. */
static void put_lists(FILE *out, const struct argp *argp)
{
    char *list = argp->help_filter ? argp->help_filter(ARGP_KEY_HELP_EXTRA, NULL, NULL) : NULL;

    if (list) {
        fputs(".PP\n.nf\n", out);
        put_line(out, list);
        fputs(".fi\n", out);
        free(list);
    }
    for (const struct argp_child *child = argp->children; child && child->argp; child++)
        put_lists(out, child->argp);
}

/* argp's doc string: what stands before \v is the description, what stands behind it are notes. */
static void put_description(FILE *out, const struct argp *argp)
{
    const char *notes = argp->doc ? strchr(argp->doc, '\v') : NULL;

    fputs(".SH DESCRIPTION\n", out);
    if (argp->doc)
        put_text(out, argp->doc, notes ? (size_t)(notes - argp->doc) : strlen(argp->doc));
    fputs(".SH OPTIONS\n", out);
    put_options(out, argp);
    if (notes && notes[1]) {
        fputs(".SH NOTES\n", out);
        put_line(out, notes + 1);
    }
    put_lists(out, argp);
}

static void put_exit_status(FILE *out)
{
    fputs(
        ".SH EXIT STATUS\n"
        ".TP\n"
        "0\n"
        "Done; nothing found.\n"
        ".TP\n"
        "1\n"
        "Done; something found: a difference, a leak, a deadlock, a damaged segment.\n"
        ".TP\n"
        "2\n"
        "Usage error.\n"
        ".TP\n"
        "3\n"
        "Failed: a permission, a kernel feature or an input is missing.\n",
        out);
}

/* One synopsis line for each line of args_doc. */
static void put_synopsis(FILE *out, const struct command *command)
{
    const char *line = command->argp->args_doc ? command->argp->args_doc : "";

    fputs(".SH SYNOPSIS\n.nf\n", out);
    do {
        size_t length = strcspn(line, "\n");

        fprintf(out, "\\fBtracectl %s\\fR [\\fIOPTION\\fR...] ", command->name);
        put_text(out, line, length);
        line += length;
    } while (*line++);
    fputs(".fi\n", out);
}

/* The name of a page: tracectl-go-check, hyphens as troff wants them. */
static void put_page_name(FILE *out, const struct command *command, bool upper)
{
    fputs(upper ? "TRACECTL\\-" : "tracectl\\-", out);
    for (const char *c = command->name; *c; c++) {
        if (*c == ' ')
            fputs("\\-", out);
        else
            putc(upper ? toupper((unsigned char)*c) : *c, out);
    }
}

/* A list of commands with the names of their pages. */
static void put_commands(FILE *out, const struct command *const *commands, size_t count)
{
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; i < count; i++) {
        fputs(".TP\n.BR ", out);
        put_page_name(out, commands[i], false);
        fputs(" (1)\n", out);
        put_line(out, commands[i]->summary);
    }
}

static void put_examples(FILE *out, const char *examples)
{
    if (!examples)
        return;
    fputs(".SH EXAMPLES\n.nf\n", out);
    put_text(out, examples, strlen(examples) - 1);
    fputs(".fi\n", out);
}

void manual_command(FILE *out, const struct command *command)
{
    const char *space = strchr(command->name, ' ');
    size_t count = 0;

    fputs(".TH ", out);
    put_page_name(out, command, true);
    fprintf(out, " 1 \"\" \"tracectl %s\" \"tracectl manual\"\n.SH NAME\n", TRACECTL_VERSION);
    put_page_name(out, command, false);
    fprintf(out, " \\- %s\n", command->summary);
    put_synopsis(out, command);
    put_description(out, command->argp);
    while (command->commands && command->commands[count])
        count++;
    if (count)
        put_commands(out, command->commands, count);
    put_examples(out, command->examples);
    put_exit_status(out);
    fputs(".SH SEE ALSO\n.BR tracectl (1)\n", out);
    if (space)
        fprintf(out, ".BR tracectl\\-%.*s (1)\n", (int)(space - command->name), command->name);
}

void manual_overview(FILE *out, const struct argp *argp, const char *examples,
                     const struct command *const *commands, size_t count)
{
    fprintf(out, ".TH TRACECTL 1 \"\" \"tracectl %s\" \"tracectl manual\"\n", TRACECTL_VERSION);
    fputs(
        ".SH NAME\ntracectl \\- whole-program function tracer and trace analyser\n"
        ".SH SYNOPSIS\n\\fBtracectl\\fR [\\fIOPTION\\fR...] \\fICOMMAND\\fR [\\fIARG\\fR...]\n",
        out);
    put_description(out, argp);
    put_commands(out, commands, count);
    put_examples(out, examples);
    put_exit_status(out);
    fputs(
        ".SH ENVIRONMENT\n"
        ".TP\n"
        ".B TRACECTL_DB\n"
        "The store to use without \\fB\\-d\\fR.\n"
        ".TP\n"
        ".B NO_COLOR\n"
        "If set and not empty: no colour, even on a terminal.\n"
        ".TP\n"
        ".B PAGER\n"
        "The pager for long output on a terminal (default less).\n",
        out);
}
