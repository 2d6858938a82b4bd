"""Random choices that can be repeated with some of them changed.

Draws has the methods of random.Random that queries.py uses.  It remembers what
it drew, by the lines of code that asked.  Told what to draw, it draws that, and
the simplest thing there is where it was told nothing or nothing that fits; so
that a query can be made again with one choice changed, and is a query that the
generator could have made, with everything it knows about its right answers.
The first of several alternatives is the simplest, a small number is simpler
than a large one, and of two ways by chance it is the less likely one's absence.
"""

import random
import sys

NEVER = 0.999999        # as the outcome of random(): no chance comes true


class Draws:
    def __init__(self, seed, told=None):
        self._rng, self._told, self._seen = random.Random(seed), told, {}
        self.drawn = {}

    def _draw(self, kind, fresh, fits, simplest):
        """One draw: as told, or else by calling fresh()."""
        frame = sys._getframe()
        while frame.f_code.co_filename == __file__:
            frame = frame.f_back
        code, lines = frame.f_code.co_filename, [kind]
        while frame is not None and frame.f_code.co_filename == code:
            lines.append(frame.f_lineno)
            frame = frame.f_back
        times = self._seen[tuple(lines)] = self._seen.get(tuple(lines), 0) + 1
        place = tuple(lines + [times])
        if self._told is None:
            value = fresh()
        else:
            value = fits(self._told[place]) if place in self._told else simplest
        self.drawn[place] = value
        return value

    def _number(self, kind, fresh, low, high):
        return self._draw(kind, fresh, lambda v: min(max(v, low), high), low)

    def random(self):
        return self._draw('random', self._rng.random, lambda v: v, NEVER)

    def randint(self, low, high):
        return self._number('randint', lambda: self._rng.randint(low, high), low, high)

    def randrange(self, n):
        return self._number('pick', lambda: self._rng.randrange(n), 0, n - 1)

    def choice(self, items):
        places = range(len(items))
        return items[self._number('pick', lambda: self._rng.choice(places), 0, len(items) - 1)]

    def choices(self, items, weights):
        places = range(len(items))
        return [items[self._number('pick', lambda: self._rng.choices(places, weights)[0],
                                   0, len(items) - 1)]]

    def sample(self, items, k):
        def fits(places):
            kept = [p for p in places if p < len(items)]
            return tuple((kept + [p for p in range(len(items)) if p not in kept])[:k])
        places = self._draw('sample', lambda: tuple(self._rng.sample(range(len(items)), k)),
                            fits, tuple(range(k)))
        return [items[p] for p in places]


def simpler(drawn):
    """What to tell instead of `drawn`: one choice, or a number and the sample
    of that size, made simpler."""
    for place, value in drawn.items():
        if place[0] == 'pick' and value > 0:
            yield drawn | {place: 0}
        elif place[0] == 'random' and value < NEVER:
            yield drawn | {place: NEVER}
        elif place[0] == 'randint':
            yield from (drawn | {place: v} for v in (0, value // 2) if v < value)
        elif place[0] == 'sample':
            size = ('randint',) + place[1:]
            for one in value if len(value) > 1 else ():
                yield drawn | {place: (one,), size: 1}
            for one in value if len(value) > 2 else ():
                yield drawn | {place: tuple(v for v in value if v != one), size: len(value) - 1}
