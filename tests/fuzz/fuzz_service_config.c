/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A configuration of the daemon's; what is refused is refused with its place and a remedy. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "collector/daemon/config.h"

/* The C library takes as long and as much memory as it likes for a{1000}{1000}, and doubles an expression
 * with every
 * + behind it: it is not what is tested here. */
static int is_harmless(const uint8_t *data, size_t size)
{
    size_t operators = 0, pluses = 0;

    for (size_t i = 0; i < size; i++) {
        operators += strchr("*+{([", data[i]) && data[i];
        pluses += data[i] == '+';
    }
    return operators <= 64 && pluses <= 8 && !memchr(data, '{', size);
}

static void check(const struct service_config *config)
{
    if (!config->store || !config->socket || !config->target_count || config->scan_ns < 100000000 ||
        !config->max_recordings || !(config->cpu > 0) || config->memory_bytes < 1 << 20)
        abort();
    for (size_t i = 0; i < config->target_count; i++) {
        const struct service_target *target = &config->targets[i];

        if (service_config_find(config, target->name) != target || !service_target_same(target, target) ||
            isnan(target->budget) || target->budget < 0 || !target->rotate_ns)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct service_config config;
    struct error err = {0};

    if (!is_harmless(data, size))
        return 0;
    if (service_config_parse("FILE", (const char *)data, size, &config, &err)) {
        if (strncmp(err.message, "FILE:", 5) != 0 || !strchr(err.message, '(') || err.code >= 0)
            abort();
        return 0;
    }
    check(&config);
    service_config_release(&config);
    return 0;
}
