/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Other names of a function, as functions.aliases holds them: one text, a line each. */
#ifndef TRACESTORE_ALIASES_H
#define TRACESTORE_ALIASES_H

#include "base/cleanup.h"

/* Names up to a NULL as one text; NULL where there are none. The caller frees it. 0 or -ENOMEM. */
int aliases_join(char *const *names, char **ret_text);

/* The names of a text, up to a NULL; NULL where the text is NULL or "". Free with aliases_free, which accepts
 * NULL. 0 or -ENOMEM. */
int aliases_split(const char *text, char ***ret_names);
void aliases_free(char **names);

DEFINE_CLEANUP(cleanup_aliases, char **, aliases_free)
#define AUTO_ALIASES CLEANUP(cleanup_aliases)

#endif
