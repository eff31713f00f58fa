/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What ELF files of the machine have in their headers and relocations. */
#ifndef TRACECTL_IMAGE_ARCH_ELF_MACHINE_H
#define TRACECTL_IMAGE_ARCH_ELF_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a file whose header says `machine` is of this instruction set. */
bool elf_is_of_machine(uint16_t machine);

enum elf_relocation {
    ELF_RELOCATION_SLOT,     /* a slot of the GOT gets a symbol's address */
    ELF_RELOCATION_INDIRECT, /* a slot gets what a resolver returns, whose address is the addend */
    ELF_RELOCATION_RELATIVE, /* a word gets the addend and where the file is loaded */
    ELF_RELOCATION_OTHER,
};

/* Of a relocation's r_info. */
enum elf_relocation elf_relocation_kind(uint64_t info);

/* The bytes that it fills in; 0: none. */
size_t elf_relocation_bytes(uint64_t info);

#endif
