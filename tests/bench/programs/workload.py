# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""usage: workload.py ROUNDS: ordinary Python, without imports but sys: classes, dictionaries, strings, sorting."""
import sys


class Word:
    def __init__(self, text):
        self.text = text
        self.count = 0

    def seen(self):
        self.count += 1
        return self.count


def collatz(value):
    steps = 0
    while value != 1:
        value = value * 3 + 1 if value & 1 else value // 2
        steps += 1
    return steps


def count_words(text):
    words = {}
    for part in text.split():
        words.setdefault(part, Word(part)).seen()
    return sorted(words.values(), key=lambda word: (-word.count, word.text))


def main():
    total = 0
    for number in range(1, int(sys.argv[1]) + 1):
        text = " ".join("word%d" % (i * number % 17) for i in range(40))
        total += count_words(text)[0].count + collatz(number)
    print(total)


main()
