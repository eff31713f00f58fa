/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The probes of one image: which functions, at which file offsets, with or without a return probe, and how
 * many were refused for which reason.
 *
 * A function is seen by one probe in its entry block (site.h) or, if that would be dear or cannot be and all
 * its calls are known, by probes on these (call_sites.h). Its returns are inferred. A return probe replaces
 * the return address on the stack, and not every program that looks at its own stack can be told from
 * outside: so there are none unless they are asked for (PLAN_RETURNS_PROBE), and then not where they are
 * known to harm (return_rules.h, image_no_return() of plan.c).
 */
#ifndef TRACECTL_COLLECTOR_PLAN_PLAN_H
#define TRACECTL_COLLECTOR_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collector/plan/cost.h"
#include "collector/plan/site.h"
#include "image/elf/elf_image.h"
#include "image/functions/functions.h"

struct error;
struct flow_map;

/* Why a probed function has no return probe. */
enum plan_no_return {
    PLAN_RETURN_PROBED,
    PLAN_RETURN_NOT_WANTED,  /* plan_options.returns */
    PLAN_RETURN_UNWIND,      /* an exception or a panic may pass through frames of the image */
    PLAN_RETURN_STATIC,      /* static image: the C library's hand-written assembly is inside */
    PLAN_RETURN_STACKS,      /* something in the image switches stacks or looks at them (plan.no_returns) */
    PLAN_RETURN_ENTRY_POINT, /* the stack pointer is at argc there */
    PLAN_RETURN_NAME,        /* setjmp, vfork, _Unwind_*, dlsym, ...: uses or replaces its return address */
    PLAN_RETURN_CODE,        /* its code does: return_code_forbids() */
    PLAN_RETURN_GO,          /* Go moves its stacks, and reads them */
    PLAN_RETURN_NO_PLACE,    /* nowhere in its entry block does the return address lie at [rsp] */
    PLAN_RETURN_SITES,       /* there is a probe on each of its RETs instead */
    PLAN_RETURN_UNDECODED,   /* there should be, but not all of its code can be decoded */
    PLAN_RETURN_AT_CALLS, /* it is seen at its calls, where a return probe would replace the wrong address */
    PLAN_NO_RETURNS,
};

/* How returns come to be known (`record --returns`). */
enum plan_returns {
    PLAN_RETURNS_INFER, /* no return probes: entries carry stack pointer and return address */
    PLAN_RETURNS_PROBE, /* the kernel's return probes wherever nothing speaks against one; else inferred */
    PLAN_RETURNS_NONE,  /* calls only */
    PLAN_RETURNS_SITES, /* a probe on every RET instruction */
    PLAN_RETURNS_EXACT, /* functions with inline probes have them at their ends, too (displace_exit.h); those of
                           all others are inferred */
    PLAN_RETURNS_MODES,
};

/* What is probed to see a call (or its end). */
enum plan_site_kind {
    PLAN_AT_ENTRY,  /* an instruction of the function's entry block */
    PLAN_AT_CALL,   /* a `call` of the function, in whatever function it stands */
    PLAN_AT_RETURN, /* a RET of the function */
    PLAN_AT_JUMP,   /* a `jmp` to the function, a tail call, in another one: the stack is as at the entry */
    PLAN_SITE_KINDS,
};

struct plan_options {
    /* Which functions are wanted; NULL: all. Asked once for each function, PLT stubs included. */
    bool (*want)(void *ctx, struct elf_image *image, const struct image_function *function);
    void *ctx;
    /* Of which functions the returns are to be seen in any case: on their RETs if they have no return
     * probe. NULL: none. */
    bool (*timed)(void *timed_ctx, const struct image_function *function);
    void *timed_ctx;
    enum plan_returns returns;
    bool no_plt;                    /* no probes on PLT stubs */
    const struct site_costs *costs; /* NULL: SITE_COSTS_DEFAULT */
    size_t calls_max; /* more calls than that are not probed instead of a function; 0: PLAN_CALLS_MAX */
};

#define PLAN_CALLS_MAX 1024

struct plan_probe {
    size_t function;      /* index into the functions that the plan was made of */
    uint64_t file_offset; /* of the probed instruction */
    uint64_t address;     /* the same, link-time */
    enum site_class class;
    enum plan_site_kind kind;
    uint32_t
        sp_offset; /* PLAN_AT_ENTRY: how many bytes the stack pointer lies below its value at the first instruction; a
                            multiple of 8, 0 where there is a return probe. 0 for the other kinds */
    uint8_t
        call_length; /* PLAN_AT_CALL: bytes of the instruction, CODE_CALL_BYTES where it is a direct one; else 0 */
    bool return_probe; /* only PLAN_AT_ENTRY has one */
    enum plan_no_return
        no_return;    /* PLAN_RETURN_PROBED if return_probe; the same for all probes of a function */
    uint32_t cost_ns; /* expected, of a hit and of the return probe that it sets */
};

struct plan_refusal {
    size_t function;
    enum site_refusal reason;
};

struct plan {
    /* Sorted by address. A PLAN_AT_CALL or PLAN_AT_JUMP may have the place of the PLAN_AT_ENTRY before it:
     * the function that the call stands in begins with it. */
    struct plan_probe *probes;
    size_t count;
    struct plan_refusal *refusals; /* wanted, but not probed */
    size_t refusal_count;
    size_t functions;                /* that are seen by probes */
    size_t wanted;                   /* functions + refusal_count */
    size_t return_probes;            /* of functions */
    const char *no_returns;          /* why none has one although they are wanted, in words; NULL: some may */
    size_t by_class[SITE_CLASSES];   /* functions, by the class of what their calls hit; [SITE_REFUSED] =
                                        refusal_count */
    size_t by_kind[PLAN_SITE_KINDS]; /* probes */
    bool exact;                      /* PLAN_RETURNS_EXACT is wanted */
    bool ungated; /* nothing watches changes of code: functions that make them may have inline probes */
    bool changes; /* the file tells which bytes of its code change in memory */
    size_t moved; /* probes whose sp_offset is not 0 */
    size_t by_refusal[SITE_REFUSALS];
    size_t by_no_return[PLAN_NO_RETURNS]; /* functions */
    /* What is known of the image's code, for later steps; borrows the image and the functions. NULL: freed
     * (plan_forget_map). */
    struct flow_map *map;
};

/* Plans the probes of `functions` (image_functions() of `image`). `options` may be NULL: everything. A plan
 * without probes is not an error. Reads all code of the image. -ENOMEM, -ENOTSUP: no disassembler. */
int plan_make(struct elf_image *image, const struct image_function *functions, size_t count,
              const struct plan_options *options, struct plan **ret_plan, struct error *err);

/* Why `function` is none that is called, whatever its symbol says: a probe would count calls that never were.
 * SITE_OK: nothing is known against it. */
enum site_refusal plan_symbol_refusal(const struct image_function *function);

void plan_free(struct plan *plan);

/* Frees `plan->map`: several bytes for each of the code. */
void plan_forget_map(struct plan *plan);

DEFINE_CLEANUP(cleanup_plan, struct plan *, plan_free)
#define AUTO_PLAN CLEANUP(cleanup_plan)

/* A few lower-case words, such as "uses or replaces its return address". */
const char *plan_no_return_text(enum plan_no_return reason);

/* "entry", "call", "tail call", "return" */
const char *plan_site_kind_text(enum plan_site_kind kind);

#endif
