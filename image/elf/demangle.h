/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names as their authors wrote them. */
#ifndef TRACECTL_IMAGE_ELF_DEMANGLE_H
#define TRACECTL_IMAGE_ELF_DEMANGLE_H

/* The C++ or Rust name behind a mangled one, with parameter types; NULL when `name` is not mangled. The
 * caller frees it. */
char *demangle(const char *name);

#endif
