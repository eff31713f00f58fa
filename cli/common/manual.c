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

/* argp's doc string: what stands before \v is the description, what stands behind it are notes. `heading`:
 * the macro of headings. */
static void put_description(FILE *out, const struct argp *argp, const char *heading)
{
    const char *notes = argp->doc ? strchr(argp->doc, '\v') : NULL;

    fprintf(out, ".%s DESCRIPTION\n", heading);
    if (argp->doc)
        put_text(out, argp->doc, notes ? (size_t)(notes - argp->doc) : strlen(argp->doc));
    fprintf(out, ".%s OPTIONS\n", heading);
    put_options(out, argp);
    if (notes && notes[1]) {
        fprintf(out, ".%s NOTES\n", heading);
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
static void put_synopsis(FILE *out, const struct command *command, const char *heading)
{
    const char *line = command->argp->args_doc ? command->argp->args_doc : "";

    fprintf(out, ".%s SYNOPSIS\n.nf\n", heading);
    do {
        size_t length = strcspn(line, "\n");

        fprintf(out, "\\fBtracectl %s\\fR [\\fIOPTION\\fR...] ", command->name);
        put_text(out, line, length);
        line += length;
    } while (*line++);
    fputs(".fi\n", out);
}

static void put_own_command(FILE *out, const struct command *command)
{
    fprintf(out, ".SH \"tracectl %s\"\n", command->name);
    put_line(out, command->summary);
    put_synopsis(out, command, "SS");
    put_description(out, command->argp, "SS");
}

void manual_command(FILE *out, const struct command *command)
{
    fputs(".TH TRACECTL\\-", out);
    for (const char *c = command->name; *c; c++)
        putc(toupper((unsigned char)*c), out);
    fprintf(out, " 1 \"\" \"tracectl %s\" \"tracectl manual\"\n", TRACECTL_VERSION);
    fprintf(out, ".SH NAME\ntracectl\\-%s \\- %s\n", command->name, command->summary);
    put_synopsis(out, command, "SH");
    put_description(out, command->argp, "SH");
    for (size_t i = 0; command->commands && command->commands[i]; i++)
        put_own_command(out, command->commands[i]);
    put_exit_status(out);
    fputs(".SH SEE ALSO\n.BR tracectl (1)\n", out);
}

void manual_overview(FILE *out, const struct argp *argp, const struct command *const *commands, size_t count)
{
    fprintf(out, ".TH TRACECTL 1 \"\" \"tracectl %s\" \"tracectl manual\"\n", TRACECTL_VERSION);
    fputs(
        ".SH NAME\ntracectl \\- whole-program function tracer and trace analyser\n"
        ".SH SYNOPSIS\n\\fBtracectl\\fR [\\fIOPTION\\fR...] \\fICOMMAND\\fR [\\fIARG\\fR...]\n",
        out);
    put_description(out, argp, "SH");
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, ".TP\n.BR tracectl\\-%s (1)\n", commands[i]->name);
        put_line(out, commands[i]->summary);
    }
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
