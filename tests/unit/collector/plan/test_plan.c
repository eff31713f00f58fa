/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Plans of hand-made images and of this program: who is probed, who has a return probe, who is refused and
 * why. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "collector/plan/plan.h"
#include "tests/unit/collector/subject.h"
#include "tests/unit/image/tiny_elf.h"

#define GLOBAL ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define LOCAL ELF64_ST_INFO(STB_LOCAL, STT_FUNC)

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

static const struct plan_options return_probes = {.returns = PLAN_RETURNS_PROBE};

Test(plan, of_a_c_program)
{
    AUTO_SUBJECT struct subject subject = subject_tiny(&c_program, &return_probes);
    const struct plan_probe *probe = subject_probe(&subject, "with_endbr");

    subject_check_totals(&subject);
    cr_expect_eq(subject.plan->wanted, 6);
    cr_expect_eq(subject.plan->count, 4);
    cr_expect_eq(subject.plan->return_probes, 4);
    cr_assert_not_null(probe);
    cr_expect_eq(probe->file_offset, TINY_TEXT_OFFSET + 16 + 4);
    cr_expect_eq(probe->address, TINY_TEXT + 16 + 4);
    cr_expect_eq(probe->class, SITE_EMULATED);
    cr_expect(probe->return_probe);
    cr_assert_not_null(subject_probe(&subject, "behind"));
    cr_expect_eq(subject_probe(&subject, "behind")->class, SITE_SINGLE_STEPPED);
    cr_expect_eq(subject_refusal(&subject, "all_padding"), SITE_NO_ROOM);
    cr_expect_eq(subject_refusal(&subject, "trap"), SITE_TRAP);
    cr_assert_not_null(subject_probe(&subject, "locked"), "behind the LOCK");
    cr_expect_eq(subject_probe(&subject, "locked")->address, TINY_TEXT + 56 + 3);
}

Test(plan, a_site_never_reaches_into_the_next_function)
{
    /* The first symbol claims 6 bytes and so covers `behind`, whose `ret` would be its site too. */
    const struct tiny_symbol overlapping[] = {{"all_padding", 32, 6, GLOBAL}, {"behind", 37, 1, GLOBAL}};
    struct tiny_elf tiny = c_program;

    tiny.symbols = overlapping;
    tiny.symbol_count = 2;
    AUTO_SUBJECT struct subject subject = subject_tiny(&tiny, NULL);
    subject_check_totals(&subject);
    cr_expect_eq(subject.plan->count, 0);
    cr_expect_eq(subject_refusal(&subject, "all_padding"), SITE_NO_ROOM);
    cr_expect_eq(subject_refusal(&subject, "behind"), SITE_INSIDE);
}

Test(plan, go_functions_have_no_return_probes)
{
    struct tiny_elf tiny = c_program;

    tiny.extra_section = ".gopclntab";
    AUTO_SUBJECT struct subject subject = subject_tiny(&tiny, &return_probes);
    subject_check_totals(&subject);
    cr_expect_eq(subject.plan->functions, 4);
    cr_expect_eq(subject.plan->by_no_return[PLAN_RETURN_GO], 4);
}

static void expect_no_returns(const struct tiny_elf *tiny, const struct plan_options *options,
                              enum plan_no_return reason)
{
    AUTO_SUBJECT struct subject subject = subject_tiny(tiny, options);

    subject_check_totals(&subject);
    cr_expect_eq(subject.plan->count, 4);
    cr_expect_eq(subject.plan->return_probes, 0);
    cr_expect_eq(subject.plan->by_no_return[reason], 4, "%s", plan_no_return_text(reason));
}

Test(plan, returns_are_inferred_where_probes_would_harm)
{
    struct tiny_elf tiny = c_program;

    tiny.extra_section = ".gcc_except_table";
    expect_no_returns(&tiny, &return_probes, PLAN_RETURN_UNWIND);
    tiny = c_program;
    tiny.interpreter = NULL;
    expect_no_returns(&tiny, &return_probes, PLAN_RETURN_STATIC);
    expect_no_returns(&c_program, NULL, PLAN_RETURN_NOT_WANTED);
}

/* One more symbol tells what the image is: a function that nothing is known against but that. */
Test(plan, images_that_read_their_stacks_have_no_return_probes)
{
    static const char *const readers[] = {
        "caml_frametable",
        "caml_alloc1",
        "hs_main",
        "stg_ap_v_info",
        "__asan_init",
        "__tsan_init",
        "__ubsan_handle_add_overflow",
        "JNI_CreateJavaVM",
        "PyInit__greenlet",
        "_ULx86_64_step",
    };
    static const char *const others[] = {"camlib", "hs_mainly", "mcount" /* its own */, "asan_init", "stg"};

    for (size_t i = 0; i < ARRAY_SIZE(readers) + ARRAY_SIZE(others); i++) {
        bool reads = i < ARRAY_SIZE(readers);
        const char *name = reads ? readers[i] : others[i - ARRAY_SIZE(readers)];
        const struct tiny_symbol two[] = {{"main", 0, 2, GLOBAL}, {name, 16, 6, GLOBAL}};
        struct tiny_elf tiny = c_program;

        tiny.symbols = two;
        tiny.symbol_count = ARRAY_SIZE(two);
        AUTO_SUBJECT struct subject subject = subject_tiny(&tiny, &return_probes);
        AUTO_SUBJECT struct subject inferred = subject_tiny(&tiny, NULL);

        cr_expect_eq(subject.plan->by_no_return[PLAN_RETURN_STACKS], reads ? 2 : 0, "%s", name);
        cr_expect_eq(subject.plan->no_returns != NULL, reads, "%s", name);
        cr_expect_null(inferred.plan->no_returns, "%s: none are wanted", name);
    }
}

static bool is_endbr(void *context, const struct image_function *function)
{
    return !strcmp(function->name, "with_endbr");
}

/* On its RET, and nobody else's. */
Test(plan, returns_of_some_functions_are_seen_in_any_case)
{
    const struct plan_options options = {.timed = is_endbr, .returns = PLAN_RETURNS_PROBE};
    struct tiny_elf tiny = c_program;
    size_t returns = 0;

    tiny.extra_section = ".gcc_except_table";
    AUTO_SUBJECT struct subject subject = subject_tiny(&tiny, &options);
    subject_check_totals(&subject);
    for (size_t i = 0; i < subject.plan->count; i++) {
        if (subject.plan->probes[i].kind != PLAN_AT_RETURN)
            continue;
        returns++;
        cr_expect_eq(subject.plan->probes[i].address, TINY_TEXT + 16 + 5);
    }
    cr_expect_eq(returns, 1);
    cr_expect_eq(subject.plan->by_no_return[PLAN_RETURN_SITES], 1);
    cr_expect_eq(subject.plan->by_no_return[PLAN_RETURN_UNWIND], 3);
}

/* Without return probes, too. */
Test(plan, returns_that_are_timed_need_no_return_probe)
{
    const struct plan_options options = {.timed = is_endbr};
    AUTO_SUBJECT struct subject subject = subject_tiny(&c_program, &options);

    subject_check_totals(&subject);
    cr_expect_eq(subject.plan->return_probes, 0);
    cr_expect_eq(subject.plan->by_kind[PLAN_AT_RETURN], 1);
    cr_expect_eq(subject.plan->by_no_return[PLAN_RETURN_SITES], 1);
    cr_expect_eq(subject.plan->by_no_return[PLAN_RETURN_NOT_WANTED], 3);
}

Test(plan, some_functions_get_no_return_probe)
{
    const struct tiny_symbol special[] = {
        {"_start", 0, 1, GLOBAL},     {"vfork", 1, 1, GLOBAL},   {"harmless", 2, 1, GLOBAL},
        {"__sigsetjmp", 2, 1, LOCAL}, {"sizeless", 3, 0, LOCAL}, {"outer", 4, 4, GLOBAL},
        {"inner", 6, 1, LOCAL},       {"plain", 8, 1, GLOBAL},   {"frame_dummy", 9, 1, LOCAL},
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
    AUTO_SUBJECT struct subject subject = subject_tiny(&tiny, &return_probes);
    subject_check_totals(&subject);
    cr_expect_eq(subject_refusal(&subject, "sizeless"), SITE_NO_SIZE);
    cr_expect_eq(subject_refusal(&subject, "inner"), SITE_INSIDE);
    cr_expect_eq(subject_refusal(&subject, "frame_dummy"), SITE_START_UP);
    cr_assert_eq(subject.plan->count, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const struct plan_probe *probe = subject_probe(&subject, expected[i].name);

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
    AUTO_SUBJECT struct subject subject = subject_tiny(&tiny, NULL);
    subject_check_totals(&subject);
    cr_expect_eq(subject.plan->count, 1);
    cr_expect_eq(subject_refusal(&subject, "f.cold"), SITE_FRAGMENT);
    cr_expect_eq(subject_refusal(&subject, "pick"), SITE_IFUNC);
}

static bool want_named(void *ctx, struct elf_image *image, const struct image_function *function)
{
    return strcmp(function->name, ctx) == 0;
}

Test(plan, only_wanted_functions_are_counted)
{
    char name[] = "with_endbr";
    const struct plan_options options = {.want = want_named, .ctx = name};
    AUTO_SUBJECT struct subject subject = subject_tiny(&c_program, &options);

    subject_check_totals(&subject);
    cr_expect_eq(subject.plan->wanted, 1);
    cr_assert_eq(subject.plan->count, 1);
    cr_expect_str_eq(subject.functions[subject.plan->probes[0].function].name, name);
}

Test(plan, nothing_to_probe_is_no_error)
{
    struct tiny_elf tiny = c_program;

    tiny.symbol_count = 0;
    AUTO_SUBJECT struct subject subject = subject_tiny(&tiny, NULL);
    cr_expect_eq(subject.plan->wanted, 0);
    plan_free(NULL);
}

Test(plan, stubs_can_be_left_out)
{
    const struct plan_options no_plt = {.no_plt = true};
    AUTO_SUBJECT struct subject with = subject_file("/proc/self/exe", NULL);
    AUTO_SUBJECT struct subject without = subject_file("/proc/self/exe", &no_plt);

    subject_check_totals(&with);
    subject_check_totals(&without);
    cr_expect_not_null(subject_probe(&with, "strcmp@plt"));
    cr_expect_null(subject_probe(&without, "strcmp@plt"));
    cr_expect_eq(with.plan->wanted, with.count);
    cr_expect_eq(without.plan->wanted, image_functions_own(without.functions, without.count));
}

/* Compiled with -fno-plt: an import is seen at `call *slot(%rip)`, wherever that stands, or not at all. */
Test(plan, imports_without_a_stub)
{
    static const char source[] =
        ".text\n.globl _start, tail, twice\n"
        ".type _start, @function\n.type tail, @function\n.type twice, @function\n"
        "_start: call twice\n call tail\n.fill 80, 1, 0x90\n ud2\n.size _start, .-_start\n"
        "twice: push %rbx\n call *puts@GOTPCREL(%rip)\n call *puts@GOTPCREL(%rip)\n pop %rbx\n"
        " call *exit@GOTPCREL(%rip)\n mov abort@GOTPCREL(%rip), %rax\n call *abort@GOTPCREL(%rip)\n"
        " ret\n.size twice, .-twice\n"
        "tail: cmpq $0, read@GOTPCREL(%rip)\n jmp *read@GOTPCREL(%rip)\n.size tail, .-tail\n";
    AUTO_SUBJECT struct subject subject = subject_assembly(source, "-Wl,-z,norelro -lc", &return_probes);
    const struct plan_probe *puts = subject_probe(&subject, "puts@plt"),
                            *read = subject_probe(&subject, "read@plt");

    subject_check_totals(&subject);
    cr_assert(puts && read);
    cr_expect_eq(puts[0].kind, PLAN_AT_CALL);
    cr_expect_eq(puts[0].call_length, 6);
    cr_expect_eq(puts[0].class, SITE_SINGLE_STEPPED);
    cr_expect_eq(puts[0].no_return, PLAN_RETURN_AT_CALLS, "a return probe there would harm");
    cr_expect_not(puts[0].return_probe);
    cr_expect_eq(puts[1].address, puts[0].address + 6);
    cr_expect_eq(puts[1].function, puts[0].function);
    cr_expect_not_null(subject_probe(&subject, "exit@plt"));
    cr_expect_eq(subject_refusal(&subject, "abort@plt"), SITE_NO_STUB, "it may be called through %%rax");
    cr_expect_eq(read->kind, PLAN_AT_JUMP);
}

Test(plan, every_reason_has_words)
{
    for (int i = 0; i < PLAN_NO_RETURNS; i++)
        cr_expect_str_neq(plan_no_return_text((enum plan_no_return)i), "unknown");
    cr_expect_str_eq(plan_no_return_text(PLAN_NO_RETURNS), "unknown");
    for (int i = 0; i < PLAN_SITE_KINDS; i++)
        cr_expect_str_neq(plan_site_kind_text((enum plan_site_kind)i), "unknown");
    cr_expect_str_eq(plan_site_kind_text(PLAN_SITE_KINDS), "unknown");
}
