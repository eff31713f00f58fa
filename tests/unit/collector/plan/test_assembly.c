/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hand-written assembly: which symbols are functions, and where these are probed. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/collector/subject.h"

static const struct image_function *named(const struct subject *subject, const char *name)
{
    for (size_t i = 0; i < subject->count; i++)
        if (!strcmp(subject->functions[i].name, name))
            return &subject->functions[i];
    return NULL;
}

/* Neither .type nor .size anywhere. The bytes behind `table` look like a call of `data`. */
Test(assembly, symbols_without_type_are_functions_when_they_are_called)
{
    AUTO_SUBJECT struct subject subject = subject_assembly(
        ".text\n.globl _start, global_label, called\n"
        "_start: call called\n call local_one\n jmp jumped_to\n"
        "called: push %rbp\n pop %rbp\n ret\n"
        "local_one: push %rbx\ninner: pop %rbx\n ret\n"
        "jumped_to: ret\n"
        "global_label: ret\n"
        "table: .byte 0xb8\n .byte 0xe8\n .long data - . - 4\n"
        "data: .quad 1\n",
        "-static", NULL);

    subject_check_totals(&subject);
    cr_assert_not_null(subject_probe(&subject, "called"));
    cr_assert_not_null(subject_probe(&subject, "local_one"));
    cr_expect_null(named(&subject, "inner"), "nothing calls it");
    cr_expect_null(named(&subject, "jumped_to"));
    cr_expect_null(named(&subject, "global_label"));
    cr_expect_null(named(&subject, "data"), "the call is the operand of another instruction");
    cr_expect_eq(named(&subject, "called")->flags,
                 IMAGE_FUNCTION_SIZE_GUESSED | IMAGE_FUNCTION_NO_TYPE | IMAGE_FUNCTION_PROVED);
    cr_expect_eq(named(&subject, "called")->size, 3, "up to the next function");
}

/* What falls into the next function is no call of it. */
Test(assembly, a_function_that_is_fallen_into_is_probed_at_its_calls_or_not_at_all)
{
    AUTO_SUBJECT struct subject subject = subject_assembly(
        ".text\n.globl _start\n"
        "_start: call first\n call second\n ud2\n"
        "first: push %rbx\n pop %rbx\n"
        "second: push %rbp\n pop %rbp\n ret\n",
        "-static", NULL);

    subject_check_totals(&subject);
    cr_assert_not_null(subject_probe(&subject, "first"));
    cr_expect_null(subject_probe(&subject, "second"));
    cr_expect_eq(subject_refusal(&subject, "second"), SITE_NO_SIZE);
}

/* Probes must not stand on a LOCK. */
Test(assembly, locked_first_instructions)
{
    AUTO_SUBJECT struct subject subject = subject_assembly(
        ".text\n.globl _start, add, spin\n.type add, @function\n.type spin, @function\n"
        "_start: lea word, %rdi\n call add\n call spin\n ud2\n"
        "add: lock incl (%rdi)\n ret\n.size add, .-add\n"
        "spin: lock btsl $0, (%rdi)\n jc spin\n ret\n.size spin, .-spin\n"
        ".data\nword: .long 0\n",
        "-static", NULL);
    const struct plan_probe *add = subject_probe(&subject, "add"), *spin = subject_probe(&subject, "spin");

    subject_check_totals(&subject);
    cr_assert_not_null(add);
    cr_expect_eq(add->kind, PLAN_AT_CALL, "a call is cheaper than the RET behind the LOCK");
    cr_assert_not_null(spin, "every turn passes its entry");
    cr_expect_eq(spin->kind, PLAN_AT_CALL);
}
