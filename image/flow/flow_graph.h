/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control flow of one function, read off its instructions: basic blocks and where each leads, dominators,
 * natural loops and how they nest, and which point can come after which.
 *
 * The code is followed from the function's entry, through its fragments (NAME.cold) too. Calls are taken to
 * return, but for those of functions that are known by name not to. Jump tables are read as gcc and clang
 * write them (flow_switch.h). What is not understood is said, so that nobody takes a guess for knowledge:
 *
 * - a block whose indirect jump was not resolved is `unknown`: it may lead anywhere in the function;
 * - code that nothing was seen to lead to, and that leads back into what was followed (handlers of
 * exceptions, targets of computed jumps), makes every call of the function such a block
 * (flow_graph.unseen_entries);
 * - a function that calls setjmp() or the like may continue after that call at any time
 * (flow_graph.returns_twice);
 * - of a loop with several entries no header can be named: blocks of such a region are `irreducible`.
 *
 * Dominators: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm". Natural loops: Aho, Sethi and
 * Ullman, section 10.4; those that share a header are one loop.
 */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_GRAPH_H
#define TRACECTL_IMAGE_FLOW_FLOW_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "image/arch/disasm.h"
#include "image/functions/functions.h"

#define FLOW_NONE UINT32_MAX

enum flow_block_flags {
    FLOW_BLOCK_UNKNOWN = 1 << 0, /* ends with an indirect jump that was not resolved */
    FLOW_BLOCK_TAIL = 1 << 1,  /* may leave the function by a jump: what is called so takes over its frame */
    FLOW_BLOCK_CALLS = 1 << 2, /* holds a call */
    FLOW_BLOCK_IRREDUCIBLE = 1 << 3, /* in a cycle with several entries */
};

struct flow_block {
    uint64_t start, end;  /* addresses; `end` is exclusive */
    size_t first, count;  /* of its instructions in flow_graph.instructions */
    uint32_t next, nexts; /* of its successors in flow_graph.successors */
    uint32_t order;       /* its place in reverse postorder */
    uint32_t dominator;   /* the block that immediately dominates it; of the entry, itself */
    uint32_t loop;        /* the innermost loop that holds it, or FLOW_NONE */
    unsigned flags;       /* enum flow_block_flags */
};

struct flow_loop {
    uint32_t header; /* block */
    uint32_t parent; /* the loop around it, or FLOW_NONE */
    uint32_t depth;  /* 1: in no other loop */
};

struct flow_graph {
    uint64_t entry;                   /* address of the function */
    struct instruction *instructions; /* sorted by address; their code is borrowed from the image */
    size_t instruction_count, instruction_capacity;
    struct flow_block *blocks; /* sorted by address */
    uint32_t block_count;
    uint32_t first; /* the block of the entry */
    uint32_t *successors;
    size_t successor_count, successor_capacity;
    uint64_t *tails; /* targets of direct jumps out of the function */
    size_t tail_count, tail_capacity;
    struct flow_loop *loops; /* outer loops before those inside them */
    uint32_t loop_count;
    bool unseen_entries, returns_twice;
};

/* The graph of `function`, one of the `count` functions of `image` (image_functions()); fragments are no
 * functions of their own. The image is borrowed for as long as the graph lives. -ENOENT: the code cannot be
 * read; -E2BIG: it is larger than any compiled function (4 MiB); -ENOMEM. */
int flow_graph_new(struct elf_image *image, const struct image_function *functions, size_t count,
                   const struct image_function *function, struct disasm *disasm,
                   struct flow_graph **ret_graph);
void flow_graph_free(struct flow_graph *graph);

DEFINE_CLEANUP(cleanup_flow_graph, struct flow_graph *, flow_graph_free)
#define AUTO_FLOW_GRAPH CLEANUP(cleanup_flow_graph)

/* Whether all that can happen in the function is in the graph: no block is unknown, nothing enters unseen, no
 * call returns twice. */
bool flow_graph_is_closed(const struct flow_graph *graph);

/* The block that holds `address`, which may be in the middle of an instruction; FLOW_NONE: no path was seen
 * to lead there. O(log blocks). */
uint32_t flow_graph_block(const struct flow_graph *graph, uint64_t address);

/* The instruction that holds `address`, or NULL. O(log instructions). */
const struct instruction *flow_graph_instruction(const struct flow_graph *graph, uint64_t address);

/* The blocks that follow on `block`. */
static inline const uint32_t *flow_graph_next(const struct flow_graph *graph, uint32_t block)
{
    return graph->successors + graph->blocks[block].next;
}

/* Whether every way from the entry to `block` leads over `dominator`. */
bool flow_graph_dominates(const struct flow_graph *graph, uint32_t dominator, uint32_t block);

/* Whether `block` is in `loop`, or in a loop inside it. True for FLOW_NONE: the function as a whole. */
bool flow_graph_in_loop(const struct flow_graph *graph, uint32_t loop, uint32_t block);

/* Whether the edge closes a loop: it leads to the header of one that its origin is in. */
bool flow_graph_is_back_edge(const struct flow_graph *graph, uint32_t from, uint32_t to);

/* The innermost loop that holds both blocks, or FLOW_NONE. */
uint32_t flow_graph_common_loop(const struct flow_graph *graph, uint32_t a, uint32_t b);

enum flow_order {
    FLOW_SAME,   /* the same instruction */
    FLOW_BEFORE, /* the first may come before the second, and not the other way round */
    FLOW_AFTER,
    FLOW_UNORDERED, /* neither follows on the other: they are on different branches; or each on the other */
    FLOW_UNKNOWN,   /* the graph does not say: see the top of this file */
};

/*
 * How two points of the function lie, inside one iteration of every loop that holds both: the second comes
 * after the first when it can be reached from it without closing one of those loops (loops that hold only one
 * of them may be closed: whoever is in an inner loop comes before what follows on it). -ENOMEM, or 0.
 */
int flow_graph_order(const struct flow_graph *graph, uint64_t a, uint64_t b, enum flow_order *ret_order);

#endif
