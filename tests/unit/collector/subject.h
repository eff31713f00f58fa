/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An image with its functions and a plan: what the tests of collector/plan/ look at. */
#ifndef TRACECTL_TESTS_PLAN_SUBJECT_H
#define TRACECTL_TESTS_PLAN_SUBJECT_H

#include "base/cleanup.h"
#include "collector/plan/plan.h"
#include "tests/unit/image/tiny_elf.h"

struct subject {
    struct elf_image *image;
    struct image_function *functions;
    size_t count;
    struct plan *plan;
};

void subject_release(struct subject *subject);

#define AUTO_SUBJECT CLEANUP(subject_release)

/* Each opens an image and makes its plan; the test fails where that does. */
struct subject subject_tiny(const struct tiny_elf *tiny, const struct plan_options *options);
struct subject subject_bytes(const void *data, size_t size, const struct plan_options *options);
struct subject subject_file(const char *path, const struct plan_options *options);
/* A program without start-up code, of assembly source; `flags` are for gcc. */
struct subject subject_assembly(const char *source, const char *flags, const struct plan_options *options);

/* The first probe of the function, NULL if it has none. */
const struct plan_probe *subject_probe(const struct subject *subject, const char *name);

/* SITE_OK if it is not refused. */
enum site_refusal subject_refusal(const struct subject *subject, const char *name);

/* Every total must be the sum of what it totals; probes must be sorted, with an offset each. */
void subject_check_totals(const struct subject *subject);

#endif
