/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processor that everything here runs on. */
#ifndef TRACECTL_COLLECTOR_ARCH_PROCESSOR_H
#define TRACECTL_COLLECTOR_ARCH_PROCESSOR_H

#include <stdbool.h>

/* Whether it is software: QEMU's TCG, which translates code (with KVM code runs on the machine's own processor). A
 * hypervisor that hides itself is not recognised. */
bool processor_is_emulated(void);

/* Whether a hypervisor with that signature, 12 bytes without an end, emulates the processor. */
bool processor_is_emulator(const char signature[12]);

#endif
