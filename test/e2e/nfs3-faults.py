#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Goal: nothing that was answered as stable is lost, and what is lost is told:
by the verifier, and to each client with unstable data once by an error; a full
or hung disk and slow clients hurt nobody else.
Method: a server whose device calls fail on demand (test/lib/failio.c), small
devices, copies of a device taken between two calls, raw calls.

usage: nfs3-faults.py TAILRACE FAILIO DEVICE [TEST]...   (DEVICE: tools/device)
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))
# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from nfs3 import *  # noqa: E402,F403

TAILRACE, FAILIO, DEVICE = (os.path.realpath(a) for a in sys.argv[1:4])
MIB = 1 << 20


def failing(*options):
    io = FailIo(FAILIO)
    return io, Served(TAILRACE, '--io', 'threads', *options,
                      export='rw,no_root_squash', env=io.env)


# ---- the verifier ----

def test_verifier_restart():
    with Served(TAILRACE, export='rw,no_root_squash') as served:
        seen = set()
        for end in (served.stop, served.kill, served.stop):
            nfs = served.client()
            f = nfs.create(served.root, b'v').must('file')
            got = {nfs.write(f, 0, b'x', s).must('verifier') for s in range(3)}
            got.add(nfs.commit(f).must('verifier'))
            same(len(got), 1, 'verifiers of one run')
            seen |= got
            end()
            served.start()
        same(len(seen), 3, 'verifiers of three runs')


# ---- errors ----

def lost(kind, mode):
    """Unstable data of two clients is lost when the first commits."""
    io, served = failing('--set', f'io_cache_write={mode}')
    with tempfile.TemporaryFile('w+') as served.stderr, served:
        a, b, c = (served.client(address=f'127.0.0.{n}') for n in (2, 3, 4))
        f = a.create(served.root, b'f').must('file')
        g = a.create(served.root, b'g').must('file')
        h = a.create(served.root, b'h').must('file')
        c.write(h, 0, b'h' * 9000).must()
        c.commit(h).must()
        old = a.write(f, 0, b'a' * 5000).must('verifier')
        same(b.write(f, 8192, b'b' * 5000).must('verifier'), old, 'verifier')
        same(a.write(g, 0, b'g').must('verifier'), old, 'verifier')
        io.set(kind)
        a.commit(f).is_(IO)
        # What could not be written stays and is tried again, not for ever.
        for _ in range(8 if kind == 'write' else 0):
            a.commit(f).is_(IO, OK)
        io.clear()
        a.commit(f).is_(IO, OK)
        new = a.commit(f).must('verifier')
        check(new != old, 'the verifier did not change')
        b.commit(f).is_(IO)
        check(b.commit(f).must('verifier') != old, 'the old verifier')
        check(c.commit(f).must('verifier') != old, 'the old verifier')
        # The other file's writer learns by the verifier, without an error.
        check(a.commit(g).must('verifier') != old, 'the old verifier')
        # What the clients send again is there.
        now = a.write(f, 0, b'a' * 5000).must('verifier')
        same(b.write(f, 8192, b'b' * 5000).must('verifier'), now, 'verifier')
        same(a.commit(f).must('verifier'), now, 'verifier')
        want = b'a' * 5000 + bytes(3192) + b'b' * 5000
        same(b.read(f, 0, 20000).must('data'), want, 'data')
        served.kill()
        with open(served.path('f'), 'rb') as host:
            same(host.read(), want, 'the host\'s data')
        # The administrator knows of the file that lost data, and why.
        served.stderr.seek(0)
        told = [s for s in served.stderr if 'lost' in s]
        same(len(told), 1, 'lines on losses')
        check(served.path('f') in told[0] and
              told[0].endswith(': Input/output error\n'), told)


def test_lost_write():
    for mode in (0, 1, 2):
        lost('write', mode)


def test_lost_sync():
    for mode in (0, 1, 2):
        lost('fsync', mode)


def test_loss_in_one_export():
    """Another export's clients do not send everything again."""
    io, served = failing()
    with served:
        other = os.path.join(served.work, 'other')
        os.mkdir(other)
        served.stop()
        with open(served.exports, 'a', encoding='ascii') as f:
            f.write(f'{other} *(rw,no_root_squash,insecure)\n')
        served.start()
        nfs = served.client()
        root2 = nfs.mount(other.encode()).must('file')
        f = nfs.create(served.root, b'f').must('file')
        g = nfs.create(root2, b'g').must('file')
        old = nfs.write(f, 0, b'f' * 5000).must('verifier')
        io.set('fsync')
        nfs.commit(f).is_(IO)
        io.clear()
        old2 = nfs.write(g, 0, b'g' * 5000).must('verifier')
        check(nfs.commit(f).must('verifier') != old, 'the old verifier')
        same(nfs.commit(g).must('verifier'), old2, 'the other verifier')


def test_stable_write_fails():
    for mode in range(5):
        io, served = failing('--set', f'io_cache_write={mode}')
        with served:
            nfs = served.client()
            f = nfs.create(served.root, b'f').must('file')
            for kind in ('write', 'fsync', 'fdatasync'):
                for stable in (DATA_SYNC, FILE_SYNC):
                    io.set(kind)
                    w = nfs.write(f, 100, b'x' * 20000, stable)
                    called = io.seen(kind)
                    io.clear()
                    check(not called or w['status'] == IO, 'mode', mode, kind,
                          stable, 'failed', called, 'times: answered',
                          w['status'])
                    nfs.commit(f).is_(OK, IO)
                    nfs.write(f, 100, b'y' * 20000, stable).must()
            same(nfs.read(f, 100, 20000).must('data'), b'y' * 20000, 'data')


def test_one_failure():
    """Each device call of a small job fails once; the commit rules hold."""
    for kind in ('write', 'fsync', 'truncate', 'fallocate'):
        nth, more = 0, True
        io, served = failing()
        with served:
            while more and nth < 12:
                nth += 1
                nfs = served.client()
                name = b'%s%d' % (kind.encode(), nth)
                f = nfs.create(served.root, name).must('file')
                data = bytes([nth]) * 300000
                io.set(kind, nth, lasting=False)
                for _ in range(20):
                    got = set()
                    for off in range(0, len(data), 50000):
                        w = nfs.write(f, off, data[off:off + 50000])
                        got.add(w['verifier'] if w['status'] == OK else None)
                    r = nfs.commit(f)
                    if r['status'] == OK and got == {r['verifier']}:
                        break
                else:
                    raise Failed('the client is never done')
                more = io.seen(kind) >= nth
                io.clear()
                with open(served.path(name.decode()), 'rb') as host:
                    check(host.read() == data, kind, nth, 'committed data is '
                          'not there')


# ---- durability of names ----

def look_at_copy(image, look):
    """Calls look(directory) on what a crash now would leave."""
    work = tempfile.mkdtemp(prefix='tailrace-e2e.', dir='/var/tmp')
    copy, mnt = os.path.join(work, 'img'), os.path.join(work, 'mnt')
    os.mkdir(mnt)
    try:
        subprocess.run(['cp', '--sparse=always', image, copy], check=True)
        options = 'loop,nouuid' if 'xfs' in image else 'loop'
        subprocess.run(['mount', '-o', options, copy, mnt], check=True)
        try:
            look(mnt)
        finally:
            subprocess.run(['umount', mnt], check=True)
    finally:
        shutil.rmtree(work)


def crash(fs, size):
    mnt, image, end = small_device(DEVICE, fs, size)
    try:
        with Served(TAILRACE, directory=mnt,
                    export='rw,no_root_squash') as served:
            nfs = served.client()
            root = served.root
            d = nfs.mkdir(root, b'd').must('file')
            e = nfs.mkdir(root, b'e').must('file')
            nfs.create(d, b'made', mode=0o640).must()
            gone = nfs.create(d, b'gone').must('file')
            nfs.link(gone, e, b'linked').must()
            nfs.symlink(d, b'sym', b'target').must()
            nfs.mknod(d, b'fifo', FIFO).must()
            nfs.create(d, b'excl', EXCLUSIVE, b'verifier').must()
            moved = nfs.create(d, b'from').must('file')
            stable = nfs.create(d, b'stable').must('file')
            nfs.write(stable, 7, b's' * 10000, FILE_SYNC).must()
            nfs.write(moved, 0, b'm' * 5000).must()
            nfs.commit(moved).must()
            nfs.setattr(stable, mode=0o604, mtime=(12345, 0)).must()
            nfs.remove(d, b'gone').must()
            nfs.mkdir(d, b'dir').must()
            nfs.rmdir(d, b'dir').must()
            nfs.setattr(nfs.create(d, b'cut').must('file'), size=77).must()
            nfs.rename(d, b'from', e, b'to').must()

            def look(at):
                same(sorted(os.listdir(at + '/d')),
                     ['cut', 'excl', 'fifo', 'made', 'stable', 'sym'], 'd')
                same(sorted(os.listdir(at + '/e')), ['linked', 'to'], 'e')
                with open(at + '/d/stable', 'rb') as f:
                    same(f.read(), bytes(7) + b's' * 10000, 'stable data')
                with open(at + '/e/to', 'rb') as f:
                    same(f.read(), b'm' * 5000, 'committed data')
                st = os.stat(at + '/d/stable')
                same((st.st_mode & 0o777, st.st_mtime), (0o604, 12345.0),
                     'attributes')
                same(os.stat(at + '/d/made').st_mode & 0o777, 0o640, 'mode')
                same(os.stat(at + '/e/linked').st_nlink, 1, 'links')
                same(os.stat(at + '/d/cut').st_size, 77, 'size')
                verifier = struct.unpack('=II', b'verifier')
                st = os.stat(at + '/d/excl')
                same((int(st.st_atime), int(st.st_mtime)), verifier, 'excl')
            look_at_copy(image, look)
    finally:
        end()


def test_crash_ext4():
    crash('ext4', '64M')


def test_crash_xfs():
    crash('xfs', '320M')


# ---- a full disk ----

def full(fs, size, mode):
    mnt, _, end = small_device(DEVICE, fs, size)
    try:
        with Served(TAILRACE, '--set', f'io_cache_write={mode}', directory=mnt,
                    export='rw,no_root_squash') as served:
            nfs = served.client()
            f = nfs.create(served.root, b'f').must('file')
            told, kept, off = None, {}, 0
            while told is None and off < 400 * MIB:
                pending = []
                for _ in range(16):
                    data = off.to_bytes(8, 'big') * (MIB // 8)
                    w = nfs.write(f, off, data)
                    if w['status'] != OK:
                        told = w['status']
                        break
                    pending.append((off, w['verifier']))
                    off += MIB
                c = nfs.commit(f)
                if c['status'] == OK:
                    kept.update((o, 1) for o, v in pending
                                if v == c['verifier'])
                else:
                    told = told or c['status']
            same(told, NOSPC, 'what a full disk is told as')
            check(kept, 'nothing was written')
            for o in kept:
                check(nfs.read(f, o, MIB).must('data') ==
                      o.to_bytes(8, 'big') * (MIB // 8), 'stable data is lost')
            nfs.write(f, off, bytes(MIB), FILE_SYNC).is_(NOSPC, OK)
            # Room again: work goes on.
            nfs.remove(served.root, b'f').must()
            g = nfs.create(served.root, b'g').must('file')
            nfs.write(g, 0, b'again' * 10000, FILE_SYNC).must()
            nfs.commit(g).must()
    finally:
        end()


def test_full_ext4():
    full('ext4', '64M', 0)
    full('ext4', '64M', 2)


def test_full_xfs():
    full('xfs', '320M', 1)


# ---- hung disk, slow clients ----

def test_hung():
    """Writes hang; attributes and cached data are still answered."""
    io, served = failing()
    with served:
        nfs = served.client()
        cached = nfs.create(served.root, b'cached').must('file')
        nfs.write(cached, 0, b'c' * 10000).must()
        nfs.commit(cached).must()
        nfs.read(cached, 0, 10000).must()
        files = [nfs.create(served.root, b'h%d' % i).must('file')
                 for i in range(48)]
        io.set('write', error=FailIo.WAIT)
        clients = [served.client() for _ in files]
        xids = [c.send(7, c.write_args(f, 0, b'h' * 9000, FILE_SYNC))
                for c, f in zip(clients, files)]
        until(lambda: io.waiting('write') > 0, 'a write that hangs')
        nfs.sock.settimeout(10)
        for _ in range(20):
            nfs.getattr(cached).must()
            same(len(nfs.read(cached, 0, 10000).must('data')), 10000, 'bytes')
        io.clear()
        for c, xid in zip(clients, xids):
            same(c.receive(xid).take('I'), OK, 'a write that hung')


def test_slow_clients():
    """WRITEs that stop in the middle hold neither memory nor files."""
    with Served(TAILRACE, export='rw,no_root_squash', cache='16M') as served:
        nfs = served.client()
        f = nfs.create(served.root, b'f').must('file')
        nfs.write(f, 0, b'x').must()
        before = served.rss()
        slow, rest = [], []
        for i in range(64):
            c = served.client()
            _, m = c.message(7, c.write_args(f, i * MIB, bytes([i]) * MIB))
            m = u32(len(m) | 1 << 31) + m
            if i % 2:
                c.sock.sendall(m[:MIB // 2])
                slow.append((i, c, m[MIB // 2:]))
            else:
                c.sock.sendall(m)
                rest.append((i, c))
        for i, c in rest:
            r = c.record()
            same(struct.unpack_from('>I', r, 24)[0], OK, 'status of', i)
        # The ranges that the stalled ones are about are free for others.
        for i, _, _ in slow:
            nfs.write(f, i * MIB, b'other').must()
        nfs.commit(f).must()
        check(served.rss() - before < 160 * MIB, 'the server grew by',
              served.rss() - before)
        for k, (i, c, m) in enumerate(slow):
            if k % 2:
                c.close()
            else:
                c.sock.sendall(m)
                same(struct.unpack_from('>I', c.record(), 24)[0], OK, i)
        nfs.commit(f).must()
        for k, (i, _, _) in enumerate(slow):
            got = nfs.read(f, i * MIB, MIB).must('data')
            want = (b'other' + bytes(MIB - 5) if k % 2 else bytes([i]) * MIB)
            check(got == want or i == 63 and got == want[:len(got)],
                  'data of connection', i)


def test_no_readers():
    """Clients that ask and do not read hold a bounded share of memory."""
    with Served(TAILRACE, export='rw,no_root_squash', cache='16M') as served:
        nfs = served.client()
        files = [nfs.create(served.root, b'f%d' % i).must('file')
                 for i in range(8)]
        for f in files:
            for off in range(4):
                nfs.write(f, off * MIB, bytes([off]) * MIB).must()
            nfs.commit(f).must()
        before = served.rss()
        deaf = []
        for i in range(32):
            c = served.client()
            c.sock.setblocking(False)
            _, m = c.message(6, opaque(files[i % 8]) + u64(i % 4 * MIB) +
                             u32(MIB))
            m = u32(len(m) | 1 << 31) + m
            try:
                c.sock.sendall(m * 400)
            except BlockingIOError:
                pass
            deaf.append(c)
        nfs.sock.settimeout(20)
        for i in range(100):
            check(nfs.read(files[i % 8], i % 4 * MIB, MIB).must('data') ==
                  bytes([i % 4]) * MIB, 'data')
            nfs.write(files[i % 8], 5 * MIB, b'x', FILE_SYNC).must()
        check(served.rss() - before < 192 * MIB, 'the server grew by',
              served.rss() - before)
        for c in deaf:
            c.close()
        nfs.getattr(files[0]).must()


del sys.argv[2:4]
STATUS = run(globals())
sys.exit(1 if STATUS else 0)
