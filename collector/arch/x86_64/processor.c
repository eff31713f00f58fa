/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/arch/processor.h"

#include <cpuid.h>
#include <string.h>

/* Of the CPUID instruction: Intel SDM, volume 2A; the leaves from 0x40000000 on are the hypervisor's
 * (Documentation/virt/kvm/x86/cpuid.rst in the kernel). */
#define FEATURES_LEAF 1
#define IN_HYPERVISOR (1U << 31) /* in ECX of the features */
#define HYPERVISOR_LEAF 0x40000000

bool processor_is_emulator(const char signature[12])
{
    return !memcmp(signature, "TCGTCGTCGTCG", 12);
}

bool processor_is_emulated(void)
{
    unsigned int eax, words[3], features;
    char signature[12];

    if (!__get_cpuid(FEATURES_LEAF, &eax, &words[0], &features, &words[1]) || !(features & IN_HYPERVISOR))
        return false;
    __cpuid(HYPERVISOR_LEAF, eax, words[0], words[1], words[2]);
    memcpy(signature, words, sizeof(signature));
    return processor_is_emulator(signature);
}
