/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RETs are found by following the code, through fragments and jump tables, and nowhere else. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "collector/plan/return_sites.h"

#define AT 0x1000u

struct answer {
    int result;
    struct return_sites sites;
};

static void answer_release(struct answer *answer)
{
    return_sites_release(&answer->sites);
}

#define AUTO_ANSWER CLEANUP(answer_release)

/* Asks for the first of `functions`; `listed` is what a jump table has, an offset, 0 for none. */
static struct answer find(const uint8_t *code, size_t size, const struct image_function *functions,
                          size_t count, size_t listed)
{
    AUTO_DISASM struct disasm *disasm = NULL;
    AUTO_FLOW_MAP struct flow_map *map = NULL;
    struct answer answer = {0};

    cr_assert_eq(disasm_new(&disasm, NULL), 0);
    cr_assert_eq(flow_map_new(&map), 0);
    cr_assert_eq(flow_map_add(map, code, size, AT), 0);
    cr_assert_eq(flow_map_walk(map, functions, count, false), 0);
    if (listed)
        flow_map_set(map, AT + listed, FLOW_LISTED);
    answer.result = return_sites_find(disasm, map, functions, count, 0, &answer.sites);
    return answer;
}

static bool has(const struct answer *answer, size_t offset)
{
    for (size_t i = 0; i < answer->sites.count; i++)
        if (answer->sites.items[i] == AT + offset)
            return true;
    return false;
}

Test(return_sites, of_all_ways)
{
    /* 0: test; 2: je 5; 4: ret; 5: jmp 8; 7: ret, data; 8: call; 13: repz ret */
    static const uint8_t code[] = {0x85, 0xff, 0x74, 0x01, 0xc3, 0xeb, 0x01, 0xc3,
                                   0xe8, 0,    0,    0,    0,    0xf3, 0xc3};
    const struct image_function function = {.name = "f", .address = AT, .size = sizeof(code)};
    AUTO_ANSWER struct answer answer = find(code, sizeof(code), &function, 1, 0);
    AUTO_ANSWER struct answer with_table = find(code, sizeof(code), &function, 1, 7);

    cr_expect_eq(answer.result, 0);
    cr_expect_eq(answer.sites.count, 2);
    cr_expect(has(&answer, 4) && has(&answer, 13));
    cr_expect_eq(with_table.sites.count, 3);
    cr_expect(has(&with_table, 7));
}

Test(return_sites, of_fragments_but_not_of_other_functions)
{
    /* 0: je 6; 2: jne 8; 4: jmp 4+2... the fragment at 6: ret; the other function at 8: ret */
    static const uint8_t code[] = {0x74, 0x04, 0x75, 0x04, 0xeb, 0xfe, 0xc3, 0x90, 0xc3};
    const struct image_function functions[] = {
        {.name = "f", .address = AT, .size = 6},
        {.name = "f.cold", .address = AT + 6, .size = 2, .flags = IMAGE_FUNCTION_FRAGMENT},
        {.name = "g", .address = AT + 8, .size = 1},
    };
    AUTO_ANSWER struct answer answer = find(code, sizeof(code), functions, ARRAY_SIZE(functions), 0);

    cr_expect_eq(answer.result, 0);
    cr_expect_eq(answer.sites.count, 1);
    cr_expect(has(&answer, 6));
}

Test(return_sites, are_not_told_where_the_code_is_not_understood)
{
    static const uint8_t code[] = {0x74, 0x01, 0xc3, 0x06, 0xc3};
    const struct image_function function = {.name = "f", .address = AT, .size = sizeof(code)};
    AUTO_ANSWER struct answer answer = find(code, sizeof(code), &function, 1, 0);

    cr_expect_eq(answer.result, -EILSEQ);
}
