/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/arch/processor.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

Test(processor, only_tcg_is_an_emulator)
{
    cr_assert(processor_is_emulator("TCGTCGTCGTCG"));
    cr_assert_not(processor_is_emulator("KVMKVMKVM\0\0\0"));
    cr_assert_not(processor_is_emulator("Microsoft Hv"));
    cr_assert_not(processor_is_emulator("\0\0\0\0\0\0\0\0\0\0\0\0"));
}

/* A processor without a hypervisor is never software. */
Test(processor, no_hypervisor_no_emulation)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[4096];
    bool hypervisor = false;

    cr_assert_not_null(file);
    while (fgets(line, sizeof(line), file))
        hypervisor |= !strncmp(line, "flags", 5) && strstr(line, " hypervisor");
    fclose(file);
    if (!hypervisor)
        cr_assert_not(processor_is_emulated());
}
