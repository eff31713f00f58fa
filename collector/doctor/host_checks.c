/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/libbpf.h>
#include <elfutils/version.h>
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/doctor/checks.h"

void check_kernel(struct self_check *check)
{
    struct utsname system;

    uname(&system);
    self_check_say(check, true, "%s %s; its features are checked below", system.release, system.machine);
}

void check_libraries(struct self_check *check)
{
    self_check_say(check, true, "libbpf %s, elfutils %d.%d, sqlite %s", libbpf_version_string() + 1,
                   _ELFUTILS_VERSION / 1000, _ELFUTILS_VERSION % 1000, sqlite3_libversion());
}

void check_btf(struct self_check *check)
{
    bool ok = !access("/sys/kernel/btf/vmlinux", R_OK);

    self_check_say(check, ok, "/sys/kernel/btf/vmlinux %s", ok ? "is readable" : strerror(errno));
}

/* The initial user namespace maps every id onto itself. */
void check_user_namespace(struct self_check *check)
{
    AUTO_FCLOSE FILE *map = fopen("/proc/self/uid_map", "re");
    uint64_t inside, outside, count;
    bool initial = !map || (fscanf(map, "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside, &count) == 3 &&
                            !inside && !outside && count == UINT32_MAX);

    self_check_say(check, initial, "this is %s",
                   initial ? "the host's user namespace" : "a user namespace of its own");
}

void check_seccomp(struct self_check *check)
{
    AUTO_FCLOSE FILE *status = fopen("/proc/self/status", "re");
    unsigned mode = 0;
    char line[256];

    while (status && fgets(line, sizeof(line), status))
        if (sscanf(line, "Seccomp: %u", &mode) == 1)
            break;
    self_check_say(check, !mode, "tracectl itself runs %s",
                   mode ? "under a seccomp filter" : "without a seccomp filter");
}
