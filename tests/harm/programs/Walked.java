// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Java: the virtual machine walks its threads' stacks, for exceptions and collections.
public class Walked {
    private static volatile boolean stop;

    private static int descend(int level) {
        if (level > 0)
            return descend(level - 1) + 1;
        throw new IllegalStateException();
    }

    private static int work() {
        StringBuilder garbage = new StringBuilder();
        try {
            return descend(20);
        } catch (IllegalStateException e) {
            for (int i = 0; i < 100; i++)
                garbage.append(i);
            return e.getStackTrace().length + garbage.length();
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        int expected = work(), rounds = 0, wrong = 0;
        if (arguments.length == 0) {
            System.gc();
            System.out.println("result " + expected);
            return;
        }
        sun.misc.Signal.handle(new sun.misc.Signal("TERM"), signal -> stop = true);
        System.out.println("ready");
        for (; !stop; rounds++) {
            wrong += work() == expected ? 0 : 1;
            Thread.sleep(2);
        }
        System.out.println((wrong == 0 ? "unharmed" : "HARMED") + ": " + wrong + " of " + rounds + " rounds were wrong");
        System.exit(0);
    }
}
