/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's configuration: values mean what they say, and each error names its line. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "collector/daemon/config.h"
#include "collector/daemon/match.h"

static struct error failure;

static int parse(const char *text, struct service_config *ret_config)
{
    memset(&failure, 0, sizeof(failure));
    return service_config_parse("file", text, strlen(text), ret_config, &failure);
}

Test(service_config, values)
{
    struct service_config config;

    cr_assert_eq(
        parse("# c\n ; c\r\n[daemon]\nstore=/s\n cpu-limit = 20% \nmemory-limit=64M\nstore-limit = 1.5G\n"
              "scan = 0.5s\nbudget = 2\nrotate = 2h\n[target a]\nname = web*\n[target b]\nunit = x.service\n"
              "budget = none\nrotate = 30m\nfunctions = ^a|b$\n",
              &config),
        0, "%s", failure.message);
    cr_assert_str_eq(config.store, "/s");
    cr_assert_str_eq(config.socket, "/run/tracectl/control");
    cr_assert_float_eq(config.cpu, 0.2, 1e-9);
    cr_assert_eq(config.memory_bytes, 64u << 20);
    cr_assert_eq(config.store_bytes, (uint64_t)3 << 29);
    cr_assert_eq(config.scan_ns, 500000000u);
    cr_assert_eq(config.target_count, 2u);
    cr_assert_str_eq(config.targets[0].process, "web*");
    cr_assert_float_eq(config.targets[0].budget, 0.02, 1e-9);
    cr_assert_eq(config.targets[0].rotate_ns, 7200000000000u);
    cr_assert_eq(config.targets[1].budget, 0);
    cr_assert_eq(config.targets[1].rotate_ns, 1800000000000u);
    cr_assert_str_eq(config.targets[1].functions, "^a|b$");
    service_config_release(&config);
}

Test(service_config, flight_recorders)
{
    struct service_config config;
    struct flight_trigger *triggers;
    size_t count;

    cr_assert_eq(parse("[daemon]\nrotate = 1h\n[target a]\nname = a\nflight = 5m\nflight-size = 8M\n"
                       "flight-on = crash slow:^f::g$:200ms\n[target b]\nname = b\nflight = 1h\nrotate = 1d\n"
                       "[target c]\nname = c\n",
                       &config),
                 0, "%s", failure.message);
    cr_assert_eq(config.targets[0].flight_ns, 300000000000u);
    cr_assert_eq(config.targets[0].flight_bytes, 8u << 20);
    cr_assert_eq(config.targets[0].rotate_ns, UINT64_MAX);
    cr_assert_eq(config.targets[1].rotate_ns, 86400000000000u);
    cr_assert_eq(config.targets[2].flight_ns, 0);
    cr_assert_eq(service_target_triggers(&config.targets[0], &triggers, &count, NULL), 0);
    cr_assert_eq(count, 2);
    cr_assert_eq(triggers[1].event, FLIGHT_SLOW);
    cr_assert_eq(triggers[1].slow_ns, 200000000u);
    while (count)
        flight_trigger_release(&triggers[--count]);
    free(triggers);
    cr_assert_eq(service_target_triggers(&config.targets[1], &triggers, &count, NULL), 0);
    cr_assert(count == 1 && triggers[0].event == FLIGHT_CRASH);
    flight_trigger_release(&triggers[0]);
    free(triggers);
    service_config_release(&config);
}

Test(service_config, defaults_stand_behind_the_targets_too)
{
    struct service_config config;

    cr_assert_eq(parse("[target a]\nname = x\n[daemon]\nbudget = 7%\n", &config), 0);
    cr_assert_float_eq(config.targets[0].budget, 0.07, 1e-9);
    service_config_release(&config);
}

Test(service_config, errors_name_their_line_and_what_to_do)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "file:0: no target"},
        {"[target a]\nname = a\nflight-on = crash\n", "file:1: target 'a' has flight-size or flight-on"},
        {"[target a]\nname = a\nflight = 1m\nflight-on = sometimes\n", "file:4: not triggers: 'sometimes'"},
        {"store = /x\n", "file:1: key outside of a section"},
        {"[daemon]\n\nnonsense\n", "file:3: neither a section header nor a key"},
        {"[daemon]\nnonsense = 1\n", "file:2: unknown key 'nonsense' (store, socket"},
        {"[demon]\n", "file:1: unknown section 'demon'"},
        {"[daemon\n", "file:1: section header without ']'"},
        {"[daemon]\nstore = s\n", "file:2: not a full path"},
        {"[daemon]\nscan = soon\n", "file:2: not a time"},
        {"[daemon]\nscan = 0\n", "file:2: not a time"},
        {"[daemon]\nscan = nan\n", "file:2: not a time"},
        {"[daemon]\nmemory-limit = 5X\n", "file:2: not a size"},
        {"[daemon]\nmax-recordings = 0\n", "file:2: not a number"},
        {"[daemon]\nstore = /a\nstore = /b\n", "file:3: duplicate key 'store'"},
        {"[target a]\nbudget = 5%\n[target b]\nname = x\n", "file:1: target 'a' selects no process"},
        {"[target a]\nname = x\n[target a]\n", "file:3: duplicate target 'a'"},
        {"[daemon]\nstore = /a\n[daemon]\n", "file:3: duplicate section 'daemon'"},
        {"[target a b]\n", "file:1: not a target's name"},
        {"[target a]\nname =\n", "file:2: no value for 'name'"},
        {"[target a]\ncontainer = 12ab\n", "file:2: not a container id"},
        {"[target a]\nfunctions = (\n", "file:2: not a regular expression"},
        {"[target a]\nbudget = 1e400\n", "file:2: not a percentage"},
    };
    struct service_config config;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_assert_lt(parse(cases[i].text, &config), 0, "accepted: %s", cases[i].text);
        cr_assert(strstr(failure.message, cases[i].says) == failure.message, "'%s' for %s", failure.message,
                  cases[i].text);
        cr_assert(strchr(failure.message, '('), "no remedy: %s", failure.message);
    }
}

Test(service_config, what_is_the_same_is_told)
{
    struct service_config a, b;

    cr_assert_eq(parse("[target a]\nname = x\nexclude = y\n", &a), 0);
    cr_assert_eq(parse("[target a]\nname = x\nexclude = y\n[target b]\nname = z\n", &b), 0);
    cr_assert(service_target_same(&a.targets[0], service_config_find(&b, "a")));
    cr_assert_not(service_target_same(&a.targets[0], &b.targets[1]));
    cr_assert_null(service_config_find(&a, "b"));
    service_config_release(&a);
    service_config_release(&b);
}

static bool matches(const char *key, const char *value, const char *path, const char *cgroup)
{
    char text[512];
    struct service_process process = {.pid = 7};
    struct service_config config;
    bool result;

    snprintf(text, sizeof(text), "[target a]\n%s = %s\n", key, value);
    cr_assert_eq(parse(text, &config), 0, "%s", failure.message);
    snprintf(process.path, sizeof(process.path), "%s", path);
    snprintf(process.cgroup, sizeof(process.cgroup), "%s", cgroup);
    snprintf(process.name.executable, sizeof(process.name.executable), "%s", path_file_name(path));
    result = service_target_matches(&config.targets[0], &process);
    service_config_release(&config);
    return result;
}

Test(service_match, by_each_key)
{
    static const char scope[] = "/system.slice/docker-0123456789abcdef.scope";

    cr_assert(matches("name", "web", "/usr/bin/web", ""));
    cr_assert_not(matches("name", "web", "/usr/web/bin", ""));
    cr_assert_not(matches("name", "web", "/usr/bin/web2", ""));
    cr_assert(matches("name", "web*", "/usr/bin/web2", ""));
    cr_assert(matches("path", "/usr/*/web", "/usr/bin/web", ""));
    cr_assert_not(matches("path", "/usr/*/web", "/usr/a/b/web", ""));
    cr_assert(matches("cgroup", "/a/b", "/x", "/a/b"));
    cr_assert(matches("cgroup", "/a/b/", "/x", "/a/b/c"));
    cr_assert(matches("cgroup", "/a/*", "/x", "/a/b/c"));
    cr_assert_not(matches("cgroup", "/a/b", "/x", "/a/bc"));
    cr_assert(matches("cgroup", "/", "/x", "/"));
    cr_assert(matches("unit", "x.service", "/x", "/system.slice/x.service/sub"));
    cr_assert_not(matches("unit", "x.service", "/x", "/system.slice/xx.service"));
    cr_assert_not(matches("unit", "x.service", "/x", "/system.slice/x.service2"));
    cr_assert(matches("container", "0123456789ab", "/x", scope));
    cr_assert_not(matches("container", "123456789abc", "/x", scope));
}

Test(service_match, all_keys_must_hold)
{
    cr_assert_not(matches("name", "x\ncgroup = /a", "/bin/x", "/b"));
    cr_assert(matches("name", "x\ncgroup = /a", "/bin/x", "/a"));
}

Test(service_match, control_groups_of_either_version)
{
    char path[64];

    cr_assert(service_cgroup_path("12:cpu:/z\n0::/a/b\n", path, sizeof(path)));
    cr_assert_str_eq(path, "/a/b");
    cr_assert(service_cgroup_path("2:cpu:/z\n1:name=systemd:/s\n", path, sizeof(path)));
    cr_assert_str_eq(path, "/s");
    cr_assert_not(service_cgroup_path("2:cpu:/z\n", path, sizeof(path)));
}

Test(service_match, processes_are_read)
{
    static struct service_process process;

    cr_assert(service_process_read(getpid(), &process));
    cr_assert_eq(process.parent, getppid());
    cr_assert(strstr(process.path, "test_service_config"));
    cr_assert_gt(process.started, 0u);
}

Test(service_match, by_user)
{
    struct service_process process = {
        .pid = 7, .user = 65534, .path = "/usr/bin/web", .name.executable = "web"};
    struct service_config config;

    cr_assert_eq(
        parse("[target a]\nname = web\nuser = root\n[target b]\nname = web\nuser = 65534\n", &config), 0);
    cr_assert_not(service_target_matches(&config.targets[0], &process));
    cr_assert(service_target_matches(&config.targets[1], &process));
    service_config_release(&config);
    cr_assert_eq(parse("[target a]\nname = web\nuser = no-such user\n", &config), -EINVAL);
    cr_assert_eq(parse("[target a]\nuser = root\n", &config), -EINVAL, "that alone is no choice");
}
