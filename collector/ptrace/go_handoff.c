/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/ptrace/go_handoff.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/uio.h>

enum {
    FIRST_MINOR = 17,
    LAST_MINOR = 25, /* go 1.26 has no such status any more */
    P_RUNNING = 1,   /* runtime._Prunning */
    P_SYSCALL = 2,
    M_P = 16,     /* m.p behind m.curg: m.caughtsig is between them */
    M_OLDP = 32,  /* and m.nextp and m.oldp behind m.p */
    P_STATUS = 4, /* behind p.id */
};

/* p.m: since go 1.23 the fields of p.sysmontick lie closer together. */
static const uint64_t p_m_offsets[] = {48, 56};

static int read_word(pid_t tid, uint64_t address, void *word, size_t size)
{
    struct iovec here = {word, size}, there = {(void *)(uintptr_t)address, size};

    if (process_vm_readv(tid, &here, 1, &there, 1, 0) != (ssize_t)size)
        return errno ? -errno : -EFAULT;
    return 0;
}

static int write_word(pid_t tid, uint64_t address, const void *word, size_t size)
{
    struct iovec here = {(void *)word, size}, there = {(void *)(uintptr_t)address, size};

    if (process_vm_writev(tid, &here, 1, &there, 1, 0) != (ssize_t)size)
        return errno ? -errno : -EFAULT;
    return 0;
}

/* The address of p.m: the one of the possible ones that leads back to m. */
static int find_back_pointer(pid_t tid, uint64_t m, uint64_t p, uint64_t *ret_address)
{
    size_t found = 0;

    for (size_t i = 0; i < sizeof(p_m_offsets) / sizeof(*p_m_offsets); i++) {
        uint64_t back;
        int r = read_word(tid, p + p_m_offsets[i], &back, sizeof(back));

        if (r)
            return r;
        if (back != m)
            continue;
        *ret_address = p + p_m_offsets[i];
        found++;
    }
    return found == 1 ? 0 : -ENOTSUP;
}

/* What runtime.entersyscall stores, in its order: the processor is the monitor's with the last one. */
static int enter_system_call(pid_t tid, uint64_t p, uint64_t m_p, uint64_t p_m)
{
    const uint64_t none = 0;
    const uint32_t status = P_SYSCALL;
    int r = write_word(tid, p_m, &none, sizeof(none));

    if (!r)
        r = write_word(tid, m_p + M_OLDP - M_P, &p, sizeof(p));
    if (!r)
        r = write_word(tid, m_p, &none, sizeof(none));
    return r ? r : write_word(tid, p + P_STATUS, &status, sizeof(status));
}

int go_hand_off(pid_t tid, uint64_t g, const struct go_layout *layout)
{
    const struct go_version *version = &layout->version;
    const int32_t *offsets = layout->offsets;
    uint64_t m, curg, p = 0, p_m = 0, m_p;
    uint32_t status = 0;
    int r;

    if (version->major != 1 || version->minor < FIRST_MINOR || version->minor > LAST_MINOR ||
        version->experiment || offsets[GO_G_M] < 0 || offsets[GO_M_CURG] < 0)
        return -ENOTSUP;
    r = read_word(tid, g + (uint64_t)offsets[GO_G_M], &m, sizeof(m));
    if (!r)
        r = read_word(tid, m + (uint64_t)offsets[GO_M_CURG], &curg, sizeof(curg));
    if (!r && curg != g)
        r = -ENOTSUP;
    m_p = m + (uint64_t)offsets[GO_M_CURG] + M_P;
    if (!r)
        r = read_word(tid, m_p, &p, sizeof(p));
    if (!r)
        r = p ? read_word(tid, p + P_STATUS, &status, sizeof(status)) : -ENOTSUP;
    if (!r && status != P_RUNNING)
        r = -ENOTSUP;
    if (!r)
        r = find_back_pointer(tid, m, p, &p_m);
    return r ? r : enter_system_call(tid, p, m_p, p_m);
}
