/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A checksum of the program's own code, which a probe changes while it is there. Counts the rounds with
 * another sum than that of the file. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>

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

/* 0: as in the file, 1: changed, -1: cannot say. The file is read: a private mapping of it has the probes,
 * too. */
static long work(void)
{
    const ElfW(Phdr) *segment = text();
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    char *bytes = malloc(segment->p_filesz);
    long changed = -1;

    if (bytes && pread(file, bytes, segment->p_filesz, segment->p_offset) == (ssize_t)segment->p_filesz)
        changed =
            sum_of(__ehdr_start + segment->p_vaddr, segment->p_filesz) != sum_of(bytes, segment->p_filesz);
    close(file);
    free(bytes);
    return changed;
}

HARM_MAIN(0)
