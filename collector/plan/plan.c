/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which functions are probed where, and which get a return probe if return probes are asked for. Images as a
 * whole have none
 *
 * - if exceptions, panics or thread cancellation may walk their stacks, since those abort at the overwritten
 * return address: any image with exception tables or an unwinding runtime, and Go, which moves its stacks as
 * well;
 * - if they are static: those contain hand-written parts of the C library whose local symbols it is
 * impossible to list;
 * - if something in them looks at the stacks (image/functions/stack_readers.h), or hands system calls that
 * the program did not make itself to a handler: a return probe is a system call since Linux 6.11.
 *
 * The program's entry point has argc where others have a return address. For single functions see return_rules.h.
 */
#include "collector/plan/plan.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "collector/plan/planner.h"
#include "collector/plan/return_rules.h"
#include "collector/plan/return_sites.h"
#include "image/flow/flow_image.h"
#include "image/functions/stack_readers.h"

/* ---------------------------------------------------------------------------------------------- returns */

static bool has_forbidden_name(const struct image_function *function)
{
    if (return_name_forbids(function->name))
        return true;
    for (char **alias = function->aliases; alias && *alias; alias++)
        if (return_name_forbids(*alias))
            return true;
    return false;
}

/* The next function's first byte is its own: nothing of this one reaches it. */
static size_t own_size(const struct planner *planner, size_t index, size_t available)
{
    const struct image_function *function = &planner->functions[index];
    uint64_t size = function->size < available ? function->size : available;

    if (index + 1 < planner->count && function[1].address - function->address < size)
        size = function[1].address - function->address;
    return size;
}

/* What some function of the image does, with which all others must do without return probes, in words. */
static const char *harmful_code(const struct planner *planner)
{
    uint64_t prctl = 0;

    for (size_t i = 0; !prctl && i < planner->count; i++)
        if (planner->functions[i].flags & IMAGE_FUNCTION_PLT &&
            !strcmp(planner->functions[i].name, "prctl@plt"))
            prctl = planner->functions[i].address;
    for (size_t i = 0; i < planner->count; i++) {
        uint64_t address = planner->functions[i].address;
        size_t available = 0;
        const uint8_t *code = elf_image_code(planner->image, address, &available);
        unsigned traits =
            code ? return_code_traits(code, own_size(planner, i, available), address, prctl) : 0;

        if (traits & RETURN_CODE_WALKS)
            return "it walks the stack by frame pointers";
        if (traits & RETURN_CODE_DISPATCHES)
            return "it handles system calls itself (syscall user dispatch)";
    }
    return NULL;
}

/* The reason that holds for all functions of the image, PLAN_RETURN_PROBED if there is none. `ret_why`: in
 * words, NULL if the reason says all. */
static enum plan_no_return image_no_return(const struct planner *planner, const char **ret_why)
{
    const struct plan_options *options = planner->options;
    struct elf_image *image = planner->image;

    *ret_why = NULL;
    if (options->returns == PLAN_RETURNS_SITES)
        return PLAN_RETURN_SITES;
    if (options->returns != PLAN_RETURNS_PROBE)
        return PLAN_RETURN_NOT_WANTED;
    if (elf_image_facts(image)->is_go)
        return PLAN_RETURN_GO;
    *ret_why = image_stack_reader(image).what;
    if (*ret_why)
        return PLAN_RETURN_STACKS;
    *ret_why = elf_image_unwinds(image);
    if (*ret_why)
        return PLAN_RETURN_UNWIND;
    if (elf_image_facts(image)->is_static)
        return PLAN_RETURN_STATIC;
    *ret_why = harmful_code(planner);
    return *ret_why ? PLAN_RETURN_STACKS : PLAN_RETURN_PROBED;
}

static enum plan_no_return function_no_return(const struct planner *planner, size_t index)
{
    const struct image_function *function = &planner->functions[index];
    const uint8_t *code;
    size_t available = 0;

    if (planner->no_return != PLAN_RETURN_PROBED)
        return planner->no_return;
    if (function->flags & IMAGE_FUNCTION_ENTRY_POINT)
        return PLAN_RETURN_ENTRY_POINT;
    if (has_forbidden_name(function))
        return PLAN_RETURN_NAME;
    if (function->flags & IMAGE_FUNCTION_SIZE_GUESSED)
        return PLAN_RETURN_UNDECODED;
    code = elf_image_code(planner->image, function->address, &available);
    if (code && return_code_forbids(code, own_size(planner, index, available), function->address))
        return PLAN_RETURN_CODE;
    return PLAN_RETURN_PROBED;
}

/* As above, but where returns are to be seen in any case. Not in Go, whose stacks move. */
static enum plan_no_return rule_of(const struct planner *planner, size_t index)
{
    const struct plan_options *options = planner->options;
    enum plan_no_return rule = function_no_return(planner, index);

    if (rule == PLAN_RETURN_PROBED || rule == PLAN_RETURN_ENTRY_POINT || !options->timed ||
        options->returns == PLAN_RETURNS_NONE || elf_image_facts(planner->image)->is_go)
        return rule;
    return options->timed(options->timed_ctx, &planner->functions[index]) ? PLAN_RETURN_SITES : rule;
}

/* ---------------------------------------------------------------------------------------------- sites */

/* What gcc's crtstuff.c and the C library's crti.o put into every program. */
static bool is_start_up(const char *name)
{
    static const char *const names[] = {
        "_init",
        "_fini",
        "frame_dummy",
        "register_tm_clones",
        "deregister_tm_clones",
        "__do_global_dtors_aux",
        "__do_global_ctors_aux",
        "call_weak_fn",
        "_dl_relocate_static_pie",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

enum site_refusal plan_symbol_refusal(const struct image_function *function)
{
    if (function->flags & IMAGE_FUNCTION_FRAGMENT)
        return SITE_FRAGMENT;
    if (function->flags & IMAGE_FUNCTION_IFUNC)
        return SITE_IFUNC;
    if (is_start_up(function->name))
        return SITE_START_UP;
    if (function->flags & IMAGE_FUNCTION_INSIDE)
        return SITE_INSIDE;
    if (function->flags & IMAGE_FUNCTION_SIZE_GUESSED &&
        !(function->flags & (IMAGE_FUNCTION_ENTRY_POINT | IMAGE_FUNCTION_PROVED)))
        return SITE_NO_SIZE;
    return SITE_OK;
}

/* Takes the best site, or with a return probe the best one where that is possible, whatever it costs. */
static struct site pick(const struct sites *sites, enum plan_no_return *no_return)
{
    if (*no_return != PLAN_RETURN_PROBED)
        return sites->any;
    if (sites->unmoved.class != SITE_REFUSED)
        return sites->unmoved;
    if (sites->any.class != SITE_REFUSED)
        *no_return = PLAN_RETURN_NO_PLACE;
    return sites->any;
}

/* Whether the code before an entry continues there: hand-written functions share their ends. */
static bool is_fallen_into(const struct planner *planner, uint64_t entry)
{
    size_t count;
    const struct flow_edge *edges = flow_map_edges_to(planner->map, entry, entry, &count);

    for (size_t i = 0; i < count; i++)
        if (edges[i].kind == FLOW_EDGE_FALL)
            return true;
    return false;
}

/* Fills in site and no_return of choices[index] by its rule. */
static void planner_choose(struct planner *planner, size_t index)
{
    const struct image_function *function = &planner->functions[index];
    struct choice *choice = &planner->choices[index];
    struct sites sites;
    const uint8_t *code;
    size_t available = 0;

    choice->no_return = choice->rule;
    choice->site = (struct site){.class = SITE_REFUSED, .refusal = plan_symbol_refusal(function)};
    if (function->flags & IMAGE_FUNCTION_NO_STUB)
        choice->site.refusal = SITE_NO_STUB; /* unless planner_find_stubless() knows all of its calls */
    if (choice->site.refusal != SITE_OK)
        return;
    choice->site.refusal = SITE_NO_SIZE;
    if (function->flags & IMAGE_FUNCTION_SIZE_GUESSED && is_fallen_into(planner, function->address))
        return;
    choice->site.refusal = SITE_EMPTY;
    code = elf_image_code(planner->image, function->address, &available);
    if (!code)
        return;
    site_choose(planner->disasm, planner->map, code, own_size(planner, index, available), function->address,
                &sites);
    choice->site = pick(&sites, &choice->no_return);
}

static bool is_wanted(const struct planner *planner, const struct image_function *function)
{
    const struct plan_options *options = planner->options;

    if (options->no_plt && (function->flags & IMAGE_FUNCTION_PLT))
        return false;
    return !options->want || options->want(options->ctx, planner->image, function);
}

/* Calls see no RETs and no return probes. Go's method tables hold addresses in a way that is not read. */
static bool may_prefer_calls(const struct planner *planner)
{
    enum plan_returns returns = planner->options->returns;

    return returns != PLAN_RETURNS_PROBE && returns != PLAN_RETURNS_SITES && planner->all_taken &&
           !elf_image_facts(planner->image)->is_go;
}

static int choose_all(struct planner *planner)
{
    for (size_t i = 0; i < planner->count; i++) {
        planner->choices[i].is_wanted = is_wanted(planner, &planner->functions[i]);
        if (!planner->choices[i].is_wanted)
            continue;
        planner->choices[i].rule = rule_of(planner, i);
        planner_choose(planner, i);
    }
    if (may_prefer_calls(planner) && planner_prefer_calls(planner) < 0)
        return -ENOMEM;
    return planner_find_stubless(planner);
}

/* ---------------------------------------------------------------------------------------------- the plan */

static int add_refusal(struct planner *planner, size_t index, enum site_refusal reason)
{
    struct plan *plan = planner->plan;

    if (array_reserve(&plan->refusals, &planner->refusal_capacity, plan->refusal_count + 1) < 0)
        return -ENOMEM;
    plan->refusals[plan->refusal_count++] = (struct plan_refusal){index, reason};
    plan->by_class[SITE_REFUSED]++;
    plan->by_refusal[reason]++;
    return 0;
}

/* The kernel emulates a call of a function and a tail call, but not those through a slot. */
static enum site_class class_of(const struct planner *planner, size_t index, enum plan_site_kind kind)
{
    if (kind == PLAN_AT_ENTRY)
        return planner->choices[index].site.class;
    if (kind == PLAN_AT_RETURN || planner->functions[index].flags & IMAGE_FUNCTION_NO_STUB)
        return SITE_SINGLE_STEPPED;
    return SITE_EMULATED;
}

/* Adds a probe of choices[index] at `address`. */
static int add_probe(struct planner *planner, size_t index, uint64_t address, enum plan_site_kind kind)
{
    const struct choice *choice = &planner->choices[index];
    struct plan *plan = planner->plan;
    struct plan_probe *probe;

    if (array_reserve(&plan->probes, &planner->probe_capacity, plan->count + 1) < 0)
        return -ENOMEM;
    probe = &plan->probes[plan->count];
    *probe = (struct plan_probe){
        .function = index,
        .address = address,
        .class = class_of(planner, index, kind),
        .kind = kind,
        .sp_offset = kind == PLAN_AT_ENTRY ? choice->site.sp_offset : 0,
        .return_probe = kind == PLAN_AT_ENTRY && choice->no_return == PLAN_RETURN_PROBED,
        .no_return = choice->no_return,
    };
    probe->cost_ns =
        site_cost(&planner->costs, probe->class) + (probe->return_probe ? planner->costs.ret : 0);
    /* Where the function lies in the file its instructions do too; a call of it may be in another segment. */
    if (elf_image_file_offset(planner->image, address, &probe->file_offset) == 0)
        plan->count++;
    return 0;
}

static int add_calls(struct planner *planner, size_t index)
{
    const struct choice *choice = &planner->choices[index];
    struct plan *plan = planner->plan;

    plan->by_class[class_of(planner, index, PLAN_AT_CALL)]++;
    for (size_t i = 0; i < choice->calls; i++) {
        const struct call_site *call = &planner->calls[choice->first_call + i];
        size_t before = plan->count;

        if (add_probe(planner, index, call->address, call->is_jump ? PLAN_AT_JUMP : PLAN_AT_CALL) < 0)
            return -ENOMEM;
        if (plan->count > before && !call->is_jump)
            plan->probes[before].call_length = call->length;
    }
    return 0;
}

/* Probes on RETs, or the reason why there are none. */
static int add_returns(struct planner *planner, size_t index, struct return_sites *sites)
{
    struct choice *choice = &planner->choices[index];
    bool is_known = !(planner->functions[index].flags & IMAGE_FUNCTION_SIZE_GUESSED);
    int r = is_known ? return_sites_find(planner->disasm, planner->map, planner->functions, planner->count,
                                         index, sites)
                     : -EILSEQ; /* what follows its code may be data */

    if (r == -EILSEQ)
        choice->no_return = PLAN_RETURN_UNDECODED;
    for (size_t i = 0; r == 0 && i < sites->count; i++)
        r = add_probe(planner, index, sites->items[i], PLAN_AT_RETURN);
    return r == -EILSEQ ? 0 : r;
}

static int add_function(struct planner *planner, size_t index, struct return_sites *sites)
{
    struct choice *choice = &planner->choices[index];
    int r = 0;

    if (!choice->calls && choice->site.class == SITE_REFUSED)
        return add_refusal(planner, index, choice->site.refusal);
    if (choice->no_return == PLAN_RETURN_SITES)
        r = add_returns(planner, index, sites);
    if (r < 0)
        return r;
    planner->plan->functions++;
    planner->plan->by_no_return[choice->no_return]++;
    planner->plan->return_probes += choice->no_return == PLAN_RETURN_PROBED;
    if (choice->calls)
        return add_calls(planner, index);
    planner->plan->by_class[choice->site.class]++;
    return add_probe(planner, index, planner->functions[index].address + choice->site.offset, PLAN_AT_ENTRY);
}

static int compare_probes(const void *left, const void *right)
{
    const struct plan_probe *a = left, *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (int)a->kind - (int)b->kind;
}

/* Sorts, and counts by kind. Two functions may share a RET, and a function may be no more than a RET: the
 * first of those that would be probed twice stays, an entry before a return. Only a call may share its place
 * with an entry. */
static void put_in_order(struct plan *plan)
{
    size_t kept = 0;

    if (plan->count)
        qsort(plan->probes, plan->count, sizeof(*plan->probes), compare_probes);
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_probe *probe = &plan->probes[i];

        if (kept && plan->probes[kept - 1].address == probe->address &&
            (probe->kind == PLAN_AT_RETURN || plan->probes[kept - 1].kind != PLAN_AT_ENTRY))
            continue;
        plan->by_kind[probe->kind]++;
        plan->moved += probe->sp_offset != 0;
        plan->probes[kept++] = *probe;
    }
    plan->count = kept;
}

static int fill_plan(struct planner *planner)
{
    CLEANUP(return_sites_release) struct return_sites sites = {0};
    int r = choose_all(planner);

    for (size_t i = 0; i < planner->count && r == 0; i++)
        if (planner->choices[i].is_wanted)
            r = add_function(planner, i, &sites);
    if (r < 0)
        return r;
    planner->plan->wanted = planner->plan->functions + planner->plan->refusal_count;
    put_in_order(planner->plan);
    return 0;
}

static void planner_release(struct planner *planner)
{
    disasm_free(planner->disasm);
    flow_map_free(planner->map);
    free(planner->choices);
    free(planner->calls);
}

int plan_make(struct elf_image *image, const struct image_function *functions, size_t count,
              const struct plan_options *options, struct plan **ret_plan, struct error *err)
{
    static const struct plan_options everything = {0};
    AUTO_PLAN struct plan *plan = calloc(1, sizeof(*plan));
    CLEANUP(planner_release)
    struct planner planner = {
        .image = image,
        .functions = functions,
        .count = count,
        .options = options ? options : &everything,
        .plan = plan,
    };
    const char *why;
    int r;

    planner.costs = planner.options->costs ? *planner.options->costs : SITE_COSTS_DEFAULT;
    planner.choices = calloc(count + 1, sizeof(*planner.choices));
    if (!plan || !planner.choices)
        return error_no_memory(err);
    planner.no_return = image_no_return(&planner, &why);
    plan->no_returns =
        planner.options->returns != PLAN_RETURNS_PROBE || planner.no_return == PLAN_RETURN_PROBED ? NULL
        : why                                                                                     ? why
              : plan_no_return_text(planner.no_return);
    r = disasm_new(&planner.disasm, err);
    if (r < 0)
        return r;
    r = flow_image_map(image, functions, count, &planner.map, &planner.all_taken, err);
    if (r < 0)
        return r;
    plan->exact = planner.options->returns == PLAN_RETURNS_EXACT;
    plan->changes = flow_map_has_mark(planner.map, FLOW_CHANGES);
    if (fill_plan(&planner) < 0)
        return error_no_memory(err);
    plan->map = take_pointer(planner.map);
    *ret_plan = take_pointer(plan);
    return 0;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    plan_forget_map(plan);
    free(plan->probes);
    free(plan->refusals);
    free(plan);
}

void plan_forget_map(struct plan *plan)
{
    flow_map_free(plan->map);
    plan->map = NULL;
}

const char *plan_no_return_text(enum plan_no_return reason)
{
    static const char *const texts[PLAN_NO_RETURNS] = {
        [PLAN_RETURN_PROBED] = "probed",
        [PLAN_RETURN_NOT_WANTED] = "not wanted",
        [PLAN_RETURN_UNWIND] = "an exception or a panic may pass through",
        [PLAN_RETURN_STATIC] = "a static program",
        [PLAN_RETURN_STACKS] = "the image switches stacks or looks at them",
        [PLAN_RETURN_ENTRY_POINT] = "the program's entry point",
        [PLAN_RETURN_NAME] = "uses or replaces its return address",
        [PLAN_RETURN_CODE] = "its code uses its return address or switches stacks",
        [PLAN_RETURN_GO] = "go moves its stacks",
        [PLAN_RETURN_NO_PLACE] = "no place in it can have a return probe",
        [PLAN_RETURN_SITES] = "its return instructions are probed",
        [PLAN_RETURN_AT_CALLS] = "it is probed at its calls",
        [PLAN_RETURN_UNDECODED] = "not all of its code can be decoded",
    };

    return reason < PLAN_NO_RETURNS && texts[reason] ? texts[reason] : "unknown";
}

const char *plan_site_kind_text(enum plan_site_kind kind)
{
    static const char *const texts[PLAN_SITE_KINDS] = {
        [PLAN_AT_ENTRY] = "entry",
        [PLAN_AT_CALL] = "call",
        [PLAN_AT_RETURN] = "return",
        [PLAN_AT_JUMP] = "tail call",
    };

    return kind < PLAN_SITE_KINDS && texts[kind] ? texts[kind] : "unknown";
}
