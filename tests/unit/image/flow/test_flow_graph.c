/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Blocks, loops and order of functions written in assembly, with labels as symbols where the tests look. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "image/flow/flow_graph.h"
#include "tests/unit/image/built.h"

struct program {
    struct elf_image *image;
    struct functions functions;
    struct disasm *disasm;
};

static struct program program_build(const char *source)
{
    struct program program;

    built_write("flow.s", source);
    built_run("gcc -nostdlib -static -o flow flow.s && nm flow > symbols");
    program.image = built_open("flow");
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

static struct flow_graph *graph_of(const struct program *program, const char *name)
{
    struct flow_graph *graph = NULL;

    cr_assert_eq(flow_graph_new(program->image, program->functions.items, program->functions.count,
                                functions_named(&program->functions, name), program->disasm, &graph),
                 0);
    return graph;
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

static enum flow_order order(const struct flow_graph *graph, const char *a, const char *b)
{
    enum flow_order found, reverse;

    cr_assert_eq(flow_graph_order(graph, label(a), label(b), &found), 0);
    cr_assert_eq(flow_graph_order(graph, label(b), label(a), &reverse), 0);
    cr_assert_eq(reverse, found == FLOW_BEFORE ? FLOW_AFTER : found == FLOW_AFTER ? FLOW_BEFORE : found);
    return found;
}

#define FUNCTION(name) ".globl " #name "\n.type " #name ", @function\n" #name ":\n"
#define END(name) ".size " #name ", .-" #name "\n"

Test(flow_graph, branches_and_nested_loops)
{
    struct program program = program_build(".text\n" FUNCTION(
        _start) "start: test %edi, %edi\n jz other\n"
                "left: nop\n jmp join\n"
                "other: nop\n"
                "join: xor %ebx, %ebx\n"
                "outer: xor %ecx, %ecx\n"
                "inner: inc %ecx\n cmp $3, %ecx\n jne inner\n"
                "after: inc %ebx\n cmp $3, %ebx\n jne outer\n"
                "last: ret\n" END(_start));
    struct flow_graph *graph = graph_of(&program, "_start");
    uint32_t inner = flow_graph_block(graph, label("inner")), after = flow_graph_block(graph, label("after"));

    cr_assert(flow_graph_is_closed(graph));
    cr_assert_eq(graph->loop_count, 2);
    cr_assert_eq(graph->loops[graph->blocks[inner].loop].depth, 2);
    cr_assert_eq(graph->loops[graph->blocks[inner].loop].parent, graph->blocks[after].loop);
    cr_assert_eq(flow_graph_common_loop(graph, inner, after), graph->blocks[after].loop);
    cr_assert(flow_graph_dominates(graph, flow_graph_block(graph, label("join")), inner));
    cr_assert_not(flow_graph_dominates(graph, flow_graph_block(graph, label("left")), inner));

    cr_assert_eq(order(graph, "left", "other"), FLOW_UNORDERED);
    cr_assert_eq(order(graph, "left", "join"), FLOW_BEFORE);
    cr_assert_eq(order(graph, "start", "other"), FLOW_BEFORE);
    cr_assert_eq(order(graph, "inner", "after"), FLOW_BEFORE);
    cr_assert_eq(order(graph, "inner", "last"), FLOW_BEFORE);
    cr_assert_eq(order(graph, "inner", "inner"), FLOW_SAME);
    flow_graph_free(graph);
    program_release(&program);
}

/* A loop whose only way out is its head: what follows it comes after its body all the same. */
Test(flow_graph, body_before_exit_at_the_head)
{
    struct program program = program_build(".text\n" FUNCTION(
        _start) "head: cmp $3, %ecx\n je out\n"
                "body: inc %ecx\n jmp head\n"
                "out: ret\n" END(_start));
    struct flow_graph *graph = graph_of(&program, "_start");

    cr_assert_eq(graph->loop_count, 1);
    cr_assert_eq(order(graph, "body", "out"), FLOW_BEFORE);
    cr_assert_eq(order(graph, "head", "body"), FLOW_BEFORE);
    flow_graph_free(graph);
    program_release(&program);
}

/* A cycle that is entered in two places is no natural loop; what is before and behind it is ordered. */
Test(flow_graph, several_entries)
{
    struct program program = program_build(".text\n" FUNCTION(
        _start) "first: test %edi, %edi\n jz second\n"
                "one: inc %ecx\n"
                "second: dec %edx\n jnz one\n"
                "behind: ret\n" END(_start));
    struct flow_graph *graph = graph_of(&program, "_start");

    cr_assert_eq(graph->loop_count, 0);
    cr_assert(graph->blocks[flow_graph_block(graph, label("one"))].flags & FLOW_BLOCK_IRREDUCIBLE);
    cr_assert_not(graph->blocks[flow_graph_block(graph, label("first"))].flags & FLOW_BLOCK_IRREDUCIBLE);
    cr_assert_eq(order(graph, "one", "second"), FLOW_UNORDERED);
    cr_assert_eq(order(graph, "first", "one"), FLOW_BEFORE);
    cr_assert_eq(order(graph, "second", "behind"), FLOW_BEFORE);
    flow_graph_free(graph);
    program_release(&program);
}

/* A switch whose table is read, and a jump of which nothing is known. */
Test(flow_graph, indirect_jumps)
{
    struct program program = program_build(".text\n" FUNCTION(
        _start) "top: cmp $2, %edi\n ja out\n mov %edi, %edi\n lea table(%rip), %rdx\n"
                " movslq (%rdx,%rdi,4), %rax\n add %rdx, %rax\n jmp *%rax\n"
                "zero: nop\n jmp out\n"
                "one: nop\n"
                "two: nop\n"
                "out: ret\n" END(_start) FUNCTION(
                    lost) "enter: test %edi, %edi\n jz away\n"
                          "before: nop\n jmp done\n"
                          "away: jmp *%rax\n"
                          "done: ret\n" END(
                              lost) ".section .rodata\ntable: .long zero-table, one-table, two-table\n");
    struct flow_graph *graph = graph_of(&program, "_start");

    cr_assert(flow_graph_is_closed(graph));
    cr_assert_eq(order(graph, "zero", "one"), FLOW_UNORDERED);
    cr_assert_eq(order(graph, "one", "two"), FLOW_BEFORE);
    cr_assert_eq(order(graph, "zero", "out"), FLOW_BEFORE);
    flow_graph_free(graph);

    graph = graph_of(&program, "lost");
    cr_assert_not(flow_graph_is_closed(graph));
    cr_assert_eq(order(graph, "before", "done"), FLOW_BEFORE, "nothing leads from there to the jump");
    cr_assert_eq(order(graph, "enter", "done"), FLOW_BEFORE);
    cr_assert_eq(order(graph, "enter", "away"), FLOW_UNKNOWN, "the jump may lead back");
    flow_graph_free(graph);
    program_release(&program);
}

/* Code that nothing leads to, as handlers of exceptions are, leads back behind the call. */
Test(flow_graph, unseen_entries)
{
    struct program program = program_build(".text\n" FUNCTION(
        _start) "work: call other\n"
                "more: nop\n"
                "rest: ret\n"
                "handler: inc %eax\n jmp more\n" END(_start) FUNCTION(other) "nop\n ret\n" END(other));
    struct flow_graph *graph = graph_of(&program, "_start");

    cr_assert(graph->unseen_entries);
    cr_assert_eq(flow_graph_block(graph, label("handler")), FLOW_NONE);
    cr_assert_eq(order(graph, "handler", "rest"), FLOW_UNKNOWN);
    flow_graph_free(graph);
    program_release(&program);
}
