/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where in a function its entry probe goes, and what it will cost there.
 *
 * For now the answer is simple and safe: the first instruction, or the first one behind a leading endbr64 and
 * those no-ops that are worse than what follows them. None of what is skipped changes rsp, so that a return
 * probe finds the return address at [rsp], and nothing but the function's entry leads to the site.
 */
#ifndef TRACECTL_COLLECTOR_PLAN_SITE_H
#define TRACECTL_COLLECTOR_PLAN_SITE_H

#include <stddef.h>
#include <stdint.h>

#include "image/disasm.h"

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
    SITE_NO_ROOM,     /* only endbr64 and no-ops up to the end of the function */
    SITE_LOOP,        /* a branch in the function leads back to the site: every turn would count as a call */
    SITE_PREFIX,      /* LOCK or a segment prefix: rejected by the kernel */
    SITE_TRAP,        /* int3, int n, ud2, hlt */
    SITE_PRIVILEGED,  /* in, out, cli, sti, iret and others that uprobes reject */
    SITE_OPCODE,      /* another opcode that uprobes of some supported kernel reject or get wrong */
    SITE_IFUNC,       /* an indirect function: the address is its resolver's */
    SITE_FRAGMENT,    /* a .cold part, entered by a jump in the middle of its function's frame */
    SITE_INSIDE,      /* begins inside another function: may be a label that is fallen into or jumped to */
    SITE_NO_SIZE,     /* a symbol without a size: hand-written, may be a label as well */
    SITE_START_UP,    /* the compiler's own start-up code (crtstuff): nobody's function */
    SITE_REFUSALS,
};

struct site {
    uint64_t offset; /* of the probed instruction from the start of the function, in bytes */
    enum site_class class;
    enum site_refusal refusal; /* SITE_OK unless class is SITE_REFUSED */
};

/* Chooses the site of the function whose `size` bytes of code are `code`, loaded at `address`. The answer is
 * always filled in; SITE_IFUNC and what follows it are never given here (they are the caller's to know). */
void site_choose(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                 struct site *ret_site);

/* What a kernel uprobe makes of one instruction, wherever it stands. */
enum site_class site_classify(const struct instruction *instruction, enum site_refusal *ret_refusal);

/* A few lower-case words for messages, such as "a branch leads back to its first instruction". */
const char *site_refusal_text(enum site_refusal refusal);
const char *site_class_text(enum site_class class);

#endif
