/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Plans of hand-made images and of this program: who is probed, who has a return probe, who is refused and
 * why. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "collector/plan/plan.h"
#include "tests/unit/image/tiny_elf.h"

#define GLOBAL ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define LOCAL ELF64_ST_INFO(STB_LOCAL, STT_FUNC)

struct subject {
    struct elf_image *image;
    struct image_function *functions;
    size_t count;
    struct plan *plan;
};

static void subject_release(struct subject *subject)
{
    plan_free(subject->plan);
    image_functions_free(subject->functions, subject->count);
    elf_image_free(subject->image);
}

#define AUTO_SUBJECT CLEANUP(subject_release)

static void plan_subject(struct subject *subject, const struct plan_options *options)
{
    struct error err = {0};

    cr_assert_eq(image_functions(subject->image, &subject->functions, &subject->count, &err), 0, "%s",
                 err.message);
    cr_assert_eq(plan_make(subject->image, subject->functions, subject->count, options, &subject->plan, &err),
                 0, "%s", err.message);
}

static struct subject plan_tiny(const struct tiny_elf *tiny, const struct plan_options *options)
{
    AUTO_CLOSE int fd = tiny_elf_file(tiny);
    struct subject subject = {0};

    cr_assert_eq(elf_image_open_fd(fd, "tiny", &subject.image, NULL), 0);
    plan_subject(&subject, options);
    return subject;
}

static const struct plan_probe *probe_of(const struct subject *subject, const char *name)
{
    for (size_t i = 0; i < subject->plan->count; i++)
        if (strcmp(subject->functions[subject->plan->probes[i].function].name, name) == 0)
            return &subject->plan->probes[i];
    return NULL;
}

static enum site_refusal refusal_of(const struct subject *subject, const char *name)
{
    for (size_t i = 0; i < subject->plan->refusal_count; i++)
        if (strcmp(subject->functions[subject->plan->refusals[i].function].name, name) == 0)
            return subject->plan->refusals[i].reason;
    return SITE_OK;
}

/* Every total must be the sum of what it totals. */
static void check_totals(const struct plan *plan)
{
    size_t by_class[SITE_CLASSES] = {0}, by_refusal[SITE_REFUSALS] = {0}, by_no_return[PLAN_NO_RETURNS] = {0};
    size_t returns = 0;

    for (size_t i = 0; i < plan->count; i++) {
        by_class[plan->probes[i].class]++;
        by_no_return[plan->probes[i].no_return]++;
        returns += plan->probes[i].return_probe;
        cr_expect_eq(plan->probes[i].return_probe, plan->probes[i].no_return == PLAN_RETURN_PROBED);
        cr_expect(i == 0 || plan->probes[i - 1].address < plan->probes[i].address);
    }
    for (size_t i = 0; i < plan->refusal_count; i++)
        by_refusal[plan->refusals[i].reason]++;
    by_class[SITE_REFUSED] = plan->refusal_count;
    cr_expect_eq(plan->wanted, plan->count + plan->refusal_count);
    cr_expect_eq(plan->return_probes, returns);
    cr_expect_eq(memcmp(plan->by_class, by_class, sizeof(by_class)), 0);
    cr_expect_eq(memcmp(plan->by_refusal, by_refusal, sizeof(by_refusal)), 0);
    cr_expect_eq(memcmp(plan->by_no_return, by_no_return, sizeof(by_no_return)), 0);
}

/* 0: push, ret   16: endbr64, push, ret   32: nop5   37: ret   48: ud2   56: lock inc, ret */
static const uint8_t text[64] = {
    [0] = 0x55, 0xc3, [16] = 0xf3, 0x0f, 0x1e,        0xfa, 0x55,        0xc3, [32] = 0x0f, 0x1f,
    0x44,       0x00, 0x00,        0xc3, [48] = 0x0f, 0x0b, [56] = 0xf0, 0xff, 0x07,        0xc3,
};

static const struct tiny_symbol symbols[] = {
    {"main", 0, 2, GLOBAL},    {"with_endbr", 16, 6, GLOBAL}, {"all_padding", 32, 5, GLOBAL},
    {"behind", 37, 1, GLOBAL}, {"trap", 48, 2, GLOBAL},       {"locked", 56, 4, GLOBAL},
};

static const struct tiny_elf c_program = {
    .text = text,
    .text_size = sizeof(text),
    .symbols = symbols,
    .symbol_count = ARRAY_SIZE(symbols),
    .interpreter = "/lib64/ld.so",
};

Test(plan, of_a_c_program)
{
    AUTO_SUBJECT struct subject subject = plan_tiny(&c_program, NULL);
    const struct plan_probe *probe = probe_of(&subject, "with_endbr");

    check_totals(subject.plan);
    cr_expect_eq(subject.plan->wanted, 6);
    cr_expect_eq(subject.plan->count, 3);
    cr_expect_eq(subject.plan->return_probes, 3);
    cr_assert_not_null(probe);
    cr_expect_eq(probe->file_offset, TINY_TEXT_OFFSET + 16 + 4);
    cr_expect_eq(probe->address, TINY_TEXT + 16 + 4);
    cr_expect_eq(probe->class, SITE_EMULATED);
    cr_expect(probe->return_probe);
    cr_assert_not_null(probe_of(&subject, "behind"));
    cr_expect_eq(probe_of(&subject, "behind")->class, SITE_SINGLE_STEPPED);
    cr_expect_eq(refusal_of(&subject, "all_padding"), SITE_NO_ROOM);
    cr_expect_eq(refusal_of(&subject, "trap"), SITE_TRAP);
    cr_expect_eq(refusal_of(&subject, "locked"), SITE_PREFIX);
}

Test(plan, a_site_never_reaches_into_the_next_function)
{
    /* The first symbol claims 6 bytes and so covers `behind`, whose `ret` would be its site too. */
    const struct tiny_symbol overlapping[] = {{"all_padding", 32, 6, GLOBAL}, {"behind", 37, 1, GLOBAL}};
    struct tiny_elf tiny = c_program;

    tiny.symbols = overlapping;
    tiny.symbol_count = 2;
    AUTO_SUBJECT struct subject subject = plan_tiny(&tiny, NULL);
    check_totals(subject.plan);
    cr_expect_eq(subject.plan->count, 0);
    cr_expect_eq(refusal_of(&subject, "all_padding"), SITE_NO_ROOM);
    cr_expect_eq(refusal_of(&subject, "behind"), SITE_INSIDE);
}

Test(plan, go_is_refused)
{
    struct tiny_elf tiny = c_program;
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    struct plan *plan = NULL;
    struct error err = {0};

    tiny.extra_section = ".gopclntab";
    AUTO_CLOSE int fd = tiny_elf_file(&tiny);
    cr_assert_eq(elf_image_open_fd(fd, "/bin/app", &image, NULL), 0);
    cr_expect_eq(plan_make(image, NULL, 0, NULL, &plan, &err), -ENOTSUP);
    cr_expect_null(plan);
    cr_expect_str_eq(err.message, "cannot trace /bin/app: go programs need --go, not supported yet");
}

static void expect_no_returns(const struct tiny_elf *tiny, const struct plan_options *options,
                              enum plan_no_return reason)
{
    AUTO_SUBJECT struct subject subject = plan_tiny(tiny, options);

    check_totals(subject.plan);
    cr_expect_eq(subject.plan->count, 3);
    cr_expect_eq(subject.plan->return_probes, 0);
    cr_expect_eq(subject.plan->by_no_return[reason], 3, "%s", plan_no_return_text(reason));
}

Test(plan, returns_are_inferred_where_probes_would_harm)
{
    struct tiny_elf tiny = c_program;
    const struct plan_options entries = {.returns = PLAN_RETURNS_INFER};

    tiny.extra_section = ".gcc_except_table";
    expect_no_returns(&tiny, NULL, PLAN_RETURN_UNWIND);
    tiny = c_program;
    tiny.interpreter = NULL;
    expect_no_returns(&tiny, NULL, PLAN_RETURN_STATIC);
    expect_no_returns(&c_program, &entries, PLAN_RETURN_NOT_WANTED);
}

Test(plan, some_functions_get_no_return_probe)
{
    const struct tiny_symbol special[] = {
        {"_start", 0, 1, GLOBAL},     {"vfork", 1, 1, GLOBAL},    {"harmless", 2, 1, GLOBAL},
        {"__sigsetjmp", 2, 1, LOCAL}, {"sizeless", 3, 0, GLOBAL}, {"outer", 4, 4, GLOBAL},
        {"inner", 6, 1, LOCAL},       {"plain", 8, 1, GLOBAL},    {"frame_dummy", 9, 1, LOCAL},
    };
    uint8_t rets[64];
    const struct tiny_elf tiny = {.text = rets,
                                  .text_size = sizeof(rets),
                                  .symbols = special,
                                  .symbol_count = ARRAY_SIZE(special),
                                  .interpreter = "/lib64/ld.so",
                                  .entry = TINY_TEXT};
    static const struct {
        const char *name;
        enum plan_no_return reason;
    } expected[] = {
        {"_start", PLAN_RETURN_ENTRY_POINT}, {"vfork", PLAN_RETURN_NAME},
        {"harmless", PLAN_RETURN_NAME}, /* an alias of __sigsetjmp */
        {"outer", PLAN_RETURN_PROBED},       {"plain", PLAN_RETURN_PROBED},
    };

    memset(rets, 0xc3, sizeof(rets));
    AUTO_SUBJECT struct subject subject = plan_tiny(&tiny, NULL);
    check_totals(subject.plan);
    cr_expect_eq(refusal_of(&subject, "sizeless"), SITE_NO_SIZE);
    cr_expect_eq(refusal_of(&subject, "inner"), SITE_INSIDE);
    cr_expect_eq(refusal_of(&subject, "frame_dummy"), SITE_START_UP);
    cr_assert_eq(subject.plan->count, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const struct plan_probe *probe = probe_of(&subject, expected[i].name);

        cr_assert_not_null(probe, "%s", expected[i].name);
        cr_expect_eq(probe->no_return, expected[i].reason, "%s: %s", expected[i].name,
                     plan_no_return_text(probe->no_return));
    }
}

Test(plan, fragments_and_resolvers_are_not_probed)
{
    const struct tiny_symbol parts[] = {
        {"f", 0, 2, GLOBAL},
        {"f.cold", 16, 4, LOCAL},
        {"pick", 37, 1, ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC)},
    };
    struct tiny_elf tiny = c_program;

    tiny.symbols = parts;
    tiny.symbol_count = ARRAY_SIZE(parts);
    AUTO_SUBJECT struct subject subject = plan_tiny(&tiny, NULL);
    check_totals(subject.plan);
    cr_expect_eq(subject.plan->count, 1);
    cr_expect_eq(refusal_of(&subject, "f.cold"), SITE_FRAGMENT);
    cr_expect_eq(refusal_of(&subject, "pick"), SITE_IFUNC);
}

static bool want_named(void *ctx, const struct image_function *function)
{
    return strcmp(function->name, ctx) == 0;
}

Test(plan, only_wanted_functions_are_counted)
{
    char name[] = "with_endbr";
    const struct plan_options options = {.want = want_named, .ctx = name};
    AUTO_SUBJECT struct subject subject = plan_tiny(&c_program, &options);

    check_totals(subject.plan);
    cr_expect_eq(subject.plan->wanted, 1);
    cr_assert_eq(subject.plan->count, 1);
    cr_expect_str_eq(subject.functions[subject.plan->probes[0].function].name, name);
}

Test(plan, nothing_to_probe_is_no_error)
{
    struct tiny_elf tiny = c_program;

    tiny.symbol_count = 0;
    AUTO_SUBJECT struct subject subject = plan_tiny(&tiny, NULL);
    cr_expect_eq(subject.plan->wanted, 0);
    plan_free(NULL);
}

Test(plan, stubs_can_be_left_out)
{
    const struct plan_options no_plt = {.no_plt = true};
    AUTO_SUBJECT struct subject with = {0}, without = {0};

    cr_assert_eq(elf_image_open("/proc/self/exe", &with.image, NULL), 0);
    cr_assert_eq(elf_image_open("/proc/self/exe", &without.image, NULL), 0);
    plan_subject(&with, NULL);
    plan_subject(&without, &no_plt);
    check_totals(with.plan);
    check_totals(without.plan);
    cr_expect_not_null(probe_of(&with, "strcmp@plt"));
    cr_expect_null(probe_of(&without, "strcmp@plt"));
    cr_expect_eq(with.plan->wanted, with.count);
    cr_expect_eq(without.plan->wanted, image_functions_own(without.functions, without.count));
}

Test(plan, names_that_forbid_a_return_probe)
{
    static const char *const forbidden[] = {
        "setjmp",
        "_setjmp",
        "sigsetjmp",
        "__sigsetjmp",
        "_setjmp@plt",
        "vfork@plt",
        "__vfork",
        "savectx",
        "getcontext",
        "setcontext",
        "swapcontext",
        "makecontext",
        "longjmp",
        "siglongjmp",
        "__longjmp_chk",
        "_longjmp@plt",
        "_Unwind_RaiseException",
        "_Unwind_Resume@plt",
        "__cxa_throw",
        "__cxa_rethrow@plt",
        "pthread_exit",
        "__restore_rt",
        "clone",
        "__clone",
        "clone3",
        "__start_context",
        "_dl_runtime_resolve_xsavec",
        "__tls_get_addr",
        "__tls_get_addr@plt",
        "__libc_start_main",
        "__libc_start_main@@GLIBC_2.34",
        "dlsym",
        "dlopen@plt",
        "mcount",
        "__fentry__",
        "__asan_load8",
    };
    static const char *const allowed[] = {
        "main",
        "fork",
        "exit",
        "abort",
        "qsort",
        "start",
        "restore",
        "reset",
        "cloned",
        "my_setjmp_wrapper",
        "thread_start",
        "dlclose",
        "unwind",
        "Unwind",
        "",
        "_",
        "@plt",
        "malloc@plt",
    };
    char long_name[1000];

    for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
        cr_expect(plan_name_forbids_return(forbidden[i]), "%s", forbidden[i]);
    for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
        cr_expect_not(plan_name_forbids_return(allowed[i]), "%s", allowed[i]);
    memset(long_name, 'x', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    cr_expect_not(plan_name_forbids_return(long_name));
}

Test(plan, every_reason_has_words)
{
    for (int i = 0; i < PLAN_NO_RETURNS; i++)
        cr_expect_str_neq(plan_no_return_text((enum plan_no_return)i), "unknown");
    cr_expect_str_eq(plan_no_return_text(PLAN_NO_RETURNS), "unknown");
}
