/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/unit/collector/subject.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void subject_release(struct subject *subject)
{
    plan_free(subject->plan);
    image_functions_free(subject->functions, subject->count);
    elf_image_free(subject->image);
}

static void plan_subject(struct subject *subject, const struct plan_options *options)
{
    struct error err = {0};

    cr_assert_eq(image_functions(subject->image, &subject->functions, &subject->count, &err), 0, "%s",
                 err.message);
    cr_assert_eq(plan_make(subject->image, subject->functions, subject->count, options, &subject->plan, &err),
                 0, "%s", err.message);
}

struct subject subject_bytes(const void *data, size_t size, const struct plan_options *options)
{
    AUTO_CLOSE int fd = tiny_file(data, size);
    struct subject subject = {0};

    cr_assert_eq(elf_image_open_fd(fd, "tiny", &subject.image, NULL), 0);
    plan_subject(&subject, options);
    return subject;
}

struct subject subject_tiny(const struct tiny_elf *tiny, const struct plan_options *options)
{
    uint8_t image[TINY_MAX];

    return subject_bytes(image, tiny_elf_build(tiny, image), options);
}

struct subject subject_file(const char *path, const struct plan_options *options)
{
    struct subject subject = {0};

    cr_assert_eq(elf_image_open(path, &subject.image, NULL), 0, "%s", path);
    plan_subject(&subject, options);
    return subject;
}

const struct plan_probe *subject_probe(const struct subject *subject, const char *name)
{
    for (size_t i = 0; i < subject->plan->count; i++)
        if (strcmp(subject->functions[subject->plan->probes[i].function].name, name) == 0)
            return &subject->plan->probes[i];
    return NULL;
}

enum site_refusal subject_refusal(const struct subject *subject, const char *name)
{
    for (size_t i = 0; i < subject->plan->refusal_count; i++)
        if (strcmp(subject->functions[subject->plan->refusals[i].function].name, name) == 0)
            return subject->plan->refusals[i].reason;
    return SITE_OK;
}

/* What the plan says of one function is the same in all of its probes. Returns whether `probe` is its first
 * one. */
static bool is_first_of_function(const struct subject *subject, size_t probe)
{
    const struct plan_probe *probes = subject->plan->probes;

    for (size_t i = 0; i < probe; i++) {
        if (probes[i].function != probes[probe].function)
            continue;
        cr_expect_eq(probes[i].no_return, probes[probe].no_return);
        return false;
    }
    return true;
}

static void check_probe(const struct plan_probe *probe)
{
    uint32_t hit = probe->class == SITE_EMULATED ? 550 : 10200;

    cr_expect_eq(probe->return_probe, probe->no_return == PLAN_RETURN_PROBED);
    cr_expect(!probe->return_probe || (probe->kind == PLAN_AT_ENTRY && probe->sp_offset == 0));
    cr_expect(probe->sp_offset == 0 || probe->kind == PLAN_AT_ENTRY);
    cr_expect_eq(probe->cost_ns, hit + (probe->return_probe ? 350 : 0));
}

void subject_check_totals(const struct subject *subject)
{
    const struct plan *plan = subject->plan;
    size_t by_refusal[SITE_REFUSALS] = {0}, by_no_return[PLAN_NO_RETURNS] = {0};
    size_t by_kind[PLAN_SITE_KINDS] = {0}, moved = 0, functions = 0;

    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_probe *probe = &plan->probes[i];

        check_probe(probe);
        by_kind[probe->kind]++;
        moved += probe->sp_offset != 0;
        if (is_first_of_function(subject, i)) {
            functions++;
            by_no_return[probe->no_return]++;
        }
        cr_expect(i == 0 || plan->probes[i - 1].address < probe->address ||
                  (plan->probes[i - 1].address == probe->address &&
                   plan->probes[i - 1].kind == PLAN_AT_ENTRY &&
                   (probe->kind == PLAN_AT_CALL || probe->kind == PLAN_AT_JUMP)));
    }
    for (size_t i = 0; i < plan->refusal_count; i++)
        by_refusal[plan->refusals[i].reason]++;
    cr_expect_eq(plan->functions, functions);
    cr_expect_eq(plan->wanted, plan->functions + plan->refusal_count);
    cr_expect_eq(plan->return_probes, by_no_return[PLAN_RETURN_PROBED]);
    cr_expect_eq(plan->moved, moved);
    cr_expect_eq(plan->by_class[SITE_REFUSED], plan->refusal_count);
    cr_expect_eq(plan->by_class[SITE_EMULATED] + plan->by_class[SITE_SINGLE_STEPPED], plan->functions);
    cr_expect_eq(memcmp(plan->by_kind, by_kind, sizeof(by_kind)), 0);
    cr_expect_eq(memcmp(plan->by_refusal, by_refusal, sizeof(by_refusal)), 0);
    cr_expect_eq(memcmp(plan->by_no_return, by_no_return, sizeof(by_no_return)), 0);
}

struct subject subject_assembly(const char *source, const char *flags, const struct plan_options *options)
{
    char folder[] = "/tmp/tracectl-plan-XXXXXX", path[64], command[200];
    struct subject subject;
    FILE *file;

    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/asm.s", folder);
    file = fopen(path, "w");
    cr_assert(file && fputs(source, file) >= 0 && fclose(file) == 0);
    snprintf(command, sizeof(command), "gcc -nostdlib -o %s/asm %s %s", folder, path, flags);
    cr_assert_eq(system(command), 0, "%s", source);
    snprintf(path, sizeof(path), "%s/asm", folder);
    subject = subject_file(path, options);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
    return subject;
}
