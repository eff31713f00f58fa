/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The names of a function: its own, its aliases, and what people call them. */
#ifndef TRACECTL_IMAGE_FUNCTIONS_FUNCTION_NAMES_H
#define TRACECTL_IMAGE_FUNCTIONS_FUNCTION_NAMES_H

#include <regex.h>

#include "image/functions/functions.h"

/* The first of the names that the expression matches: as the image spells it, with "@plt" and without, or
 * demangled. Borrowed from the function; NULL: it matches none. */
const char *image_function_matching_name(const struct image_function *function, const regex_t *regex);

/* Makes one of the function's aliases the name that people see: `demangled` becomes what it is demangled. 0,
 * or -ENOMEM and the function is as before. */
int image_function_show_as(struct image_function *function, const char *alias);

/* What people call a name, "foo::bar()@plt" for the stub name _ZN3foo3barEv@plt; NULL where nothing is
 * mangled. The caller frees it. 0 or -ENOMEM. */
int image_function_demangle(const char *name, bool is_stub, char **ret_demangled);

#endif
