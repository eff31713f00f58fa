/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/elf/imports.h"

#include <gelf.h>
#include <limits.h>
#include <string.h>

static const char *listed(const char *name, const char *const *names)
{
    for (; name && *names; names++)
        if (!strcmp(name, *names))
            return *names;
    return NULL;
}

static const char *import_of_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                                   const char *const *names)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    for (int i = 0; data && i < INT_MAX && gelf_getsym(data, i, &symbol); i++) {
        const char *found = symbol.st_shndx == SHN_UNDEF
                                ? listed(elf_strptr(elf, header->sh_link, symbol.st_name), names)
                                : NULL;

        if (found)
            return found;
    }
    return NULL;
}

const char *image_imports(struct elf_image *image, const char *const *names)
{
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    GElf_Shdr header;

    while ((section = elf_nextscn(elf, section))) {
        const char *found = gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM
                                ? import_of_table(elf, section, &header, names)
                                : NULL;

        if (found)
            return found;
    }
    return NULL;
}
