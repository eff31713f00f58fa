/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Filter sets on the command line: where the user's own are, and the list of the predefined ones for --help.
 */
#ifndef TRACECTL_CLI_COMMON_FILTER_FILE_H
#define TRACECTL_CLI_COMMON_FILTER_FILE_H

#include "analyzer/symbols/filter.h"

#define FILTER_FILE_HELP \
    "Read your own filter sets from this file, one per line: NAME = SET, SET, ... (default: " \
    "$XDG_CONFIG_HOME/tracectl/filters or ~/.config/tracectl/filters, if it exists)"

/* The predefined sets, and those of `path`; with a path of NULL, those of the default file, if there is one.
 * Errors are those of filter_library_read. Free with filter_library_free. */
int filter_file_read(const char *path, struct filter_library **ret_library, struct error *err);

/* For argp's help_filter: puts the sets behind the options of --help. The man page has the same list. */
char *filter_file_help(int key, const char *text, void *input);

#endif
