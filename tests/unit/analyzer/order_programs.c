/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/unit/analyzer/order_programs.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define FUNCTIONS 5
#define DEPTH_MAX 4

/* ---------------------------------------------------------------------------------------------- the source
 */

struct generator {
    FILE *out;
    uint64_t state;
    unsigned function, names;
};

/* What every program has: noise, and the telling of one in a few of its points. */
static const char runtime[] =
    "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unwind.h>\n"
    "#define APART __attribute__((noinline, noclone, noipa))\n"
    "extern char __executable_start[];\n"
    "struct frame { uint64_t address, cfa, registers[6], count, words[96]; };\n"
    "static struct frame frames[64];\n"
    "static uint64_t count, now, state, told;\n"
    "static FILE *out;\n"
    "static int found_main;\n"
    "int main(int argc, char **argv);\n"
    "static _Unwind_Reason_Code tell(struct _Unwind_Context *context, void *unused)\n"
    "{\n"
    "    static const int numbers[] = {3, 6, 12, 13, 14, 15};\n"
    "    struct frame *frame = &frames[count];\n"
    "    if (count > 0)\n"
    "        frame[-1].cfa = _Unwind_GetCFA(context);\n"
    "    if (found_main || count == 63)\n"
    "        return _URC_END_OF_STACK;\n"
    "    frame->address = _Unwind_GetIP(context);\n"
    "    for (int i = 0; i < 6; i++)\n"
    "        frame->registers[i] = _Unwind_GetGR(context, numbers[i]);\n"
    "    found_main = _Unwind_GetRegionStart(context) == (uintptr_t)main;\n"
    "    count++;\n"
    "    return _URC_NO_REASON;\n"
    "}\n"
    "static void tell_words(struct frame *frame, uint64_t sp)\n"
    "{\n"
    "    frame->count = (frame->cfa - sp) / 8;\n"
    "    if (frame->count > 96)\n"
    "        frame->count = 96;\n"
    "    memcpy(frame->words, (char *)frame->cfa - 8 * frame->count, 8 * frame->count);\n"
    "    frame->address -= (uintptr_t)__executable_start;\n"
    "}\n"
    "APART void point(void)\n"
    "{\n"
    "    static uint64_t chance = 88172645463325252u;\n"
    "    now++;\n"
    "    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;\n"
    "#ifdef TRACED\n"
    "    return;\n"
    "#endif\n"
    "    if (chance % 4 != 0 || told >= 400)\n"
    "        return;\n"
    "    told++;\n"
    "    count = found_main = 0;\n"
    "    _Unwind_Backtrace(tell, NULL);\n"
    "    for (uint64_t i = 0; i < count; i++)\n"
    "        tell_words(&frames[i], i ? frames[i - 1].cfa : (uintptr_t)__builtin_frame_address(0));\n"
    "    fwrite(&now, 8, 1, out);\n"
    "    fwrite(&count, 8, 1, out);\n"
    "    fwrite(frames, sizeof(frames[0]), count, out);\n"
    "}\n"
    "APART unsigned noise(unsigned below)\n"
    "{\n"
    "    state = state * 6364136223846793005u + 1442695040888963407u;\n"
    "    return (unsigned)(state >> 33) % below;\n"
    "}\n"
    "APART void change(int *at)\n"
    "{\n"
    "    *at += noise(2);\n"
    "}\n";

/* With -DTRACED -finstrument-functions it writes its calls instead. */
static const char tracing[] =
    "#ifdef TRACED\n"
    "#define QUIET __attribute__((no_instrument_function))\n"
    "static uint64_t written;\n"
    "__attribute__((constructor)) QUIET static void begin(int argc, char **argv)\n"
    "{\n"
    "    out = fopen(argv[2], \"w\");\n"
    "}\n"
    "QUIET static void finish(void)\n"
    "{\n"
    "    FILE *done = out;\n"
    "    out = NULL;\n"
    "    exit(fclose(done));\n"
    "}\n"
    "QUIET static void write_event(uint64_t kind, void *function, void *site)\n"
    "{\n"
    "    uint64_t base = (uintptr_t)__executable_start;\n"
    "    uint64_t event[] = {kind, (uintptr_t)function - base, (uintptr_t)site - base};\n"
    "    if (!out)\n"
    "        return;\n"
    "    fwrite(event, sizeof(event), 1, out);\n"
    "    if (++written == 20000)\n"
    "        finish();\n"
    "}\n"
    "QUIET void __cyg_profile_func_enter(void *function, void *site)\n"
    "{\n"
    "    write_event(1, function, site);\n"
    "}\n"
    "QUIET void __cyg_profile_func_exit(void *function, void *site)\n"
    "{\n"
    "    write_event(0, function, site);\n"
    "}\n"
    "#endif\n";

static unsigned chance(struct generator *generator, unsigned below)
{
    generator->state = generator->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(generator->state >> 33) % below;
}

static void statements(struct generator *generator, unsigned depth, bool in_loop);

static void block(struct generator *generator, unsigned depth, bool in_loop)
{
    fputs("{\n", generator->out);
    statements(generator, depth + 1, in_loop);
    fputs("}\n", generator->out);
}

/* The head of a loop with the name of its variable in the place of each @. */
static void head(struct generator *generator, const char *text, const char *name)
{
    for (; *text; text++) {
        if (*text == '@')
            fputs(name, generator->out);
        else
            fputc(*text, generator->out);
    }
}

/* Loops of every kind: some with a variable that orders their iterations, some with one that only seems to.
 */
static void loop(struct generator *generator, unsigned depth)
{
    static const char *const heads[] = {
        "for (int @ = 0; @ < 3; @++) ",        "for (int @ = 9; @ > 2; @ -= 3) ",
        "for (long @ = 1; @ < 4; @++) ",       "for (unsigned @ = 0; @ < noise(5); @++) ",
        "for (int @ = noise(3); @ < 4; @++) ", "for (int @ = 0; @ < 6; @ += 1 + noise(2)) ",
        "for (int @ = 0; @ < 4; change(&@)) ", "for (int @ = 1; @ < 9; @ *= 2) ",
    };
    char name[16];

    snprintf(name, sizeof(name), "v%u", generator->names++);
    switch (chance(generator, 4)) {
    case 0:
        fputs("while (noise(3)) ", generator->out);
        block(generator, depth, true);
        break;
    case 1:
        fprintf(generator->out, "{ int %s = 0; do ", name);
        block(generator, depth, true);
        fprintf(generator->out, "while (++%s < 3); }\n", name);
        break;
    default:
        head(generator, heads[chance(generator, sizeof(heads) / sizeof(heads[0]))], name);
        block(generator, depth, true);
    }
}

static void branch(struct generator *generator, unsigned depth, bool in_loop)
{
    fputs("if (noise(2)) ", generator->out);
    block(generator, depth, in_loop);
    if (chance(generator, 2)) {
        fputs("else ", generator->out);
        block(generator, depth, in_loop);
    }
}

static void selection(struct generator *generator, unsigned depth)
{
    unsigned cases = 2 + chance(generator, 5);

    fprintf(generator->out, "switch (noise(%u)) {\n", cases + 1);
    for (unsigned i = 0; i < cases; i++) {
        fprintf(generator->out, "case %u:\n", i);
        block(generator, depth, false);
        if (chance(generator, 3))
            fputs("break;\n", generator->out);
    }
    fputs("}\n", generator->out);
}

static void call(struct generator *generator)
{
    if (generator->function + 1 < FUNCTIONS)
        fprintf(generator->out, "f%u();\n",
                generator->function + 1 + chance(generator, FUNCTIONS - generator->function - 1));
}

/* Leaving early, in the middle of a branch. */
static void leave(struct generator *generator, bool in_loop)
{
    static const char *const ways[] = {"return;", "break;", "continue;"};

    fprintf(generator->out, "if (noise(6) == 0) { point(); %s }\n", ways[chance(generator, in_loop ? 3 : 1)]);
}

static void statements(struct generator *generator, unsigned depth, bool in_loop)
{
    unsigned count = 1 + chance(generator, 3);

    for (unsigned i = 0; i < count; i++) {
        fputs("point();\n", generator->out);
        switch (depth < DEPTH_MAX ? chance(generator, 7) : 6) {
        case 0:
        case 1:
            loop(generator, depth);
            break;
        case 2:
            branch(generator, depth, in_loop);
            break;
        case 3:
            selection(generator, depth);
            break;
        case 4:
            call(generator);
            break;
        case 5:
            leave(generator, in_loop);
            break;
        default:
            break;
        }
    }
    fputs("point();\n", generator->out);
}

char *order_program(unsigned seed)
{
    struct generator generator = {.state = seed * 2654435761u + 1};
    char *text = NULL;
    size_t size;

    generator.out = open_memstream(&text, &size);
    cr_assert_not_null(generator.out);
    fputs(runtime, generator.out);
    fputs(tracing, generator.out);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        fprintf(generator.out, "void f%u(void);\n", i);
    for (generator.function = 0; generator.function < FUNCTIONS; generator.function++) {
        fprintf(generator.out, "APART void f%u(void)\n{\n", generator.function);
        statements(&generator, 0, false);
        fputs("}\n", generator.out);
    }
    fputs(
        "int main(int argc, char **argv)\n{\n    FILE *done;\n    state = atoi(argv[1]) * 40503u + 7;\n"
        "    if (!out)\n        out = fopen(argv[2], \"w\");\n"
        "    for (int turn = 0; turn < 40; turn++) { f0(); point(); f1(); }\n"
        "    done = out;\n    out = NULL;\n    return fclose(done);\n}\n",
        generator.out);
    cr_assert_eq(fclose(generator.out), 0);
    return text;
}

/* ---------------------------------------------------------------------------------------------- what it
 * tells */

void told_run_read(const char *path, struct told_run *ret_run)
{
    struct told_run run = {0};
    struct told_sample sample;
    AUTO_FCLOSE FILE *in = fopen(path, "r");

    cr_assert_not_null(in);
    while (fread(&sample.time, sizeof(sample.time), 1, in) == 1) {
        cr_assert_eq(fread(&sample.count, sizeof(sample.count), 1, in), 1);
        sample.frames = calloc(sample.count, sizeof(*sample.frames));
        cr_assert_eq(fread(sample.frames, sizeof(*sample.frames), sample.count, in), sample.count);
        run.samples = realloc(run.samples, (run.count + 1) * sizeof(*run.samples));
        run.samples[run.count++] = sample;
    }
    *ret_run = run;
}

void told_run_release(struct told_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        free(run->samples[i].frames);
    free(run->samples);
}
