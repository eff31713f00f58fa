/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Depths of frames at calls: of functions written in assembly, with labels as symbols behind the calls; and
 * of what a compiler makes, against what the program itself finds when it runs. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "image/flow/call_depth.h"
#include "tests/unit/image/built.h"

#define UNKNOWN (-1)

struct program {
    struct elf_image *image;
    struct functions functions;
    struct disasm *disasm;
};

static struct program program_open(const char *name)
{
    struct program program = {.image = built_open(name)};

    program.functions = built_functions(program.image);
    cr_assert_eq(disasm_new(&program.disasm, NULL), 0);
    return program;
}

static void program_release(struct program *program)
{
    disasm_free(program->disasm);
    functions_release(&program->functions);
    elf_image_free(program->image);
}

/* The depth at the call in front of `return_address`, in that function. */
static int64_t depth_in(const struct program *program, const struct image_function *function,
                        uint64_t return_address)
{
    AUTO_FLOW_GRAPH struct flow_graph *graph = NULL;
    AUTO_FREE struct call_depth *calls = NULL;
    size_t count;

    cr_assert_eq(flow_graph_new(program->image, program->functions.items, program->functions.count, function,
                                program->disasm, &graph),
                 0);
    cr_assert_eq(call_depths(graph, &calls, &count), 0);
    for (size_t i = 0; i < count; i++)
        if (calls[i].return_address == return_address)
            return (int64_t)calls[i].bytes;
    return UNKNOWN;
}

/* The address of a label, from nm: labels inside functions are no functions. */
static uint64_t label(const char *wanted)
{
    char path[256], name[128], kind;
    unsigned long address;

    snprintf(path, sizeof(path), "%s/symbols", built_folder());
    AUTO_FCLOSE FILE *symbols = fopen(path, "r");
    cr_assert_not_null(symbols);
    while (fscanf(symbols, "%lx %c %127s", &address, &kind, name) == 3)
        if (strcmp(name, wanted) == 0)
            return address;
    cr_assert_fail("no label %s", wanted);
    return 0;
}

static int64_t depth_at(const struct program *program, const char *function, const char *behind)
{
    return depth_in(program, functions_named(&program->functions, function), label(behind));
}

#define FUNCTION(name) ".globl " #name "\n.type " #name ", @function\n" #name ":\n"
#define END(name) ".size " #name ", .-" #name "\n"

Test(call_depth, what_moves_the_stack_pointer)
{
    struct program program;

    built_write("depth.s",
                ".text\n" FUNCTION(callee) "ret\n" END(callee)                                       //
                FUNCTION(plain) "call callee\nplain1: ret\n" END(plain)                              //
                FUNCTION(framed) "push %rbp\n mov %rsp, %rbp\n push %rbx\n sub $24, %rsp\n"          //
                                 "call callee\nframed1: pushq $7\n call callee\n"                    //
                                 "framed2: add $8, %rsp\n call callee\n"                             //
                                 "framed3: leave\n ret\n" END(framed)                                //
                FUNCTION(grown) "push %rbp\n mov %rsp, %rbp\n call callee\n"                         //
                                "grown1: sub %rdi, %rsp\n call callee\n"                             //
                                "grown2: leave\n ret\n" END(grown)                                   //
                FUNCTION(ways) "test %edi, %edi\n jz 1f\n push %rax\n 1: call callee\n"              //
                               "ways1: ret\n" END(ways)                                              //
                FUNCTION(same) "test %edi, %edi\n jz 1f\n push %rax\n jmp 2f\n 1: sub $8, %rsp\n"    //
                               "2: call callee\nsame1: dec %edi\n jnz 2b\n pop %rax\n ret\n" END(same) //
                FUNCTION(loop) "1: push %rax\n call callee\nloop1: dec %edi\n jnz 1b\n ret\n" END(loop));
    built_run("gcc -nostdlib -static -Wl,-e,callee -o depth depth.s && nm depth > symbols");
    program = program_open("depth");
    cr_expect_eq(depth_at(&program, "plain", "plain1"), 0);
    cr_expect_eq(depth_at(&program, "framed", "framed1"), 40);
    cr_expect_eq(depth_at(&program, "framed", "framed2"), 48);
    cr_expect_eq(depth_at(&program, "framed", "framed3"), 40);
    cr_expect_eq(depth_at(&program, "grown", "grown1"), 8);
    cr_expect_eq(depth_at(&program, "grown", "grown2"), UNKNOWN);
    cr_expect_eq(depth_at(&program, "ways", "ways1"), UNKNOWN);
    cr_expect_eq(depth_at(&program, "same", "same1"), 8);
    cr_expect_eq(depth_at(&program, "loop", "loop1"), UNKNOWN);
    program_release(&program);
}

/* The callee finds out by itself: its return address, and how far above that its caller's lies. */
static const char compiled[] =
    "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    "#define APART __attribute__((noipa))\n"
    "static uintptr_t above;\n"
    "APART void tell(const char *who, int a, int b, int c, int d, int e, int f, int g)\n{\n"
    "    uintptr_t here = (uintptr_t)__builtin_dwarf_cfa();\n"
    "    printf(\"%s %lx %ld\\n\", who, (long)__builtin_return_address(0), (long)(above - 8 - here));\n}\n"
    "#define BEGIN above = (uintptr_t)__builtin_dwarf_cfa()\n"
    "APART int leaf(int n) { BEGIN; tell(\"leaf\", n, 2, 3, 4, 5, 6, 7); return n + 1; }\n"
    "APART int locals(int n) { volatile char room[200]; BEGIN; room[n] = 1;\n"
    "    for (int i = 0; i < n; i++) tell(\"locals\", room[i], 2, 3, 4, 5, 6, 7);\n"
    "    if (n > 1) tell(\"locals\", n, n, n, n, n, n, n); return room[n]; }\n"
    "APART int chooses(int n) { BEGIN; switch (n) { case 0: tell(\"chooses\", 1, 1, 1, 1, 1, 1, 1); break;\n"
    "    case 1: return leaf(n); case 2: abort(); default: tell(\"chooses\", n, 1, 1, 1, 1, 1, 1); } return "
    "n * 3; }\n"
    "int main(void) { return leaf(1) + locals(2) + chooses(0) + chooses(5) == 0; }\n";

static void compare(const char *options)
{
    char path[300], who[32];
    struct program program;
    uint64_t return_address;
    int64_t depth;
    int lines = 0;

    built_write("compiled.c", compiled);
    built_run("gcc -w -no-pie %s -o compiled compiled.c && ./compiled > told; test -s told", options);
    program = program_open("compiled");
    snprintf(path, sizeof(path), "%s/told", built_folder());
    AUTO_FCLOSE FILE *told = fopen(path, "r");
    cr_assert_not_null(told);
    for (; fscanf(told, "%31s %" SCNx64 " %" SCNd64, who, &return_address, &depth) == 3; lines++)
        cr_expect_eq(depth_in(&program, functions_named(&program.functions, who), return_address), depth,
                     "%s, %s: %" PRId64, options, who, depth);
    cr_expect_eq(lines, 6);
    program_release(&program);
}

Test(call_depth, as_compiled_programs_find_it)
{
    compare("-O0");
    compare("-O1 -fno-omit-frame-pointer");
    compare("-O2");
    compare("-Os");
}
