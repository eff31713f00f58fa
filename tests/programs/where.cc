/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: where [SPINNERS]
 *
 * Threads that are at known places for ever: in a lock, in a loop, in a sleep below a recursion, in a handler
 * on a signal stack of its own, in a virtual function called through a template, in a call that was inlined,
 * and behind a function with a frame of varying size. With SPINNERS there are so many more in loops. Prints
 * "ready" when all are there.
 */
#include <alloca.h>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

#define PART_OF_STACK __attribute__((noinline, noclone))

namespace places
{

static std::atomic<int> arrived;
static std::mutex held;
static volatile unsigned long turns;

static void wait_for_ever()
{
    arrived++;
    for (;;)
        pause();
}

PART_OF_STACK void in_lock()
{
    arrived++;
    held.lock();
    turns++;
}

PART_OF_STACK void in_loop()
{
    arrived++;
    for (;;)
        turns++;
}

PART_OF_STACK int in_recursion(int depth)
{
    if (!depth) {
        wait_for_ever();
        return 1;
    }
    return in_recursion(depth - 1) + depth;
}

static void handler(int)
{
    wait_for_ever();
}

PART_OF_STACK void in_handler()
{
    static char stack[65536];
    stack_t own = {};
    struct sigaction action = {};

    own.ss_sp = stack;
    own.ss_size = sizeof(stack);
    sigaltstack(&own, nullptr);
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    pthread_kill(pthread_self(), SIGUSR1);
    turns++;
}

struct shape {
    virtual ~shape() = default;
    virtual void draw(int size) = 0;
};

struct circle : shape {
    PART_OF_STACK void draw(int) override
    {
        wait_for_ever();
        turns++;
    }
};

template <typename T> PART_OF_STACK void paint(T &what)
{
    what.draw(3);
    turns++;
}

PART_OF_STACK void in_template()
{
    circle what;
    shape &any = what;

    paint(any);
    turns++;
}

PART_OF_STACK void in_varying_frame(int size)
{
    volatile char *bytes = static_cast<char *>(alloca(size));

    bytes[0] = 1;
    wait_for_ever();
    turns += bytes[0];
}

static inline __attribute__((always_inline)) void taken_in()
{
    wait_for_ever();
}

PART_OF_STACK void in_inlined()
{
    taken_in();
    turns++;
}

} // namespace places

int main(int argc, char **argv)
{
    int spinners = argc > 1 ? atoi(argv[1]) : 0;
    std::vector<std::thread> threads;

    places::held.lock();
    threads.emplace_back(places::in_lock);
    threads.emplace_back([] { places::in_recursion(20); });
    threads.emplace_back(places::in_handler);
    threads.emplace_back(places::in_template);
    threads.emplace_back([] { places::in_varying_frame(1000 + (getpid() & 7)); });
    threads.emplace_back(places::in_inlined);
    for (int i = 0; i <= spinners; i++)
        threads.emplace_back(places::in_loop);
    while (places::arrived < static_cast<int>(threads.size()))
        usleep(1000);
    usleep(50000);
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
