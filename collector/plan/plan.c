/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who gets a return probe. The kernel implements it by overwriting the return address when the probe is hit,
 * so it is harmless only where that address lies at [rsp], is used by `ret` alone, and the frame ends with
 * that `ret`:
 *
 * - exceptions, panics and thread cancellation walk the stack and abort at the overwritten address. Any image
 *   with exception tables or an unwinding runtime is left alone as a whole;
 * - some functions return twice, switch stacks, or look at their caller's address (setjmp, vfork, dlsym): by
 * name;
 * - at the program's entry [rsp] is argc;
 * - static programs contain hand-written parts of the C library whose local symbols nobody can list.
 */
#include "collector/plan/plan.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "base/array.h"

/* Patterns are tried without leading underscores, version and @plt. */
static const char *const no_return_patterns[] = {
    /* returns twice, or never to here */
    "setjmp", "sigsetjmp", "bsd_setjmp", "savectx", "vfork", "libc_vfork", "vforkx", "longjmp", "siglongjmp",
    "longjmp_chk", "libc_longjmp", "libc_siglongjmp", "longjmp_unwind", "getcontext", "setcontext",
    "swapcontext", "makecontext", "start_context", "setcontext_*", "getcontext_*",
    /* the thread that comes out of it has another stack */
    "clone", "clone2", "clone3", "clone_internal*", "start_thread", "libc_start_main*",
    "libc_start_call_main*", "rfork", "restore_rt", "sigreturn", "rt_sigreturn", "kernel_*sigreturn",
    "fiber_switch", "coroutine_switch", "swapstack", "jump_fcontext", "make_fcontext", "ontop_fcontext",
    "coro_transfer", "co_switch", "morestack*",
    /* unwinds */
    "Unwind_*", "cxa_throw", "cxa_rethrow", "cxa_end_catch", "cxa_bad_*", "cxa_throw_bad_*",
    "gxx_personality*", "gcc_personality*", "rust_eh_personality", "pthread_exit", "pthread_unwind*",
    "pthread_cancel", "pthread_testcancel", "do_cancel", "thrd_exit", "unw_*", "ULx86_64_*", "Ux86_64_*",
    "backtrace", "register_frame*", "deregister_frame*", "objc_exception_throw", "objc_exception_rethrow",
    /* looks at the address it was called from */
    "dlopen", "dlmopen", "dlsym", "dlvsym", "libc_dlopen*", "libc_dlsym*", "dl_iterate_phdr", "dl_runtime_*",
    "dl_start*", "dl_tlsdesc_*", "tls_get_addr*", "mcount*", "fentry*", "cyg_profile_func_*", "gmon_start*",
    "asan_*", "hwasan_*", "tsan_*", "msan_*", "lsan_*", "ubsan_*", "sanitizer_*", "x86_return_thunk",
    "x86_indirect_*", "llvm_retpoline_*"};

bool plan_name_forbids_return(const char *name)
{
    char plain[128];
    size_t length;

    name += strspn(name, "_");
    length = strcspn(name, "@");
    if (length >= sizeof(plain))
        return false; /* no pattern can mean such a name but by its beginning, and those names are short */
    memcpy(plain, name, length);
    plain[length] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(no_return_patterns); i++)
        if (fnmatch(no_return_patterns[i], plain, 0) == 0)
            return true;
    return false;
}

static bool has_forbidden_name(const struct image_function *function)
{
    if (plan_name_forbids_return(function->name))
        return true;
    for (char **alias = function->aliases; alias && *alias; alias++)
        if (plan_name_forbids_return(*alias))
            return true;
    return false;
}

/* The reason that holds for all functions of the image, PLAN_RETURN_PROBED if there is none. */
static enum plan_no_return image_no_return(const struct elf_image *image, const struct plan_options *options)
{
    if (options->returns == PLAN_RETURNS_INFER || options->returns == PLAN_RETURNS_NONE)
        return PLAN_RETURN_NOT_WANTED;
    if (elf_image_unwinds(image))
        return PLAN_RETURN_UNWIND;
    if (elf_image_facts(image)->is_static)
        return PLAN_RETURN_STATIC;
    return PLAN_RETURN_PROBED;
}

static enum plan_no_return function_no_return(const struct image_function *function)
{
    if (function->flags & IMAGE_FUNCTION_ENTRY_POINT)
        return PLAN_RETURN_ENTRY_POINT;
    if (has_forbidden_name(function))
        return PLAN_RETURN_NAME;
    return PLAN_RETURN_PROBED;
}

/* ---------------------------------------------------------------------------------------------- building */

struct planner {
    struct elf_image *image;
    const struct image_function *functions;
    size_t count;
    struct disasm *disasm;
    enum plan_no_return no_return; /* for the whole image */
    struct plan *plan;
    size_t probe_capacity, refusal_capacity;
};

/* The next function's first byte is its own: a site beyond padding must not reach it. */
static bool reaches_next(const struct planner *planner, size_t index, uint64_t offset)
{
    return index + 1 < planner->count &&
           planner->functions[index].address + offset >= planner->functions[index + 1].address;
}

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

/* What is not a function that is called, whatever its symbol says: a probe there would count calls that never
 * were. SITE_OK: nothing is known against it. */
static enum site_refusal symbol_refusal(const struct image_function *function)
{
    if (function->flags & IMAGE_FUNCTION_FRAGMENT)
        return SITE_FRAGMENT;
    if (function->flags & IMAGE_FUNCTION_IFUNC)
        return SITE_IFUNC;
    if (is_start_up(function->name))
        return SITE_START_UP;
    if (function->flags & IMAGE_FUNCTION_INSIDE)
        return SITE_INSIDE;
    if (function->flags & IMAGE_FUNCTION_SIZE_GUESSED && !(function->flags & IMAGE_FUNCTION_ENTRY_POINT))
        return SITE_NO_SIZE;
    return SITE_OK;
}

static void choose_site(const struct planner *planner, size_t index, struct site *site)
{
    const struct image_function *function = &planner->functions[index];
    const uint8_t *code;
    size_t available = 0;

    *site = (struct site){.class = SITE_REFUSED, .refusal = symbol_refusal(function)};
    if (site->refusal != SITE_OK)
        return;
    site->refusal = SITE_EMPTY;
    code = elf_image_code(planner->image, function->address, &available);
    if (!code)
        return;
    site_choose(planner->disasm, code, function->size < available ? function->size : available,
                function->address, site);
    if (site->class != SITE_REFUSED && reaches_next(planner, index, site->offset))
        *site = (struct site){.class = SITE_REFUSED, .refusal = SITE_NO_ROOM};
}

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

static int add_probe(struct planner *planner, size_t index, const struct site *site)
{
    const struct image_function *function = &planner->functions[index];
    struct plan *plan = planner->plan;
    enum plan_no_return no_return = planner->no_return;

    if (array_reserve(&plan->probes, &planner->probe_capacity, plan->count + 1) < 0)
        return -ENOMEM;
    if (no_return == PLAN_RETURN_PROBED)
        no_return = function_no_return(function);
    plan->probes[plan->count++] = (struct plan_probe){
        .function = index,
        .file_offset = function->file_offset + site->offset,
        .address = function->address + site->offset,
        .class = site->class,
        .return_probe = no_return == PLAN_RETURN_PROBED,
        .no_return = no_return,
    };
    plan->by_class[site->class]++;
    plan->by_no_return[no_return]++;
    plan->return_probes += no_return == PLAN_RETURN_PROBED;
    return 0;
}

static bool is_wanted(const struct plan_options *options, const struct image_function *function)
{
    if (options->no_plt && (function->flags & IMAGE_FUNCTION_PLT))
        return false;
    return !options->want || options->want(options->ctx, function);
}

int plan_make(struct elf_image *image, const struct image_function *functions, size_t count,
              const struct plan_options *options, struct plan **ret_plan, struct error *err)
{
    static const struct plan_options everything = {0};
    AUTO_PLAN struct plan *plan = calloc(1, sizeof(*plan));
    AUTO_DISASM struct disasm *disasm = NULL;
    struct planner planner = {.image = image, .functions = functions, .count = count, .plan = plan};
    int r;

    if (!plan)
        return error_no_memory(err);
    if (elf_image_facts(image)->is_go)
        return error_say(err, -ENOTSUP, "cannot trace %s: go programs need --go, not supported yet",
                         elf_image_name(image));
    r = disasm_new(&disasm, err);
    if (r < 0)
        return r;
    options = options ? options : &everything;
    planner.disasm = disasm;
    planner.no_return = image_no_return(image, options);
    for (size_t i = 0; i < count; i++) {
        struct site site;

        if (!is_wanted(options, &functions[i]))
            continue;
        choose_site(&planner, i, &site);
        r = site.class == SITE_REFUSED ? add_refusal(&planner, i, site.refusal)
                                       : add_probe(&planner, i, &site);
        if (r < 0)
            return error_no_memory(err);
    }
    plan->wanted = plan->count + plan->refusal_count;
    *ret_plan = take_pointer(plan);
    return 0;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    free(plan->probes);
    free(plan->refusals);
    free(plan);
}

const char *plan_no_return_text(enum plan_no_return reason)
{
    static const char *const texts[PLAN_NO_RETURNS] = {
        [PLAN_RETURN_PROBED] = "probed",
        [PLAN_RETURN_NOT_WANTED] = "not wanted",
        [PLAN_RETURN_UNWIND] = "an exception or a panic may pass through",
        [PLAN_RETURN_STATIC] = "a static program",
        [PLAN_RETURN_ENTRY_POINT] = "the program's entry point",
        [PLAN_RETURN_NAME] = "uses or replaces its return address",
    };

    return reason < PLAN_NO_RETURNS && texts[reason] ? texts[reason] : "unknown";
}
