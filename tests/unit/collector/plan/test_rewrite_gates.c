/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where programs ask for the right to change their code. */
#include <criterion/criterion.h>

#include "base/array.h"
#include "bpf/wire.h"
#include "collector/plan/rewrite_gates.h"

Test(rewrite_gates, stubs_and_the_functions_themselves_are_found_by_each_of_their_names)
{
    char *aliases[] = {"mprotect", NULL};
    const struct image_function functions[] = {
        {.name = "mprotect@plt", .file_offset = 0x10, .flags = IMAGE_FUNCTION_PLT},
        {.name = "syscall@plt", .file_offset = 0x20, .flags = IMAGE_FUNCTION_PLT},
        {.name = "__protect_memory", .aliases = aliases, .file_offset = 0x30},
        {.name = "mprotect_all", .file_offset = 0x40},
        {.name = "puts@plt", .file_offset = 0x50, .flags = IMAGE_FUNCTION_PLT},
        {.name = "mprotect@plt", .file_offset = 0x60, .flags = IMAGE_FUNCTION_PLT | IMAGE_FUNCTION_NO_STUB},
        {.name = "mmap64@plt", .file_offset = 0x70, .flags = IMAGE_FUNCTION_PLT},
    };
    struct rewrite_gates gates;

    rewrite_gates_find(functions, ARRAY_SIZE(functions), &gates);
    cr_assert_eq(gates.count, 4);
    cr_assert_eq(gates.offsets[0], 0x10);
    cr_assert_eq(gates.cookies[0], REWRITE_BY_MPROTECT);
    cr_assert_eq(gates.cookies[1], REWRITE_BY_NUMBER);
    cr_assert_eq(gates.offsets[2], 0x30);
    cr_assert_eq(gates.offsets[3], 0x70);
    cr_assert_eq(gates.cookies[3], REWRITE_BY_MMAP);
    cr_assert_not(rewrite_gate_is(&functions[3]));
    cr_assert_not(rewrite_gate_is(&functions[5]), "its address is that of data");
}

Test(rewrite_gates, no_more_than_there_is_room_for)
{
    struct image_function functions[REWRITE_GATES_MAX + 1];
    struct rewrite_gates gates;

    for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
        functions[i] = (struct image_function){.name = "mprotect@plt", .file_offset = i};
    rewrite_gates_find(functions, ARRAY_SIZE(functions), &gates);
    cr_assert_eq(gates.count, REWRITE_GATES_MAX);
}
