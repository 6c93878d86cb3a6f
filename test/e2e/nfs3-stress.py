#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Goal: many clients that do everything at once to a few names get answers that
the protocol allows, the server neither hangs nor ends, attributes never go back
in time, and what was left uncut is as somebody wrote it.
Method: threads with a seed each and calls chosen by it, among them somebody on
the host; every reply is checked, and all files at the end.

usage: nfs3-stress.py TAILRACE FAILIO [SEED [CALLS]]

One run's server is not root: its handles are of its own making. In the last
ones device calls fail now and then (test/lib/failio.c).
"""
import os
import random
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))
# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from nfs3 import *  # noqa: E402,F403

TAILRACE, FAILIO = (os.path.realpath(a) for a in sys.argv[1:3])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.getrandbits(30)
CALLS = int(sys.argv[4]) if len(sys.argv) > 4 else 800
THREADS = 6
NAMES = [b'n%d' % i for i in range(8)]
# What any call on names may say when others act at the same time.
RACES = (OK, NOENT, EXIST, STALE, NOTDIR, ISDIR, NOTEMPTY, INVAL, NOT_SYNC,
         JUKEBOX)
# And on a device that fails.
FAULTS = RACES + (IO, NOSPC)


class Worker(threading.Thread):
    """One client. Every write is a whole page of one byte."""

    def __init__(self, served, seed, dirs, allowed):
        super().__init__()
        self.rng = random.Random(seed)
        self.nfs = served.client(reserved=False)
        self.host = served.dir
        self.dirs = dirs
        self.allowed = allowed
        self.files = []
        self.error = None
        self.times = {}

    def run(self):
        try:
            for _ in range(CALLS):
                self.step()
        except Exception as e:  # pylint: disable=broad-except
            self.error = traceback.format_exc() + repr(e)

    def look(self, f, attr):
        """ctime grows, however often and by whomever it is asked for."""
        if attr and f in self.times:
            check(attr['ctime'] >= self.times[f], 'ctime went back')
        if attr:
            self.times[f] = attr['ctime']

    def names(self):
        rng, nfs = self.rng, self.nfs
        d, e = rng.choice(self.dirs), rng.choice(self.dirs)
        n, m = rng.choice(NAMES), rng.choice(NAMES)
        what = rng.randrange(12)
        if what < 4:
            r = nfs.create(d, n, rng.choice((UNCHECKED, GUARDED)), mode=0o666)
            if r['status'] == OK:
                self.files = (self.files + [r['file']])[-6:]
        elif what == 4:
            r = nfs.create(d, n, EXCLUSIVE, rng.randbytes(8))
        elif what == 5:
            r = nfs.mkdir(d, n)
        elif what == 6:
            r = nfs.rmdir(d, n)
        elif what == 7:
            r = nfs.remove(d, n)
        elif what == 8:
            r = nfs.rename(d, n, e, m)
        elif what == 9 and self.files:
            r = nfs.link(rng.choice(self.files), e, m)
        elif what == 10:
            r = nfs.readdirplus(d)
        else:
            r = nfs.lookup(d, n)
            if r['status'] == OK:
                self.files = (self.files + [r['file']])[-6:]
        r.is_(*self.allowed)

    def data(self, f):
        rng, nfs = self.rng, self.nfs
        off = rng.randrange(40) * 4096
        what = rng.randrange(10)
        if what < 4:
            pages = rng.randrange(1, 9)
            r = nfs.write(f, off, bytes([rng.randrange(1, 256)]) * 4096 * pages,
                          rng.randrange(3))
            if r['status'] == OK:
                self.look(f, r['wcc'][1])
        elif what < 6:
            r = nfs.read(f, off, 65536)
            if r['status'] == OK:
                self.look(f, r['attr'])
                check(r['eof'] or r['data'], 'neither data nor the end')
                for at in range(0, len(r['data']), 4096):
                    # A page that is just being written may be read half
                    # old, half new: from what was there and from as many
                    # as can be writing it.
                    page = r['data'][at:at + 4096]
                    check(len(set(page)) <= THREADS + 1, 'a page of nobody')
        elif what == 6:
            r = nfs.commit(f, off, rng.randrange(100000))
        elif what == 7:
            r = nfs.setattr(f, size=off)
        elif what == 8:
            r = nfs.setattr(f, mode=rng.choice((0o600, 0o666)))
        else:
            r = nfs.getattr(f)
            if r['status'] == OK:
                self.look(f, r['attr'])
        r.is_(*self.allowed)

    def on_host(self):
        path = os.path.join(self.host, self.rng.choice(('a', 'b')),
                            self.rng.choice(NAMES).decode())
        try:
            if self.rng.randrange(3):
                os.stat(path)
            else:
                os.unlink(path)
        except OSError:
            pass

    def step(self):
        what = self.rng.randrange(20)
        if what == 0:
            self.on_host()
        elif what < 8 or not self.files:
            self.names()
        else:
            self.data(self.rng.choice(self.files))


def fail_sometimes(io, seed, workers):
    """A kind of device call fails once or for a while, as long as they run."""
    rng = random.Random(seed)
    while any(w.is_alive() for w in workers):
        io.set(rng.choice(io.KINDS), rng.randrange(1, 20),
               lasting=not rng.randrange(5), error=rng.choice((5, 28)))
        workers[0].join(0.02)
        io.clear()
        workers[0].join(0.01)


def one(seed, modes, user, io):
    with Served(TAILRACE, *(('--io', 'threads') if io else ()), '--set',
                f'io_cache_write={modes[0]}', '--set',
                f'io_cache_read={modes[1]}', cache='8M', user=user,
                env=io.env if io else None,
                export='rw,no_root_squash') as served:
        nfs = served.client()
        dirs = [nfs.mkdir(served.root, n, mode=0o777).must('file')
                for n in (b'a', b'b')]
        workers = [Worker(served, seed * 100 + i, dirs,
                          FAULTS if io else RACES) for i in range(THREADS)]
        for w in workers:
            w.start()
        if io:
            fail_sometimes(io, seed, workers)
        for w in workers:
            w.join()
        for w in workers:
            if w.error:
                raise Failed(w.error)
        if io:
            # What was lost last may be told by the exit status only.
            served.stop(0, 1)
            return
        # What is there now is there after the server has ended, too.
        left = {}
        for n, d in zip(('a', 'b'), dirs):
            for e in nfs.readdirplus(d, 0, 65536, 65536).must('entries'):
                if e['attr'] and e['attr']['type'] == REG:
                    left[n + '/' + e['name'].decode()] = nfs.read(
                        e['file'], 0, MIB).must('data')
        served.stop()
        for name, data in left.items():
            with open(served.path(name), 'rb') as f:
                check(f.read() == data, name, 'is not what was read')
            for at in range(0, len(data), 4096):
                check(len(set(data[at:at + 4096])) == 1, name, 'torn at', at)


MIB = 1 << 20
RUNS = [((0, 0), None, None), ((1, 1), None, None), ((2, 2), None, None),
        ((3, 0), None, None)]
if not os.geteuid():
    RUNS.append(((0, 0), 1234, None))
RUNS += [((MODE, MODE), None, FailIo(FAILIO)) for MODE in (0, 1, 2)]
for NR, (MODES, USER, FAIL) in enumerate(RUNS):
    WORDS = (f'seed {SEED + NR}, modes {MODES}, user {USER}, '
             f'faults {bool(FAIL)}')
    try:
        one(SEED + NR, MODES, USER, FAIL)
    except Exception:
        print(WORDS)
        raise
    print(f'{WORDS}: ok')
