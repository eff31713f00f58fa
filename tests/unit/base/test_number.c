/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <stddef.h>

#include "base/array.h"
#include "base/number.h"

#define NONE UINT64_MAX

struct example {
    const char *text;
    uint64_t value; /* NONE: it is no such number */
};

static void check(bool (*parse)(const char *text, uint64_t *ret), const struct example *examples,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 77;
        bool good = parse(examples[i].text, &value);

        cr_expect_eq(good, examples[i].value != NONE, "'%s'", examples[i].text);
        cr_expect_eq(value, good ? examples[i].value : 77, "'%s' is %llu", examples[i].text,
                     (unsigned long long)value);
    }
}

Test(number, counts)
{
    static const struct example examples[] = {
        {"0", 0},       {"12", 12},    {"18446744073709551614", UINT64_MAX - 1},
        {"", NONE},     {"-1", NONE},  {"18446744073709551616", NONE},
        {"+1", NONE},   {" 1", NONE},  {"1 ", NONE},
        {"0x10", NONE}, {"1.5", NONE}, {"one", NONE}};
    const char *end = NULL;
    uint64_t count = 0;

    check(number_parse_count, examples, ARRAY_SIZE(examples));
    cr_assert(number_parse_count_at("12,7", &count, &end));
    cr_expect(count == 12 && *end == ',');
    cr_expect_not(number_parse_count_at(",7", &count, &end));
}

Test(number, durations)
{
    static const struct example examples[] = {{"200ms", 200000000},
                                              {"30s", 30000000000},
                                              {"5m", 300000000000},
                                              {"1h", 3600000000000},
                                              {"2", 2000000000},
                                              {"0.5", 500000000},
                                              {"1.5s", 1500000000},
                                              {"3us", 3000},
                                              {"7d", 604800000000000},
                                              {"1w", 604800000000000},
                                              {"0", 0},
                                              {"1e9", 1000000000000000000},
                                              {"1e10", NONE},
                                              {"5x", NONE},
                                              {"5 s", NONE},
                                              {"s", NONE},
                                              {"", NONE},
                                              {"-5s", NONE},
                                              {"nan", NONE},
                                              {"inf", NONE},
                                              {"0x5", NONE},
                                              {"5sm", NONE}};
    uint64_t ns = 0;

    check(number_parse_duration, examples, ARRAY_SIZE(examples));
    cr_assert(number_parse_duration_in("5", 1e6, &ns));
    cr_expect_eq(ns, 5000000);
    cr_assert(number_parse_duration_in("5s", 1e6, &ns));
    cr_expect_eq(ns, 5000000000);
}

Test(number, sizes)
{
    static const struct example examples[] = {{"4096", 4096},
                                              {"64K", 65536},
                                              {"64k", 65536},
                                              {"1.5G", 1610612736},
                                              {"3T", 3298534883328},
                                              {"5B", 5},
                                              {"1048576T", (uint64_t)1 << 60},
                                              {"1048577T", NONE},
                                              {"1e400", NONE},
                                              {"5X", NONE},
                                              {"5KB", NONE},
                                              {"K", NONE},
                                              {"-1K", NONE}};

    check(number_parse_size, examples, ARRAY_SIZE(examples));
}

Test(number, shares)
{
    static const char *const bad[] = {"", "%", "x", "5 %", "5%%", "-1", "1001", "nan", "1e400"};
    double share = 7;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        cr_expect(!number_parse_share(bad[i], &share) && share == 7, "%s", bad[i]);
    cr_assert(number_parse_share("5", &share));
    cr_expect_float_eq(share, 0.05, 1e-12);
    cr_assert(number_parse_share("0.5%", &share));
    cr_expect_float_eq(share, 0.005, 1e-12);
    cr_assert(number_parse_share("1000", &share));
    cr_expect_float_eq(share, 10, 1e-12);
}
