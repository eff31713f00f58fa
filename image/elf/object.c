/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/elf/object.h"

#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

static bool is_name(const char *symbol, const char *name)
{
    size_t length = strlen(name);

    return symbol && !strncmp(symbol, name, length) && (!symbol[length] || symbol[length] == '@');
}

static int find_in_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name,
                         uint64_t *ret_address)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    for (int i = 0; data && i < INT_MAX && gelf_getsym(data, i, &symbol); i++) {
        if (GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF ||
            !is_name(elf_strptr(elf, header->sh_link, symbol.st_name), name))
            continue;
        *ret_address = symbol.st_value;
        return 0;
    }
    return -ENOENT;
}

int image_object_address(struct elf_image *image, const char *name, uint64_t *ret_address)
{
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    GElf_Shdr header;

    while ((section = elf_nextscn(elf, section)))
        if (gelf_getshdr(section, &header) &&
            (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB) &&
            !find_in_table(elf, section, &header, name, ret_address))
            return 0;
    return -ENOENT;
}
