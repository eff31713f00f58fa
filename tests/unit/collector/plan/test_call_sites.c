/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions that are seen by their calls, in hand-made images: when, and when not. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/array.h"
#include "tests/unit/collector/subject.h"

#define GLOBAL ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)

/* `leaf` (mov %rdi, %rax; ret) has no cheap site. `first` and `second` call it behind a push, `tail` jumps to
 * it behind one. */
enum { LEAF = 0x08, FIRST = 0x10, SECOND = 0x20, TAIL = 0x30, OTHER = 0x40, GAP = 0x60, END = 0x80 };

struct scene {
    uint8_t text[END];
    struct tiny_symbol symbols[8];
    size_t symbol_count;
    uint16_t type; /* ET_EXEC: addresses may be immediates */
    uint64_t entry;
};

static void put(struct scene *scene, size_t at, const void *code, size_t size)
{
    memcpy(scene->text + at, code, size);
}

#define PUT(scene, at, ...) \
    put(scene, at, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* A displacement of four bytes at `at` that leads to `to`. */
static void put_distance(struct scene *scene, size_t at, size_t to)
{
    int32_t distance = (int32_t)to - (int32_t)(at + 4);

    put(scene, at, &distance, sizeof(distance));
}

static void put_call(struct scene *scene, size_t at, uint8_t opcode, size_t to)
{
    PUT(scene, at, opcode);
    put_distance(scene, at + 1, to);
}

static void add_symbol(struct scene *scene, const char *name, size_t at, size_t size)
{
    scene->symbols[scene->symbol_count++] = (struct tiny_symbol){name, at, size, GLOBAL};
}

/* push; call leaf; pop; ret */
static void put_caller(struct scene *scene, const char *name, size_t at)
{
    PUT(scene, at, 0x53);
    put_call(scene, at + 1, 0xe8, LEAF);
    PUT(scene, at + 6, 0x5b, 0xc3);
    add_symbol(scene, name, at, 8);
}

static struct scene new_scene(void)
{
    struct scene scene = {.type = ET_DYN};

    memset(scene.text, 0xcc, sizeof(scene.text));
    PUT(&scene, LEAF, 0x48, 0x89, 0xf8, 0xc3);
    add_symbol(&scene, "leaf", LEAF, 4);
    put_caller(&scene, "first", FIRST);
    put_caller(&scene, "second", SECOND);
    PUT(&scene, TAIL, 0x53, 0x5b);
    put_call(&scene, TAIL + 2, 0xe9, LEAF);
    add_symbol(&scene, "tail", TAIL, 7);
    return scene;
}

/* The code segment ends with the code: the symbols behind it in the file hold addresses too. */
static struct subject plan_scene(const struct scene *scene, const struct plan_options *options)
{
    const struct tiny_elf tiny = {
        .text = scene->text,
        .text_size = sizeof(scene->text),
        .symbols = scene->symbols,
        .symbol_count = scene->symbol_count,
        .type = scene->type,
        .entry = scene->entry,
    };
    uint8_t image[TINY_MAX];
    size_t size = tiny_elf_build(&tiny, image);
    Elf64_Phdr *segment = (Elf64_Phdr *)(image + sizeof(Elf64_Ehdr));
    struct subject subject;

    segment->p_filesz = segment->p_memsz = TINY_TEXT_OFFSET + sizeof(scene->text);
    subject = subject_bytes(image, size, options);
    return subject;
}

/* The nth probe of `leaf`. */
static const struct plan_probe *leaf_probe(const struct subject *subject, size_t nth)
{
    for (size_t i = 0; i < subject->plan->count; i++)
        if (strcmp(subject->functions[subject->plan->probes[i].function].name, "leaf") == 0 && nth-- == 0)
            return &subject->plan->probes[i];
    return NULL;
}

/* Options with which images without .dynsym are trusted: none. So these are programs at a fixed address. */
static struct scene fixed_scene(void)
{
    struct scene scene = new_scene();

    scene.type = ET_EXEC;
    return scene;
}

static void expect_called(const struct scene *scene, bool expected, const char *what)
{
    AUTO_SUBJECT struct subject subject = plan_scene(scene, NULL);
    const struct plan_probe *probe = leaf_probe(&subject, 0);

    cr_assert_not_null(probe, "%s", what);
    cr_expect_eq(probe->kind != PLAN_AT_ENTRY, expected, "%s", what);
}

Test(call_sites, all_calls_and_tail_calls_are_probed)
{
    struct scene scene = fixed_scene();
    AUTO_SUBJECT struct subject subject = plan_scene(&scene, NULL);
    static const struct {
        size_t at;
        enum plan_site_kind kind;
    } expected[] = {{FIRST + 1, PLAN_AT_CALL}, {SECOND + 1, PLAN_AT_CALL}, {TAIL + 2, PLAN_AT_JUMP}};

    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const struct plan_probe *probe = leaf_probe(&subject, i);

        cr_assert_not_null(probe);
        cr_expect_eq(probe->address, TINY_TEXT + expected[i].at);
        cr_expect_eq(probe->file_offset, TINY_TEXT_OFFSET + expected[i].at);
        cr_expect_eq(probe->kind, expected[i].kind);
        cr_expect_eq(probe->class, SITE_EMULATED);
    }
    subject_check_totals(&subject);
    cr_expect_null(leaf_probe(&subject, ARRAY_SIZE(expected)));
    cr_expect_eq(subject.plan->functions, 4);
    cr_expect_eq(subject.plan->by_class[SITE_EMULATED], 4);
    cr_expect_eq(subject_probe(&subject, "first")->kind, PLAN_AT_ENTRY);
}

Test(call_sites, only_where_the_mode_and_the_costs_want_it)
{
    static const struct site_costs all_the_same = {500, 500, 300};
    const struct {
        struct plan_options options;
        enum plan_site_kind expected;
    } cases[] = {
        {{.returns = PLAN_RETURNS_INFER}, PLAN_AT_CALL},
        {{.returns = PLAN_RETURNS_NONE}, PLAN_AT_CALL},
        {{.returns = PLAN_RETURNS_PROBE}, PLAN_AT_ENTRY},
        {{.returns = PLAN_RETURNS_SITES}, PLAN_AT_ENTRY},
        {{.calls_max = 3}, PLAN_AT_CALL},
        {{.calls_max = 2}, PLAN_AT_ENTRY},
    };
    struct scene scene = fixed_scene();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO_SUBJECT struct subject subject = plan_scene(&scene, &cases[i].options);

        cr_expect_eq(leaf_probe(&subject, 0)->kind, cases[i].expected, "case %zu", i);
    }
    const struct plan_options options = {.returns = PLAN_RETURNS_INFER, .costs = &all_the_same};
    AUTO_SUBJECT struct subject subject = plan_scene(&scene, &options);

    cr_expect_eq(leaf_probe(&subject, 0)->kind, PLAN_AT_ENTRY, "no gain");
    cr_expect_eq(leaf_probe(&subject, 0)->cost_ns, 500);
}

Test(call_sites, a_position_independent_image_without_dynamic_symbols_is_not_trusted)
{
    struct scene scene = new_scene();

    expect_called(&scene, false, "no .dynsym");
}

Test(call_sites, unknown_ways_in_forbid_it)
{
    const uint64_t leaf = TINY_TEXT + LEAF;
    struct scene scene = fixed_scene();

    PUT(&scene, OTHER, 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3);
    put_distance(&scene, OTHER + 3, LEAF);
    expect_called(&scene, false, "lea");
    scene = fixed_scene();
    PUT(&scene, OTHER, 0xbf);
    put(&scene, OTHER + 1, &leaf, 4);
    expect_called(&scene, false, "an immediate");
    scene = fixed_scene();
    PUT(&scene, OTHER, 0x48, 0xb8);
    put(&scene, OTHER + 2, &leaf, 8);
    expect_called(&scene, false, "movabs");
    scene = fixed_scene();
    PUT(&scene, OTHER, 0x0f, 0x84);
    put_distance(&scene, OTHER + 2, LEAF);
    add_symbol(&scene, "other", OTHER, 7);
    expect_called(&scene, false, "a conditional tail call");
    scene = fixed_scene();
    PUT(&scene, OTHER, 0x74, (uint8_t)(LEAF - OTHER - 2));
    expect_called(&scene, false, "a short one");
    scene = fixed_scene();
    PUT(&scene, OTHER, 0xf2, 0xe8);
    put_distance(&scene, OTHER + 2, LEAF);
    expect_called(&scene, false, "a call of six bytes");
    scene = fixed_scene();
    PUT(&scene, OTHER, 0xb8); /* mov, whose immediate is a call and a half */
    put_call(&scene, OTHER + 2, 0xe8, LEAF);
    expect_called(&scene, false, "the bytes of a call inside an instruction");
    scene = fixed_scene();
    scene.entry = leaf;
    expect_called(&scene, false, "the program's entry point");
    scene = fixed_scene();
    PUT(&scene, FIRST - 1, 0x90);
    expect_called(&scene, true, "padding before another function");
}

Test(call_sites, calls_of_unnamed_code_are_probed_too)
{
    struct scene scene = fixed_scene();

    put_call(&scene, GAP, 0xe8, LEAF);
    expect_called(&scene, true, "a call between functions");
    AUTO_SUBJECT struct subject subject = plan_scene(&scene, NULL);
    cr_assert_not_null(leaf_probe(&subject, 3));
    cr_expect_eq(leaf_probe(&subject, 3)->address, TINY_TEXT + GAP);
}

Test(call_sites, a_function_that_is_fallen_into)
{
    struct scene scene = fixed_scene();

    /* the leaf once more behind `other`, which ends without a jump, and called */
    scene.symbols[0].offset = OTHER + 3;
    PUT(&scene, OTHER, 0x48, 0x89, 0xfe, 0x48, 0x89, 0xf8, 0xc3);
    add_symbol(&scene, "other", OTHER, 3);
    put_call(&scene, FIRST + 1, 0xe8, OTHER + 3);
    expect_called(&scene, false, "from mov");
    PUT(&scene, OTHER, 0x0f, 0x1f, 0x00);
    PUT(&scene, OTHER - 1, 0xc3);
    expect_called(&scene, true, "a nop behind a return");
}

Test(call_sites, loops_to_the_entry_are_no_calls)
{
    struct scene scene = fixed_scene();

    /* leaf: dec %edi; jne leaf; ret */
    PUT(&scene, LEAF, 0xff, 0xcf, 0x75, 0xfc, 0xc3);
    scene.symbols[0].size = 5;
    AUTO_SUBJECT struct subject subject = plan_scene(&scene, NULL);
    cr_assert_not_null(leaf_probe(&subject, 2));
    cr_expect_null(leaf_probe(&subject, 3));
    cr_expect_eq(leaf_probe(&subject, 0)->kind, PLAN_AT_CALL);
    scene.entry = TINY_TEXT + LEAF; /* nobody's calls are all known then */
    AUTO_SUBJECT struct subject taken = plan_scene(&scene, NULL);
    cr_expect_eq(subject_refusal(&taken, "leaf"), SITE_LOOP);
}

Test(call_sites, a_call_may_be_the_site_of_its_own_function)
{
    struct scene scene = fixed_scene();

    /* first: mov; call leaf; ret: the call is its own only cheap site */
    PUT(&scene, FIRST, 0x48, 0x89, 0xf0);
    put_call(&scene, FIRST + 3, 0xe8, LEAF);
    PUT(&scene, FIRST + 8, 0xc3);
    scene.symbols[1].size = 9;
    AUTO_SUBJECT struct subject subject = plan_scene(&scene, NULL);
    cr_expect_eq(leaf_probe(&subject, 0)->address, TINY_TEXT + FIRST + 3);
    cr_expect_eq(leaf_probe(&subject, 0)->kind, PLAN_AT_CALL);
    cr_assert_not_null(subject_probe(&subject, "first"));
    cr_expect_eq(subject_probe(&subject, "first")->address, TINY_TEXT + FIRST + 3);
    cr_expect_eq(subject_probe(&subject, "first")->kind, PLAN_AT_ENTRY);
    cr_expect_eq(subject_probe(&subject, "first")->class, SITE_EMULATED);
    cr_expect_lt(subject_probe(&subject, "first"), leaf_probe(&subject, 0), "the entry comes first");
    /* nop5; jmp leaf: a function that is nothing but a tail call */
    PUT(&scene, FIRST, 0x0f, 0x1f, 0x44, 0, 0);
    put_call(&scene, FIRST + 5, 0xe9, LEAF);
    scene.symbols[1].size = 10;
    AUTO_SUBJECT struct subject tail = plan_scene(&scene, NULL);
    cr_expect_eq(leaf_probe(&tail, 0)->kind, PLAN_AT_JUMP);
    cr_expect_eq(leaf_probe(&tail, 0)->address, TINY_TEXT + FIRST + 5);
    cr_expect_eq(subject_probe(&tail, "first")->address, TINY_TEXT + FIRST + 5);
    cr_expect_eq(subject_probe(&tail, "first")->class, SITE_EMULATED);
}
