/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/elf/demangle.h"

#include <stddef.h>
#include <string.h>

#include <libiberty/demangle.h>

/* Longer names are left as they are: substitutions let a short crafted name grow without bounds, and the
 * longest names of real programs (heavily templated ones) are below this. */
#define MANGLED_MAX 16384

char *demangle(const char *name)
{
    if (strncmp(name, "_Z", 2) != 0 && strncmp(name, "_R", 2) != 0)
        return NULL; /* without this the demangler would also try other languages' conventions */
    if (strlen(name) > MANGLED_MAX)
        return NULL;
    return cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}
