#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Goal: whatever was answered as stable is there after the server was killed at
any moment, in every I/O mode; what was not is old, new, or a part of each,
never anything else; and no file is longer than what was sent.
Method: threads that write records of odd sizes and keep RFC 1813's commit
rules, over a server that is killed and started again; then the host's files
against what each thread knows.

usage: nfs3-kill.py TAILRACE [SEED]
"""
import os
import random
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))
# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from nfs3 import *  # noqa: E402,F403

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.getrandbits(30)
RECORD = 1500
RECORDS = 200
KILLS = 6


class Writer(threading.Thread):
    """One file, and what may be in each of its records."""

    def __init__(self, served, seed, f):
        super().__init__()
        self.rng = random.Random(seed)
        self.served, self.file = served, f
        self.nfs = None
        self.over = threading.Event()
        self.error = None
        self.stable = [0] * RECORDS
        # Written since, oldest first: (value, verifier or None).
        self.later = [[] for _ in range(RECORDS)]
        self.calls = 0
        self.end = 0

    def run(self):
        try:
            while not self.over.is_set():
                try:
                    self.nfs = self.nfs or Nfs(self.served.port,
                                               reserved=False)
                    self.step()
                except OSError:
                    # Killed: connect until it is there again.
                    self.nfs = None
                    self.over.wait(0.005)
        except Exception:  # pylint: disable=broad-except
            self.error = traceback.format_exc()

    def write(self):
        rng = self.rng
        at, n = rng.randrange(RECORDS), rng.randrange(1, 12)
        n = min(n, RECORDS - at)
        value, stable = rng.randrange(1, 256), rng.choice((0, 0, 0, 1, 2))
        self.end = max(self.end, (at + n) * RECORD)
        for i in range(at, at + n):
            self.later[i].append((value, None))
        w = self.nfs.write(self.file, at * RECORD,
                           bytes([value]) * (n * RECORD), stable)
        w.must()
        same(w['count'], n * RECORD, 'count')
        for i in range(at, at + n):
            self.later[i][-1] = (value, w['verifier'])
            if w['committed'] != UNSTABLE:
                self.stable[i], self.later[i] = value, []

    def commit(self):
        v = self.nfs.commit(self.file).must('verifier')
        for i, later in enumerate(self.later):
            # The newest counts: it went over all before it.
            if later and later[-1][1] == v:
                self.stable[i], self.later[i] = later[-1][0], []

    def step(self):
        self.calls += 1
        if self.rng.randrange(12):
            self.write()
        else:
            self.commit()

    def check(self, data):
        check(len(data) <= self.end, 'the file is longer than what was sent')
        data = data.ljust(RECORDS * RECORD, b'\0')
        for i in range(RECORDS):
            got = set(data[i * RECORD:(i + 1) * RECORD])
            may = {self.stable[i]} | {v for v, _ in self.later[i]}
            check(got <= may, 'record', i, 'has', got, 'not', may)
            if not self.later[i]:
                same(got, {self.stable[i]}, f'record {i}')


def one(tailrace, seed, mode, user=None):
    rng = random.Random(seed)
    with Served(tailrace, '--set', f'io_cache_write={mode}', cache='8M',
                user=user,
                export='rw,no_root_squash') as served:
        nfs = served.client()
        writers = [Writer(served, seed * 10 + i, nfs.create(
            served.root, b'f%d' % i).must('file')) for i in range(3)]
        for w in writers:
            w.start()
        try:
            for _ in range(KILLS):
                calls = [w.calls + rng.randrange(1, 60) for w in writers]
                until(lambda c=calls: any(w.error or w.calls >= n
                                          for w, n in zip(writers, c)),
                      'the writers')
                served.kill()
                served.start()
        finally:
            for w in writers:
                w.over.set()
            for w in writers:
                w.join()
        for w in writers:
            if w.error:
                raise Failed(w.error)
        nfs = served.client()
        seen = [b''.join(nfs.read(w.file, off, 100000).must('data')
                         for off in range(0, RECORDS * RECORD, 100000))
                for w in writers]
        served.kill()
        served.start()
        served.stop()
        for i, w in enumerate(writers):
            w.check(seen[i])
            with open(served.path(f'f{i}'), 'rb') as f:
                w.check(f.read())


RUNS = [(MODE, None) for MODE in range(5)]
if not os.geteuid():
    # Handles of the server's own making are found again by a search.
    RUNS.append((0, 1234))
for MODE, USER in RUNS:
    try:
        one(sys.argv[1], SEED + MODE, MODE, USER)
    except Exception:
        print(f'seed {SEED}, mode {MODE}, user {USER}')
        raise
    print(f'seed {SEED}, mode {MODE}, user {USER}: ok')
