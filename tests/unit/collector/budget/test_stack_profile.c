/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a stack says about this very program, whose calls are known. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "collector/budget/stack_profile.h"
#include "collector/process/process.h"
#include "image/functions/functions.h"

static uint64_t seen;

__attribute__((noinline)) void heat_test_callee(void)
{
    seen = (uint64_t)__builtin_return_address(0);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void heat_test_caller(void)
{
    heat_test_callee();
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void heat_test_caller_by_pointer(void (*volatile callee)(void))
{
    callee();
    __asm__ volatile("" ::: "memory");
}

static struct traced_image image;
static uint64_t bias;
static bool *marks;

static void open_own(void)
{
    uint64_t start, offset;
    struct error err = {0};

    cr_assert_eq(elf_image_open("/proc/self/exe", &image.elf, &err), 0, "%s", err.message);
    cr_assert_eq(image_functions(image.elf, &image.functions, &image.function_count, &err), 0);
    cr_assert_eq(stat("/proc/self/exe", &image.file), 0);
    cr_assert_eq(process_exe_mapping(getpid(), &start, &offset), 0);
    cr_assert_eq(elf_image_load_bias(image.elf, start, offset, &bias), 0);
    marks = calloc(image.function_count, sizeof(*marks));
    cr_assert(marks);
}

static void close_own(void)
{
    free(marks);
    image_functions_free(image.functions, image.function_count);
    elf_image_free(image.elf);
}

/* The marked functions of this file, as letters. */
static const char *marked(void)
{
    static char text[4];
    size_t count = 0, others = 0;

    for (size_t i = 0; i < image.function_count; i++) {
        const char *name = image.functions[i].name;

        if (!marks[i])
            continue;
        if (strncmp(name, "heat_test_", 10))
            others++;
        else
            text[count++] = strcmp(name, "heat_test_callee") ? 'r' : 'e';
    }
    text[count] = '\0';
    cr_expect_eq(others, 0);
    return text;
}

Test(heat, a_return_address_tells_caller_and_callee, .init = open_own, .fini = close_own)
{
    __u64 words[3] = {0};

    heat_test_caller();
    words[1] = seen;
    stack_profile_read_stack(&image, bias, words, 3, marks);
    cr_expect_str_eq(marked(), "er");
}

Test(heat, of_a_call_by_pointer_it_tells_the_caller, .init = open_own, .fini = close_own)
{
    __u64 words[1];

    heat_test_caller_by_pointer(heat_test_callee);
    words[0] = seen;
    stack_profile_read_stack(&image, bias, words, 1, marks);
    cr_expect_str_eq(marked(), "r");
}

Test(heat, what_stands_behind_no_call_says_nothing, .init = open_own, .fini = close_own)
{
    __u64 words[] = {(uintptr_t)heat_test_caller, (uintptr_t)heat_test_callee + 1, seen + 1, 0, ~0ull, bias};

    stack_profile_read_stack(&image, bias, words, sizeof(words) / sizeof(words[0]), marks);
    cr_expect_str_eq(marked(), "");
}
