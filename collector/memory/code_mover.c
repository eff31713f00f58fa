/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/memory/code_mover.h"

#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "collector/process/target_memory.h"
#include "image/elf/imports.h"

/* What the core of each of valgrind's tools asks its environment for. */
static const char launcher[] = "VALGRIND_LAUNCHER";

/* The section of Intel's code that moves a program to large pages, as node and others have it. */
static const char mover_section[] = "lpstub";

static const char option[] = "--use-largepages";

static bool holds(struct elf_image *image, const GElf_Phdr *segment, const char *text)
{
    size_t size = 0;
    const uint8_t *bytes = elf_image_bytes(image, segment->p_vaddr, &size);

    return bytes && memmem(bytes, size, text, strlen(text));
}

bool code_mover_translates(struct elf_image *image)
{
    Elf *elf = elf_image_elf(image);
    bool found = false;
    GElf_Phdr header;
    size_t count;

    if (!elf_image_facts(image)->is_static || elf_getphdrnum(elf, &count) < 0 || count > INT_MAX)
        return false;
    for (int i = 0; i < (int)count && !found; i++)
        found = gelf_getphdr(elf, i, &header) && header.p_type == PT_LOAD &&
                !(header.p_flags & (PF_X | PF_W)) && holds(image, &header, launcher);
    return found;
}

/* Whether the image's table of symbols has both a name of where its code begins and one of where it ends. A linker defines
 * them only for a program that asks for them. */
static bool knows_its_code(struct elf_image *image)
{
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    bool begins = false, ends = false;
    GElf_Shdr header;

    while (!(begins && ends) && (section = elf_nextscn(elf, section))) {
        Elf_Data *data = gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB && header.sh_entsize
                             ? elf_getdata(section, NULL)
                             : NULL;
        size_t count = data ? data->d_size / header.sh_entsize : 0;
        GElf_Sym symbol;

        for (size_t i = 0; i < count && i <= INT_MAX; i++) {
            const char *name =
                gelf_getsym(data, (int)i, &symbol) ? elf_strptr(elf, header.sh_link, symbol.st_name) : NULL;

            begins |= name && !strcmp(name, "__executable_start");
            ends |= name && (!strcmp(name, "etext") || !strcmp(name, "_etext") || !strcmp(name, "__etext"));
        }
    }
    return begins && ends;
}

bool code_mover_moves(struct elf_image *image)
{
    return image_imports(image, (const char *const[]){"mremap", NULL}) && knows_its_code(image);
}

static bool has_mover(struct elf_image *image)
{
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    size_t names;

    if (elf_getshdrstrndx(elf, &names))
        return false;
    while ((section = elf_nextscn(elf, section))) {
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

        if (name && !strcmp(name, mover_section))
            return true;
    }
    return false;
}

bool code_mover_can_move(struct elf_image *image)
{
    return has_mover(image) || code_mover_moves(image);
}

/* Whether a list of texts, each with a NUL behind it, has the option and does not switch it off with it. */
static bool has_option(pid_t pid, const char *list)
{
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    bool found = false;

    if (target_proc_text(pid, list, &text, &size))
        return false;
    for (const char *item = text; !found && item < text + size; item += strlen(item) + 1) {
        const char *at = strstr(item, option);

        found = at && strncmp(at + strlen(option), "=off", 4);
    }
    return found;
}

bool code_mover_is_configured(pid_t pid)
{
    return has_option(pid, "cmdline") || has_option(pid, "environ");
}
