/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel makes of an instruction under a uprobe. */
#ifndef TRACECTL_COLLECTOR_ARCH_PROBE_CLASS_H
#define TRACECTL_COLLECTOR_ARCH_PROBE_CLASS_H

#include "image/arch/disasm.h"

enum site_class {
    SITE_REFUSED,
    SITE_EMULATED,       /* the kernel carries the instruction out itself: about 0.5 us a hit */
    SITE_SINGLE_STEPPED, /* the kernel lets the CPU step over a copy: 10 us and more */
    SITE_CLASSES,
};

/* Why there is no probe. site_refusal_text() puts each into words. */
enum site_refusal {
    SITE_OK,
    SITE_EMPTY,       /* no bytes in the file */
    SITE_UNDECODABLE, /* no instruction: data, or a form that the disassembler does not know */
    SITE_NO_ROOM,     /* nothing that can be probed up to the end of the function or of the search */
    SITE_LOOP,        /* a branch in the function leads back to its entry: every turn would count as a call */
    SITE_PREFIX,      /* LOCK or a segment prefix: rejected by the kernel */
    SITE_TRAP,        /* int3, int n, ud2, hlt */
    SITE_PRIVILEGED,  /* in, out, cli, sti, iret and others that uprobes reject */
    SITE_OPCODE,      /* another opcode that uprobes of some supported kernel reject or get wrong */
    SITE_CHANGES,     /* its bytes in memory are others than in the file: FLOW_CHANGES */
    SITE_IFUNC,       /* an indirect function: the address is its resolver's */
    SITE_FRAGMENT,    /* a .cold part, entered by a jump in the middle of its function's frame */
    SITE_INSIDE,      /* begins inside another function: may be a label that is fallen into or jumped to */
    SITE_NO_SIZE,     /* a symbol without a size: hand-written, may be a label as well */
    SITE_NO_STUB,     /* an imported function that is called without a stub, also through registers */
    SITE_START_UP,    /* the compiler's own start-up code (crtstuff): no function of the program */
    SITE_REFUSALS,
};

/* What a kernel uprobe makes of one instruction, wherever it stands. */
enum site_class site_classify(const struct instruction *instruction, enum site_refusal *ret_refusal);

#endif
