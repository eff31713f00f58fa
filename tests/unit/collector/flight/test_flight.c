/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Triggers of a flight recorder as people write them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "collector/flight/flight.h"

static struct flight_trigger parse(const char *text)
{
    struct flight_trigger trigger = {0};
    struct error err = {0};

    cr_assert_eq(flight_trigger_parse(text, &trigger, &err), 0, "%s", err.message);
    return trigger;
}

static void expect_function(const char *text, enum flight_event event, const char *name, bool wanted)
{
    struct flight_trigger trigger = parse(text);
    const struct image_function function = {.name = (char *)name};

    cr_assert_eq(trigger.event, event);
    cr_assert_eq(flight_trigger_wants(&trigger, &function), wanted, "%s of %s", text, name);
    flight_trigger_release(&trigger);
}

static void expect_status(const char *text, int status)
{
    struct flight_trigger trigger = parse(text);

    cr_assert_eq(trigger.event, FLIGHT_EXIT);
    cr_assert_eq(trigger.status, status);
    flight_trigger_release(&trigger);
}

Test(flight_trigger, functions)
{
    expect_function("call:^main$", FLIGHT_CALL, "main", true);
    expect_function("call:^main$", FLIGHT_CALL, "domain", false);
    expect_function("slow:^a::b$:1s", FLIGHT_SLOW, "a::b", true);
    expect_function("crash", FLIGHT_CRASH, "crash", false);
    expect_function("end", FLIGHT_END, "end", false);
}

Test(flight_trigger, times)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } times[] = {{"slow:f:200ms", 200000000}, {"slow:f:0.5s", 500000000}, {"slow:f:30us", 30000}};

    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        struct flight_trigger trigger = parse(times[i].text);

        cr_assert_eq(trigger.slow_ns, times[i].ns);
        flight_trigger_release(&trigger);
    }
}

Test(flight_trigger, statuses)
{
    expect_status("exit", FLIGHT_NONZERO);
    expect_status("exit:nonzero", FLIGHT_NONZERO);
    expect_status("exit:NONZERO", FLIGHT_NONZERO);
    expect_status("exit:any", FLIGHT_ANY);
    expect_status("exit:0", 0);
    expect_status("exit:137", 137);
}

Test(flight_trigger, nonsense_is_refused)
{
    static const char *const texts[] = {
        "",         "crashes", "call",     "call:",       "call:(",       "slow:f",
        "slow:f:0", "exit:x",  "exit:256", "slow:f:-1ms", "slow:f:200ns", "slow::1s"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct flight_trigger trigger;
        struct error err = {0};

        cr_assert_eq(flight_trigger_parse(texts[i], &trigger, &err), -EINVAL, "%s", texts[i]);
        cr_assert_neq(*err.message, '\0');
    }
}
