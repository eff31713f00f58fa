/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/arch/elf_machine.h"

#include <gelf.h>

bool elf_is_of_machine(uint16_t machine)
{
    return machine == EM_X86_64;
}

enum elf_relocation elf_relocation_kind(uint64_t info)
{
    switch (GELF_R_TYPE(info)) {
    case R_X86_64_JUMP_SLOT:
    case R_X86_64_GLOB_DAT:
        return ELF_RELOCATION_SLOT;
    case R_X86_64_IRELATIVE:
        return ELF_RELOCATION_INDIRECT;
    case R_X86_64_RELATIVE:
        return ELF_RELOCATION_RELATIVE;
    default:
        return ELF_RELOCATION_OTHER;
    }
}

size_t elf_relocation_bytes(uint64_t info)
{
    switch (GELF_R_TYPE(info)) {
    case R_X86_64_NONE:
        return 0;
    case R_X86_64_8:
    case R_X86_64_PC8:
        return 1;
    case R_X86_64_16:
    case R_X86_64_PC16:
        return 2;
    case R_X86_64_32:
    case R_X86_64_32S:
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_TPOFF32:
    case R_X86_64_DTPOFF32:
        return 4;
    default:
        return 8;
    }
}
