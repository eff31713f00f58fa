/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whom a return probe would harm, by name and by code. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/array.h"
#include "collector/plan/return_rules.h"

static const char *const forbidden[] = {
    "setjmp",
    "_setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "_setjmp@plt",
    "vfork@plt",
    "__vfork",
    "savectx",
    "getcontext",
    "setcontext",
    "swapcontext",
    "makecontext",
    "longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "_longjmp@plt",
    "_Unwind_RaiseException",
    "_Unwind_Resume@plt",
    "__cxa_throw",
    "__cxa_rethrow@plt",
    "pthread_exit",
    "__restore_rt",
    "clone",
    "__clone",
    "clone3",
    "__start_context",
    "_dl_runtime_resolve_xsavec",
    "__tls_get_addr",
    "__tls_get_addr@plt",
    "__libc_start_main",
    "__libc_start_main@@GLIBC_2.34",
    "dlsym",
    "dlopen@plt",
    "mcount",
    "__fentry__",
    "__asan_load8",
};

static const char *const allowed[] = {
    "main",
    "fork",
    "exit",
    "abort",
    "qsort",
    "start",
    "restore",
    "reset",
    "cloned",
    "my_setjmp_wrapper",
    "thread_start",
    "dlclose",
    "unwind",
    "Unwind",
    "",
    "_",
    "@plt",
    "malloc@plt",
};

Test(return_rules, names_that_forbid_a_return_probe)
{
    char long_name[1000];

    for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
        cr_expect(return_name_forbids(forbidden[i]), "%s", forbidden[i]);
    for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
        cr_expect_not(return_name_forbids(allowed[i]), "%s", allowed[i]);
    memset(long_name, 'x', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    cr_expect_not(return_name_forbids(long_name));
}

/* With what __builtin_frame_address() and prctl(PR_SET_SYSCALL_USER_DISPATCH) become. */
Test(return_rules, code_that_forbids_return_probes_elsewhere)
{
    static const struct {
        const char *text;
        unsigned traits;
        uint8_t size;
        uint8_t code[24];
    } cases[] = {
        {"a frame", 0, 6, {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3}},
        {"mov %rbp, %rax in a frame",
         RETURN_CODE_WALKS,
         9,
         {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xe8, 0x5d, 0xc3}},
        {"mov (%rbp), %rax in a frame",
         RETURN_CODE_WALKS,
         10,
         {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x45, 0x00, 0x5d, 0xc3}},
        {"mov -8(%rbp), %rax in a frame",
         0,
         10,
         {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x45, 0xf8, 0x5d, 0xc3}},
        {"lea -16(%rbp), %rdi in a frame",
         0,
         10,
         {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x7d, 0xf0, 0xc9, 0xc3}},
        {"mov %rbp, %rdi without one", 0, 4, {0x48, 0x89, 0xef, 0xc3}},
        {"prctl(59)", RETURN_CODE_DISPATCHES, 10, {0xbf, 59, 0, 0, 0, 0xe8, 0xf6, 0x0f, 0, 0}},
        {"jump to prctl(59)",
         RETURN_CODE_DISPATCHES,
         12,
         {0x48, 0xc7, 0xc7, 59, 0, 0, 0, 0xe9, 0xf4, 0x0f, 0, 0}},
        {"prctl(58)", 0, 10, {0xbf, 58, 0, 0, 0, 0xe8, 0xf6, 0x0f, 0, 0}},
        {"putchar(59)", 0, 10, {0xbf, 59, 0, 0, 0, 0xe8, 0xf6, 0x0e, 0, 0}},
        {"syscall(157, 59)",
         RETURN_CODE_DISPATCHES,
         15,
         {0xbe, 59, 0, 0, 0, 0xbf, 157, 0, 0, 0, 0xe8, 0xf1, 0x0e, 0, 0}},
        {"f(157), g(1, 59)", 0, 20, {0xbf, 157, 0, 0, 0, 0xe8, 0xf6, 0x0e, 0, 0,
                                     0xbe, 59,  0, 0, 0, 0xe8, 0xec, 0x0e, 0, 0}},
        {"prctl(59) by itself",
         RETURN_CODE_DISPATCHES,
         13,
         {0xb8, 157, 0, 0, 0, 0xbf, 59, 0, 0, 0, 0x0f, 0x05, 0xc3}},
        {"getpid() by itself", 0, 8, {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        cr_expect_eq(return_code_traits(cases[i].code, cases[i].size, 0x1000, 0x2000), cases[i].traits, "%s",
                     cases[i].text);
}

static const struct {
    const char *text;
    bool forbids;
    uint8_t size;
    uint8_t code[32];
} codes[] = {
    {"ret", false, 1, {0xc3}},
    {"push, pop, ret", false, 3, {0x53, 0x5b, 0xc3}},
    {"a frame pointer", false, 6, {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3}},
    {"mov 8(%rsp), %rax: an argument", false, 6, {0x48, 0x8b, 0x44, 0x24, 0x08, 0xc3}},
    {"mov -8(%rsp), %rax: the red zone", false, 6, {0x48, 0x8b, 0x44, 0x24, 0xf8, 0xc3}},
    {"sub $24; mov (%rsp), %rax",
     false,
     13,
     {0x48, 0x83, 0xec, 0x18, 0x48, 0x8b, 0x04, 0x24, 0x48, 0x83, 0xc4, 0x18, 0xc3}},
    {"lea 8(%rsp), %r10: a frame that is aligned", false, 6, {0x4c, 0x8d, 0x54, 0x24, 0x08, 0xc3}},
    {"a variable-length array: mov %rdx, %rsp; lea -8(%rbp), %rsp; pop; pop; ret",
     false,
     14,
     {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xd4, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3}},
    {"mov -40(%rbp), %rsp; leave; ret",
     false,
     10,
     {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x65, 0xd8, 0xc9, 0xc3}},
    {"a write", false, 6, {0xb8, 0x01, 0x00, 0x00, 0x00, 0xc3}},
    {"write(2)", false, 8, {0xb8, 0x01, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xc3}},
    {"jmp *8(%rip), as in a stub", false, 6, {0xff, 0x25, 0x08, 0, 0, 0}},
    /* getcontext */
    {"mov (%rsp), %rcx", true, 5, {0x48, 0x8b, 0x0c, 0x24, 0xc3}},
    /* mcount */
    {"sub $24; mov 24(%rsp), %rdi", true, 10, {0x48, 0x83, 0xec, 0x18, 0x48, 0x8b, 0x7c, 0x24, 0x18, 0xc3}},
    {"push; cmp %rax, 8(%rsp)", true, 7, {0x53, 0x48, 0x39, 0x44, 0x24, 0x08, 0xc3}},
    {"mov %rax, (%rsp): a retpoline", true, 5, {0x48, 0x89, 0x04, 0x24, 0xc3}},
    {"mov %rsp, %rdi", true, 4, {0x48, 0x89, 0xe7, 0xc3}},
    {"lea (%rsp), %rdi", true, 5, {0x48, 0x8d, 0x3c, 0x24, 0xc3}},
    {"mov 8(%rbp), %rax in a frame", true, 9, {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x45, 0x08, 0xc3}},
    {"mov 8(%rbp), %rax without one", false, 5, {0x48, 0x8b, 0x45, 0x08, 0xc3}},
    /* vfork */
    {"pop %rdi", true, 2, {0x5f, 0xc3}},
    {"pop %rdx; jmp *%rdx", true, 3, {0x5a, 0xff, 0xe2}},
    /* longjmp */
    {"mov 48(%rdi), %rsp", true, 5, {0x48, 0x8b, 0x67, 0x30, 0xc3}},
    {"mov %r8, %rsp; jmp *%rdx", true, 5, {0x4c, 0x89, 0xc4, 0xff, 0xe2}},
    /* coroutines */
    {"xchg %rsp, (%rdi)", true, 4, {0x48, 0x87, 0x27, 0xc3}},
    {"xchg %rax, %rsp", true, 3, {0x48, 0x94, 0xc3}},
    {"push; mov %rsp, (%rdi)", true, 6, {0x53, 0x48, 0x89, 0x27, 0x5b, 0xc3}},
    {"push; mov %rsi, %rsp; pop; ret", true, 6, {0x55, 0x48, 0x89, 0xf4, 0x5d, 0xc3}},
    {"mov %rsi, %rsp; ret", true, 4, {0x48, 0x89, 0xf4, 0xc3}},
    /* system calls */
    {"rt_sigreturn", true, 7, {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}},
    {"rt_sigreturn, by mov to %rax", true, 9, {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}},
    {"clone", true, 8, {0xb8, 0x38, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xc3}},
    {"clone3", true, 8, {0xb8, 0xb3, 0x01, 0x00, 0x00, 0x0f, 0x05, 0xc3}},
    {"data", true, 2, {0x06, 0xc3}},
    {"half an instruction", true, 2, {0x48, 0x8b}},
};

Test(return_rules, code_that_forbids_a_return_probe)
{
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        cr_expect_eq(return_code_forbids(codes[i].code, codes[i].size, 0x1000), codes[i].forbids, "%s",
                     codes[i].text);
    cr_expect_not(return_code_forbids(codes[0].code, 0, 0x1000));
}
