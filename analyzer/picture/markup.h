/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Texts in XML and HTML. */
#ifndef TRACECTL_ANALYZER_PICTURE_MARKUP_H
#define TRACECTL_ANALYZER_PICTURE_MARKUP_H

#include <stdio.h>

/* Any bytes as characters of an element or of an attribute between double quotes: markup is escaped, what is
 * not UTF-8 and what XML cannot hold becomes U+FFFD. */
void markup_escape(FILE *out, const char *text);

#endif
