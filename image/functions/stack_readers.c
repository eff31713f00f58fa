/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/functions/stack_readers.h"

#include <fnmatch.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"

#define OCAML "OCaml: its garbage collector finds frames by return addresses"
#define HASKELL "Haskell: what lies at the stack pointer is no return address"
#define PROFILED "profiled: each function tells the profiler where it was called from"
#define SANITIZED "a sanitizer: it walks the stack"

static const char switches[] = "it switches stacks or walks them";

enum where { IMPORTED = 1, DEFINED = 2, ANYWHERE = IMPORTED | DEFINED };

/* A pattern begins with at least two plain letters, by which most symbols are told apart from all of them.
 * The C library defines what others import. */
static const struct telltale {
    const char *pattern;
    enum where where;
    const char *what;
} telltales[] = {
    {"caml_*", ANYWHERE, OCAML},
    {"hs_main", ANYWHERE, HASKELL},
    {"hs_init*", ANYWHERE, HASKELL},
    {"stg_ap_*", ANYWHERE, HASKELL},
    {"mcount", IMPORTED, PROFILED},
    {"_mcount", IMPORTED, PROFILED},
    {"__mcount*", IMPORTED, PROFILED},
    {"__fentry__", IMPORTED, PROFILED},
    {"__cyg_profile_func_*", IMPORTED, PROFILED},
    {"__monstartup", IMPORTED, PROFILED},
    {"__asan_init", ANYWHERE, SANITIZED},
    {"__hwasan_init", ANYWHERE, SANITIZED},
    {"__tsan_init", ANYWHERE, SANITIZED},
    {"__msan_init", ANYWHERE, SANITIZED},
    {"__dfsan_init*", ANYWHERE, SANITIZED},
    {"__lsan_init", ANYWHERE, SANITIZED},
    {"__ubsan_handle_*", ANYWHERE, SANITIZED},
    {"__sanitizer_*", DEFINED, SANITIZED},
    {"JNI_CreateJavaVM", DEFINED, "a Java virtual machine: it walks its threads' stacks"},
    {"coreclr_initialize", DEFINED, ".NET: it walks its threads' stacks"},
    {"mono_jit_init*", DEFINED, "Mono: it walks its threads' stacks"},
    {"scm_boot_guile", DEFINED, "Guile: it copies stacks"},
    {"ruby_init*", DEFINED, "Ruby: it copies stacks"},
    {"PyInit__greenlet", DEFINED, "greenlet: it copies stacks"},
    {"ProfilerStart", DEFINED, "a profiler that walks the stack"},
    {"unw_step", ANYWHERE, switches},
    {"unw_backtrace", ANYWHERE, switches},
    {"_ULx86_64_step", ANYWHERE, switches},
    {"_Ux86_64_step", ANYWHERE, switches},
    {"backtrace", IMPORTED, switches},
    {"_Unwind_Backtrace", IMPORTED, switches},
    {"makecontext", IMPORTED, switches},
    {"swapcontext", IMPORTED, switches},
    {"setcontext", IMPORTED, switches},
};

/* What a symbol tells. A weak import asks whether something is there, and mostly nothing is. */
static const char *told_by(const GElf_Sym *symbol, const char *name)
{
    bool is_import = symbol->st_shndx == SHN_UNDEF;

    if (!name || (is_import && GELF_ST_BIND(symbol->st_info) == STB_WEAK))
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(telltales); i++)
        if (!strncmp(telltales[i].pattern, name, 2) &&
            telltales[i].where & (is_import ? IMPORTED : DEFINED) && !fnmatch(telltales[i].pattern, name, 0))
            return telltales[i].what;
    return NULL;
}

static void take(struct stack_reader *reader, const char *what)
{
    enum stack_reach reach = !what ? STACK_NONE : what == switches ? STACK_OWN : STACK_PROCESS;

    if (reach > reader->reach)
        *reader = (struct stack_reader){reach, what};
}

static void read_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct stack_reader *reader)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    for (int i = 0; reader->reach < STACK_PROCESS && data && i < INT_MAX && gelf_getsym(data, i, &symbol);
         i++)
        take(reader, told_by(&symbol, elf_strptr(elf, header->sh_link, symbol.st_name)));
}

/* Words of the run-time system of GHC, when it reports an error of its own: "(GHC ...". They are put together
 * here, so that this program does not have them itself. */
static const char *told_by_constants(Elf *elf, Elf_Scn *section)
{
    char words[] = "_GHC version %s for %s)";
    Elf_Data *data = elf_getdata(section, NULL);

    words[0] = '(';
    return data && data->d_buf && memmem(data->d_buf, data->d_size, words, sizeof(words) - 1) ? HASKELL
                                                                                              : NULL;
}

struct stack_reader image_stack_reader(struct elf_image *image)
{
    struct stack_reader reader = {STACK_NONE, NULL};
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    const char *name;
    GElf_Shdr header;
    size_t names;

    if (elf_getshdrstrndx(elf, &names))
        return reader;
    while (reader.reach < STACK_PROCESS && (section = elf_nextscn(elf, section)) &&
           gelf_getshdr(section, &header)) {
        name = elf_strptr(elf, names, header.sh_name);
        if (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB)
            read_table(elf, section, &header, &reader);
        else if (header.sh_type == SHT_PROGBITS && name && !strcmp(name, ".rodata"))
            take(&reader, told_by_constants(elf, section));
    }
    return reader;
}
