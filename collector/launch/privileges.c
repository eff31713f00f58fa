/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/launch/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"

/* Numbers of include/uapi/linux/capability.h; those from 5.8 and 5.9 on are not in every header. */
#define NUMBER_PERFMON 38
#define NUMBER_BPF 39
#define NUMBER_CHECKPOINT_RESTORE 40
#define NUMBERS 64

static const struct {
    const char *name;
    unsigned privilege, number;
    bool admin; /* CAP_SYS_ADMIN stands for it */
} table[] = {
    {"CAP_BPF", PRIVILEGE_BPF, NUMBER_BPF, true},
    {"CAP_PERFMON", PRIVILEGE_PERFMON, NUMBER_PERFMON, true},
    {"CAP_SYS_PTRACE", PRIVILEGE_SYS_PTRACE, CAP_SYS_PTRACE, false},
    {"CAP_KILL", PRIVILEGE_KILL, CAP_KILL, false},
    {"CAP_DAC_OVERRIDE", PRIVILEGE_FILES, CAP_DAC_OVERRIDE, false},
    {"CAP_CHECKPOINT_RESTORE", PRIVILEGE_CHECKPOINT_RESTORE, NUMBER_CHECKPOINT_RESTORE, true},
    {"CAP_SYS_NICE", PRIVILEGE_SCHEDULE, CAP_SYS_NICE, false},
    {"CAP_SYS_ADMIN", PRIVILEGE_ADMIN, CAP_SYS_ADMIN, false},
};

struct capabilities {
    uint64_t effective, permitted;
};

static int get_capabilities(struct capabilities *ret_set)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, data))
        return -errno;
    ret_set->effective = (uint64_t)data[1].effective << 32 | data[0].effective;
    ret_set->permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
    return 0;
}

static bool holds(uint64_t set, unsigned number)
{
    return set >> number & 1;
}

unsigned privileges_missing(unsigned wanted)
{
    struct capabilities have = {0, 0};
    unsigned missing = wanted;

    if (get_capabilities(&have))
        return wanted;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (holds(have.effective, table[i].number) ||
            (table[i].admin && holds(have.effective, CAP_SYS_ADMIN)))
            missing &= ~table[i].privilege;
    return missing;
}

void privileges_text(unsigned privileges, char *ret_text, size_t size)
{
    size_t used = 0;

    if (size)
        *ret_text = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(table) && used < size; i++)
        if (privileges & table[i].privilege)
            used += (size_t)snprintf(ret_text + used, size - used, "%s%s", used ? ", " : "", table[i].name);
}

/* The capabilities to keep out of those that there are. */
static uint64_t kept(unsigned keep, uint64_t permitted)
{
    uint64_t set = 0;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (!(keep & table[i].privilege))
            continue;
        if (holds(permitted, table[i].number))
            set |= 1ull << table[i].number;
        else if (table[i].admin)
            set |= permitted & 1ull << CAP_SYS_ADMIN;
    }
    return set;
}

int privileges_drop(unsigned keep, struct error *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    struct capabilities have = {0, 0};
    int r = get_capabilities(&have);
    uint64_t set;

    if (r)
        return error_set(err, r, NULL, "cannot read the capabilities");
    set = kept(keep, have.permitted);
    /* A program that this process executes must not get back what is dropped. Dropping from the bounding set
     * takes CAP_SETPCAP; without it there is nothing to get back but by a set-user-ID program. */
    for (unsigned number = 0; number < NUMBERS; number++)
        if (!holds(set, number))
            prctl(PR_CAPBSET_DROP, (unsigned long)number, 0ul, 0ul, 0ul);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0ul, 0ul, 0ul);
    data[0].effective = data[0].permitted = (uint32_t)set;
    data[1].effective = data[1].permitted = (uint32_t)(set >> 32);
    if (syscall(SYS_capset, &header, data))
        return error_set(err, -errno, NULL, "cannot give up capabilities");
    return 0;
}
