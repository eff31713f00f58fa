/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that take locks of C++ in two orders, never at the same time. lock_orders WHAT:
 *   cycle    one takes first, then second; the other one the other way round: could deadlock
 *   shared   the same with a std::shared_mutex that one of them only reads
 *   gate     the same, behind a third lock that both hold
 *   joined   the same, but the second one begins when the first one has ended
 *   readers  the same, but both locks are only read
 *   try      the same, but one only tries
 *   condition  a condition's mutex is taken again, behind the other lock, when the waiting ends
 */
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::mutex first, second, gate;
static std::shared_mutex shared_first, shared_second;
static std::mutex turn_mutex;
static std::condition_variable turn_changed;
static int turn;

/* Not seen as an order of locks: nothing else is held. */
static void wait_for_turn(int wanted)
{
    std::unique_lock lock(turn_mutex);

    turn_changed.wait(lock, [=] { return turn >= wanted; });
}

static void next_turn()
{
    std::lock_guard lock(turn_mutex);

    turn++;
    turn_changed.notify_all();
}

template <class First, class Second> static void in_order(First &one, Second &other)
{
    std::lock_guard outer(one);
    std::lock_guard inner(other);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "cycle";
    auto is = [&](const char *word) { return !strcmp(what, word); };

    std::thread a([&] {
        if (is("gate")) {
            std::lock_guard lock(gate);
            in_order(first, second);
        } else if (is("readers")) {
            std::shared_lock outer(shared_first);
            std::shared_lock inner(shared_second);
        } else if (is("shared")) {
            std::lock_guard outer(second);
            std::shared_lock inner(shared_first);
        } else {
            in_order(first, second);
        }
        next_turn();
        if (!is("joined"))
            wait_for_turn(2);
    });
    if (is("joined"))
        a.join();
    wait_for_turn(1);
    if (is("gate")) {
        std::lock_guard lock(gate);
        in_order(second, first);
    } else if (is("readers")) {
        std::shared_lock outer(shared_second);
        std::shared_lock inner(shared_first);
    } else if (is("shared")) {
        std::lock_guard outer(shared_first);
        std::lock_guard inner(second);
    } else if (is("try")) {
        std::lock_guard outer(second);
        std::unique_lock inner(first, std::try_to_lock);
    } else if (is("condition")) {
        /* The C library's own condition: its mutex is `first`. */
        std::condition_variable condition;
        std::unique_lock outer(first);
        std::lock_guard inner(second);
        condition.wait_for(outer, std::chrono::milliseconds(1));
    } else {
        in_order(second, first);
    }
    next_turn();
    if (a.joinable())
        a.join();
    return 0;
}
