/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first instruction of the agent, which a stub calls with the function in ecx and the stack pointer at its
 * entry in rdx (collector/arch/record.h).
 * The stub has saved the flags but the direction, and popfq takes as long as everything else here.
 */
    .section .text.entry,"ax",@progbits
    .globl agent_entry
agent_entry:
    pushfq
    cld
    push %rax
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    push %rbp
    mov %rsp,%rbp
    mov %ecx,%edi
    mov %rdx,%rsi
    and $-16,%rsp
    call agent_slow
    mov %rbp,%rsp
    pop %rbp
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rdi
    pop %rsi
    pop %rax
    testl $0x400,(%rsp)
    jz 1f
    std
1:  lea 8(%rsp),%rsp
    ret
/*
 * void agent_claim(uint32_t ticket, uint32_t area): the place of a uprobe, whose instruction the kernel emulates.
 */
    .section .text.claim,"ax",@progbits
    .globl agent_claim
agent_claim:
    nop
    ret
/*
 * void agent_ask(uint32_t area): the place of another one.
 */
    .section .text.ask,"ax",@progbits
    .globl agent_ask
agent_ask:
    nop
    ret
    .section .note.GNU-stack,"",@progbits
