/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a subcommand prints, as text: pages and the API say the same as the command line since they are the same. */
#ifndef TRACECTL_CLI_SERVE_DOCUMENT_H
#define TRACECTL_CLI_SERVE_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/common/command.h"

struct document {
    int status;   /* enum EXIT_... */
    char *output; /* never NULL after document_run */
    char *errors; /* "", or the line that says why it failed */
};

/* Runs a command, with its arguments up to a NULL. Not for several threads. -ENOMEM or -EIO; what the command
 * itself says is no failure. Free with document_release, after a failure too. */
int document_run(const struct command *command, bool json, const char *const *arguments,
                 struct document *ret_document);
void document_release(struct document *document);

/* Whether the command did what it was asked. */
static inline bool document_is_good(const struct document *document)
{
    return document->status == EXIT_NOTHING_FOUND || document->status == EXIT_FOUND;
}

/* The same, parsed. NULL: it failed. */
json_t *document_read(const struct command *command, const char *const *arguments);

#endif
