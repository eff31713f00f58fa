/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions of this very test, of a stripped copy of it, and of hand-made images. */
#include <criterion/criterion.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "image/functions/functions.h"
#include "tests/unit/image/built.h"
#include "tests/unit/image/tiny_elf.h"

#define GLOBAL ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define WEAK ELF64_ST_INFO(STB_WEAK, STT_FUNC)
#define LOCAL ELF64_ST_INFO(STB_LOCAL, STT_FUNC)

static struct functions functions_of_path(const char *path)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    struct error err = {0};

    cr_assert_eq(elf_image_open(path, &image, &err), 0, "%s", err.message);
    return built_functions(image);
}

static struct functions functions_of_tiny(const struct tiny_elf *tiny)
{
    AUTO_CLOSE int fd = tiny_elf_file(tiny);
    AUTO_ELF_IMAGE struct elf_image *image = NULL;

    cr_assert_eq(elf_image_open_fd(fd, "tiny", &image, NULL), 0);
    return built_functions(image);
}

static int program_bias(struct dl_phdr_info *info, size_t size, void *ctx)
{
    *(uintptr_t *)ctx = info->dlpi_addr; /* the program itself comes first */
    return 1;
}

static uintptr_t bias(void)
{
    uintptr_t value = 0;

    dl_iterate_phdr(program_bias, &value);
    return value;
}

/* ---------------------------------------------------------------------------------------------- this test */

int known_global(int n);
int __known_alias(int n);

enum { KNOWN_GLOBAL_LINE = __LINE__ + 1 };
__attribute__((noinline, noclone)) int known_global(int n)
{
    return n * 3 + (int)getppid();
}
int __known_alias(int n) __attribute__((alias("known_global")));

__attribute__((noinline, noclone, used)) static int known_static(int n)
{
    return known_global(n) + 1;
}

Test(functions, of_this_program)
{
    AUTO_FUNCTIONS struct functions functions = functions_of_path("/proc/self/exe");
    const struct image_function *global = functions_named(&functions, "known_global");
    const struct image_function *local = functions_named(&functions, "known_static");

    cr_assert_not_null(global);
    cr_assert_not_null(local);
    cr_expect_eq(global->address + bias(), (uintptr_t)known_global);
    cr_expect_eq(local->address + bias(), (uintptr_t)known_static);
    cr_expect_eq(global->flags, 0);
    cr_expect_gt(global->size, 4);
    cr_assert_not_null(global->aliases, "the alias is missing");
    cr_expect_str_eq(global->aliases[0], "__known_alias");
    cr_expect_null(global->aliases[1]);
    cr_expect_null(functions_named(&functions, "__known_alias"), "an alias is not a second function");
    cr_expect_null(global->demangled);
    cr_expect_gt(image_functions_own(functions.items, functions.count), 10);
    cr_expect_lt(image_functions_own(functions.items, functions.count), functions.count);
}

Test(functions, are_sorted_and_each_address_comes_once)
{
    AUTO_FUNCTIONS struct functions functions = functions_of_path("/proc/self/exe");

    for (size_t i = 1; i < functions.count; i++)
        cr_expect_lt(functions.items[i - 1].address, functions.items[i].address);
    for (size_t i = 0; i < functions.count; i++)
        cr_expect_gt(functions.items[i].size, 0, "%s", functions.items[i].name);
}

Test(functions, have_lines)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    const char *file = NULL;
    unsigned line = 0;

    cr_assert_eq(elf_image_open("/proc/self/exe", &image, NULL), 0);
    if (!elf_image_facts(image)->has_debug_info)
        cr_skip_test("built without -g");
    AUTO_FUNCTIONS struct functions functions = built_functions(image);
    cr_assert(image_function_source(image, functions_named(&functions, "known_global"), &file, &line));
    cr_expect_str_eq(strrchr(file, '/') + 1, "test_functions.c");
    cr_expect_eq(line, KNOWN_GLOBAL_LINE);
    file = NULL;
    cr_expect_not(image_function_source(image, functions_named(&functions, "getppid@plt"), &file, &line));
    cr_expect_null(file, "an output was touched by a failure");
}

Test(functions, of_the_procedure_linkage_table)
{
    AUTO_FUNCTIONS struct functions functions = functions_of_path("/proc/self/exe");
    const struct image_function *stub = functions_named(&functions, "getppid@plt");
    pid_t (*call)(void);

    cr_assert_not_null(stub);
    cr_expect_eq(stub->flags, IMAGE_FUNCTION_PLT);
    call = (pid_t(*)(void))(uintptr_t)(stub->address + bias());
    cr_expect_eq(call(), getppid(), "the stub named getppid@plt is another function's");
}

Test(functions, entry_point_is_marked)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    size_t marked = 0;

    cr_assert_eq(elf_image_open("/proc/self/exe", &image, NULL), 0);
    AUTO_FUNCTIONS struct functions functions = built_functions(image);
    for (size_t i = 0; i < functions.count; i++) {
        if (!(functions.items[i].flags & IMAGE_FUNCTION_ENTRY_POINT))
            continue;
        marked++;
        cr_expect_eq(functions.items[i].address, elf_image_facts(image)->entry);
        cr_expect_str_eq(functions.items[i].name, "_start");
    }
    cr_expect_eq(marked, 1);
}

Test(functions, are_found_by_address)
{
    AUTO_FUNCTIONS struct functions functions = functions_of_path("/proc/self/exe");
    const struct image_function *global = functions_named(&functions, "known_global");

    cr_assert_not_null(global);
    cr_expect_eq(image_functions_find(functions.items, functions.count, global->address), global);
    cr_expect_eq(image_functions_find(functions.items, functions.count, global->address + global->size - 1),
                 global);
    cr_expect_neq(image_functions_find(functions.items, functions.count, global->address + global->size),
                  global);
    cr_expect_null(image_functions_find(functions.items, functions.count, 0));
    cr_expect_null(image_functions_find(functions.items, functions.count, UINT64_MAX));
    cr_expect_null(image_functions_find(NULL, 0, 1));
}

/* ---------------------------------------------------------------------------------------------- hand-made */

static struct functions functions_of_symbols(const struct tiny_symbol *symbols, size_t count)
{
    uint8_t text[64];
    const struct tiny_elf tiny = {
        .text = text, .text_size = sizeof(text), .symbols = symbols, .symbol_count = count};

    memset(text, 0xc3, sizeof(text));
    return functions_of_tiny(&tiny);
}

Test(functions, without_symbols_there_are_none)
{
    AUTO_FUNCTIONS struct functions functions = functions_of_symbols(NULL, 0);

    cr_expect_eq(functions.count, 0);
    cr_expect_eq(image_functions_own(functions.items, functions.count), 0);
}

/* The names of a function, the best first, with blanks between them. */
static void expect_names(const struct tiny_symbol *symbols, size_t count, const char *expected)
{
    AUTO_FUNCTIONS struct functions functions = functions_of_symbols(symbols, count);
    char names[256];

    cr_assert_eq(functions.count, 1);
    strcpy(names, functions.items[0].name);
    for (char **alias = functions.items[0].aliases; alias && *alias; alias++)
        sprintf(names + strlen(names), " %s", *alias);
    cr_expect_str_eq(names, expected);
    cr_expect_eq(functions.items[0].file_offset, TINY_TEXT_OFFSET);
}

Test(functions, the_best_of_several_names_is_taken)
{
    static const struct tiny_symbol any[] = {
        {"tiny", 0, 8, LOCAL},    {"weak", 0, 8, WEAK},       {"__global", 0, 8, GLOBAL},
        {"global", 0, 8, GLOBAL}, {"longname", 0, 8, GLOBAL}, {"global@@V_2", 0, 8, GLOBAL},
    };
    static const struct tiny_symbol weak_is_used[] = {{"_IO_puts", 0, 8, GLOBAL}, {"puts", 0, 8, WEAK}};
    static const struct tiny_symbol weak_is_old[] = {{"index", 0, 8, WEAK}, {"strchr", 0, 8, GLOBAL}};
    static const struct tiny_symbol prefixed[] = {{"PMPI_Send", 0, 8, GLOBAL}, {"MPI_Send", 0, 8, WEAK}};
    static const struct tiny_symbol versions[] = {
        {"copy@V_1", 0, 8, GLOBAL}, {"move_it@@V_2", 0, 8, GLOBAL}, {"copy", 0, 8, LOCAL}};

    expect_names(any, ARRAY_SIZE(any), "global longname weak __global tiny");
    expect_names(weak_is_used, 2, "puts _IO_puts");
    expect_names(weak_is_old, 2, "strchr index");
    expect_names(prefixed, 2, "MPI_Send PMPI_Send");
    expect_names(versions, 3, "move_it copy");
}

Test(functions, sizes_are_resolved_and_bounded)
{
    const struct tiny_symbol symbols[] = {{"zero", 0, 0, GLOBAL},
                                          {"next", 16, 8, GLOBAL},
                                          {"last", 32, 0, GLOBAL},
                                          {"huge", 40, UINT64_MAX, GLOBAL}};
    AUTO_FUNCTIONS struct functions functions = functions_of_symbols(symbols, 4);

    cr_assert_eq(functions.count, 4);
    cr_expect_eq(functions.items[0].size, 16);
    cr_expect_eq(functions.items[0].flags, IMAGE_FUNCTION_SIZE_GUESSED | IMAGE_FUNCTION_PROVED);
    cr_expect_eq(functions.items[1].size, 8);
    cr_expect_eq(functions.items[1].flags, 0);
    cr_expect_eq(functions.items[2].size, 8);
    cr_expect_eq(functions.items[2].flags, IMAGE_FUNCTION_SIZE_GUESSED | IMAGE_FUNCTION_PROVED);
    cr_expect_eq(functions.items[3].size, 24, "a size must end with its section");
}

Test(functions, kinds_are_flagged)
{
    const struct tiny_symbol symbols[] = {
        {"outer", 0, 16, GLOBAL},
        {"inner", 8, 4, LOCAL},
        {"behind", 16, 8, GLOBAL},
        {"behind.cold", 24, 4, LOCAL},
        {"behind.cold.3", 28, 4, LOCAL},
        {"uncold.colder", 32, 4, LOCAL},
        {"chosen", 40, 8, ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC)},
        {"chosen_resolver", 40, 8, GLOBAL},
    };
    AUTO_FUNCTIONS struct functions functions = functions_of_symbols(symbols, 8);

    cr_assert_eq(functions.count, 7);
    cr_expect_eq(functions.items[0].flags, 0);
    cr_expect_eq(functions.items[1].flags, IMAGE_FUNCTION_INSIDE);
    cr_expect_eq(functions.items[2].flags, 0);
    cr_expect_eq(functions.items[3].flags, IMAGE_FUNCTION_FRAGMENT);
    cr_expect_eq(functions.items[4].flags, IMAGE_FUNCTION_FRAGMENT);
    cr_expect_eq(functions.items[5].flags, 0);
    cr_expect_eq(functions.items[6].flags, IMAGE_FUNCTION_IFUNC);
    cr_expect_str_eq(functions.items[6].name, "chosen");
}

Test(functions, what_is_no_function_is_left_out)
{
    const struct tiny_symbol symbols[] = {
        {"object", 0, 8, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)},
        {"label", 8, 0, ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE)},
        {"outside", 0x100000, 8, GLOBAL},
        {"below", -(uint64_t)TINY_TEXT, 8, GLOBAL},
        {"", 16, 8, GLOBAL},
        {"function", 24, 8, GLOBAL},
    };
    AUTO_FUNCTIONS struct functions functions = functions_of_symbols(symbols, 6);

    cr_assert_eq(functions.count, 1);
    cr_expect_str_eq(functions.items[0].name, "function");
}

Test(functions, names_are_demangled)
{
    const struct tiny_symbol symbols[] = {{"_ZN3foo3barEi", 0, 8, GLOBAL}, {"plain", 8, 8, GLOBAL}};
    AUTO_FUNCTIONS struct functions functions = functions_of_symbols(symbols, 2);

    cr_assert_eq(functions.count, 2);
    cr_assert_not_null(functions.items[0].demangled);
    cr_expect_str_eq(functions.items[0].demangled, "foo::bar(int)");
    cr_expect_str_eq(image_function_display_name(&functions.items[0]), "foo::bar(int)");
    cr_expect_null(functions.items[1].demangled);
    cr_expect_str_eq(image_function_display_name(&functions.items[1]), "plain");
}
