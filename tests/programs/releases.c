/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two releases of one program, which adds up orders: release_1 and release_2 (RELEASE). What has changed:
 * price_order is order_total now, apply_discount is gone, check_stock is new, and the journal is flushed
 * after every order and not after every tenth.
 */
#include <stdio.h>

enum { ORDERS = 40, BATCH = RELEASE == 1 ? 10 : 1 };
#define PART_OF_TRACE __attribute__((noinline, noclone))

static volatile int journal, flushed;

PART_OF_TRACE static int read_order(int number)
{
    return number * 37 % 101;
}

#if RELEASE == 1
PART_OF_TRACE static int apply_discount(int price)
{
    return price > 50 ? price - 5 : price;
}

PART_OF_TRACE static int price_order(int order)
{
    return apply_discount(order * 3);
}
#else
PART_OF_TRACE static int check_stock(int order)
{
    return order != journal;
}

PART_OF_TRACE static int order_total(int order)
{
    return check_stock(order) ? order * 3 : 0;
}
#endif

PART_OF_TRACE static void write_journal(int price)
{
    journal += price;
}

PART_OF_TRACE static void flush_journal(void)
{
    flushed = journal;
}

int main(void)
{
    for (int number = 1; number <= ORDERS; number++) {
        int order = read_order(number);

#if RELEASE == 1
        write_journal(price_order(order));
#else
        write_journal(order_total(order));
#endif
        if (number % BATCH == 0)
            flush_journal();
    }
    printf("%d\n", flushed);
    return 0;
}
