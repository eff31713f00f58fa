/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A checksum of the program's own code, which a probe changes while it is there. Counts the rounds with
 * another sum than that of the file. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "harm.h"

extern const char __ehdr_start[];

CALLED static unsigned long sum_of(const char *bytes, size_t size)
{
    unsigned long sum = 5381;

    for (size_t i = 0; i < size; i++)
        sum = sum * 33 + (unsigned char)bytes[i];
    return sum;
}

CALLED static const ElfW(Phdr) * text(void)
{
    const ElfW(Phdr) *segment = (const void *)getauxval(AT_PHDR);

    while (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
        segment++;
    return segment;
}

/* 0: as in the file, 1: changed, -1: cannot say */
static long work(void)
{
    const ElfW(Phdr) *segment = text();
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    char *bytes = mmap(NULL, segment->p_offset + segment->p_filesz, PROT_READ, MAP_PRIVATE, file, 0);
    long changed;

    close(file);
    if (bytes == MAP_FAILED)
        return -1;
    changed = sum_of(__ehdr_start + segment->p_vaddr, segment->p_filesz) !=
              sum_of(bytes + segment->p_offset, segment->p_filesz);
    munmap(bytes, segment->p_offset + segment->p_filesz);
    return changed;
}

HARM_MAIN(0)
