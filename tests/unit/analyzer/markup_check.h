/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of pictures share: whether a text is well-formed XML, and how often something is in it. */
#ifndef TRACECTL_TESTS_ANALYZER_MARKUP_CHECK_H
#define TRACECTL_TESTS_ANALYZER_MARKUP_CHECK_H

#include <stddef.h>

/* Fails the test unless every element is ended, in order, and every '&' begins one of the five entities. Void
 * elements of HTML (meta) and the document type are passed over. */
void check_markup(const char *text);

size_t count_of(const char *text, const char *piece);

#endif
