#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Goal: READ, WRITE, COMMIT and SETATTR at every limit of offset and count, what
they say of attributes, who may do them, and that the host's files and their
users are not hurt.
Method: raw calls, and a look at the host's files.

usage: nfs3-data.py TAILRACE [--xfs DEVICE] [TEST]...   (DEVICE: tools/device,
                                                         for a small XFS)
"""
import mmap
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))
# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from nfs3 import *  # noqa: E402,F403


def make(served, nfs, name, data=b'', **what):
    f = nfs.create(served.root, name, **what).must('file')
    if data:
        same(nfs.write(f, 0, data, FILE_SYNC).must('count'), len(data), 'count')
    return f


def host_bytes(served, name):
    with open(served.path(name), 'rb') as f:
        return f.read()


# ---- limits of offset and count ----

def test_read_limits(served):
    nfs = served.client()
    f = make(served, nfs, b'rlimits', b'x' * 10000)
    for off in (0, 1, 9999, 10000, 10001, 1 << 32, OFFSET_MAX - 1, OFFSET_MAX,
                OFFSET_MAX + 1, MAX64 - 1, MAX64):
        for count in (0, 1, 2, 4096, 65536, (1 << 31) - 1, 1 << 31,
                      0xffffffff):
            r = nfs.read(f, off, count).must()
            want = max(0, min(10000 - off, count))
            same(len(r['data']), want, 'bytes at', off, count)
            same(r['count'], want, 'count at', off, count)
            same(bool(r['eof']), off + want >= 10000, 'eof at', off, count)
    d = nfs.mkdir(served.root, b'rdir').must('file')
    for off in (0, OFFSET_MAX, MAX64):
        nfs.read(d, off, 10).is_(ISDIR, INVAL)
        nfs.write(d, off, b'x').is_(ISDIR, INVAL, FBIG)
    nfs.commit(d).is_(ISDIR, INVAL)


def test_write_limits(served):
    nfs = served.client()
    f = make(served, nfs, b'wlimits', b'x' * 10)
    for stable in (UNSTABLE, DATA_SYNC, FILE_SYNC):
        for off in (0, 5, 10, 11, OFFSET_MAX, OFFSET_MAX - 1):
            r = nfs.write(f, off, b'', stable).must()
            same(r['count'], 0, 'count')
        for off, n in ((OFFSET_MAX, 1), (OFFSET_MAX - 1, 2), (OFFSET_MAX, 9000),
                       (OFFSET_MAX + 1, 1), (MAX64, 1), (MAX64 - 1, 1),
                       (MAX64, 0x10000), (MAX64 - 4095, 4096)):
            nfs.write(f, off, b'y' * n, stable).is_(FBIG, INVAL)
        for off in (OFFSET_MAX + 1, MAX64):
            nfs.write(f, off, b'', stable).is_(OK, FBIG, INVAL)
    same(nfs.getattr(f).must('attr')['size'], 10, 'size')
    # count has to be what is there.
    for count in (0, 1, 99, 101, 0xffffffff):
        same(nfs.write(f, 0, b'z' * 100, count=count)['status'], 'refused',
             'a count of', count)
    same(nfs.read(f, 0, 100).must('data'), b'x' * 10, 'data')
    # stable_how has three values.
    same(nfs.write(f, 0, b'z', 3)['status'], 'refused', 'stable_how 3')
    # Larger than wtmax.
    big = nfs.write(f, 0, bytes((1 << 20) + 1))
    check(big['status'] == 'refused' or big['status'] == OK, big['status'])


def test_offset_max(served):
    """A WRITE may end at the largest offset, where the host's files may."""
    nfs = served.client()
    for mode in range(5):
        served.stop()
        served.options = ['--set', f'io_cache_write={mode}', '--set',
                          f'io_cache_read={min(mode, 2)}']
        served.start()
        nfs = served.client()
        name = b'omax%d' % mode
        f = make(served, nfs, name)
        path = served.path(name.decode())
        try:
            os.truncate(path, OFFSET_MAX)
            ends = True
        except OSError:
            ends = False
        os.truncate(path, 0)
        data = random.Random(mode).randbytes(9001)
        off = OFFSET_MAX - len(data)
        w = nfs.write(f, off, data)
        if ends:
            w.must()
            nfs.commit(f, off, len(data)).must()
            same(nfs.getattr(f).must('attr')['size'], OFFSET_MAX, 'size')
            same(nfs.read(f, off, 1 << 20).must('data'), data, 'data')
            same(nfs.read(f, off - 5, 6).must('data'), bytes(5) + data[:1], '')
        elif w['status'] == OK:
            # At the latest COMMIT tells that it will never be there.
            c = nfs.commit(f)
            check(c['status'] in (FBIG, IO, NOSPC), 'COMMIT says', c['status'])
        else:
            w.is_(FBIG)
        nfs.remove(served.root, name).must()
    served.stop()
    served.options = []
    served.start()


def test_commit_ranges(served):
    nfs = served.client()
    f = make(served, nfs, b'commit')
    w = nfs.write(f, 100, b'a' * 10000).must()
    same(w['committed'], UNSTABLE, 'committed')
    for off, count in ((0, 0), (1, 1), (5000, 0), (99, 1 << 31),
                       (10100, 1), (1 << 40, 0), (OFFSET_MAX, 1),
                       (OFFSET_MAX, 0xffffffff), (OFFSET_MAX + 1, 0),
                       (MAX64, 1), (MAX64, 0xffffffff), (MAX64, 0),
                       (3, 0xffffffff)):
        nfs.write(f, off % 7000, b'b' * 10).must()
        r = nfs.commit(f, off, count).must()
        same(r['verifier'], w['verifier'], 'verifier')
        check(r['wcc'][0] is None, 'COMMIT sends attributes from before')
    for stable in (UNSTABLE, DATA_SYNC, FILE_SYNC):
        r = nfs.write(f, 5, b'c', stable).must()
        same(r['verifier'], w['verifier'], 'verifier')
        check(r['committed'] >= stable, 'less than was asked for')
    nfs.commit(f).must()
    same(host_bytes(served, 'commit'), nfs.read(f, 0, 20000).must('data'),
         'the host\'s bytes')


def test_setattr_size(served):
    nfs = served.client()
    f = make(served, nfs, b'size', b'q' * 20000)
    for size in (20000, 19999, 8193, 8192, 8191, 1, 0, 5, 70000):
        r = nfs.setattr(f, size=size).must()
        same(r['wcc'][1]['size'], size, 'size')
        same(len(nfs.read(f, 0, 100000).must('data')), size, 'bytes')
        same(os.stat(served.path('size')).st_size, size, 'the host\'s size')
    # What was cut off does not come back.
    same(nfs.read(f, 0, 70000).must('data'), bytes(70000), 'a hole')
    nfs.write(f, 0, b'q' * 10000).must()
    nfs.setattr(f, size=100).must()
    nfs.write(f, 9000, b'w').must()
    same(nfs.read(f, 0, 10000).must('data'),
         b'q' * 100 + bytes(8900) + b'w', 'data')
    for size in (OFFSET_MAX + 1, MAX64):
        nfs.setattr(f, size=size).is_(FBIG, INVAL)
        nfs.create(served.root, b'size', size=size).is_(FBIG, INVAL)
    same(nfs.getattr(f).must('attr')['size'], 9001, 'size')
    nfs.setattr(nfs.mkdir(served.root, b'sdir').must('file'), size=0
                ).is_(ISDIR, INVAL)


def test_holes(served):
    nfs = served.client()
    f = make(served, nfs, b'holes')
    model = bytearray(3 << 20)
    rng = random.Random(3)
    end = 0
    for _ in range(60):
        off, n = rng.randrange(len(model)), rng.randrange(1, 9000)
        n = min(n, len(model) - off)
        data = rng.randbytes(n)
        nfs.write(f, off, data, rng.randrange(3)).must()
        model[off:off + n] = data
        end = max(end, off + n)
        at = rng.randrange(end)
        same(nfs.read(f, at, 50000).must('data'), bytes(model[at:min(
            at + 50000, end)]), 'data')
    nfs.commit(f).must()
    same(host_bytes(served, 'holes'), bytes(model[:end]), 'the host\'s bytes')


# ---- attributes ----

def test_guard(served):
    nfs = served.client()
    f = make(served, nfs, b'guard', b'data')
    old = nfs.getattr(f).must('attr')['ctime']
    nfs.setattr(f, guard=(old[0], old[1] ^ 1), mode=0o600).is_(NOT_SYNC)
    same(nfs.getattr(f).must('attr')['mode'], 0o644, 'mode')
    r = nfs.setattr(f, guard=old, mode=0o600).must()
    same(r['wcc'][0]['ctime'], old, 'ctime before')
    check(r['wcc'][1]['ctime'] > old, 'ctime does not grow')
    nfs.setattr(f, guard=old, size=0).is_(NOT_SYNC)
    same(nfs.read(f, 0, 9).must('data'), b'data', 'data')


def test_wcc(served):
    """Before-attributes are those that the last change left behind."""
    a, b = served.client(), served.client()
    f = make(served, a, b'wcc')
    last = a.getattr(f).must('attr')
    ctimes = [last['ctime']]
    for i in range(30):
        nfs = (a, b)[i % 2]
        if i % 5 == 4:
            before, after = nfs.setattr(f, mode=0o600 + i % 2).must('wcc')
        else:
            before, after = nfs.write(f, i * 3000, b'x' * 5000,
                                      i % 3).must('wcc')
        if before:
            for k in ('size', 'mtime', 'ctime'):
                same(before[k], last[k], k, 'before change', i)
        check(after, 'no attributes after a change')
        ctimes.append(after['ctime'])
        last = after
        if i % 3 == 0:
            nfs.commit(f).must()
        same(b.getattr(f).must('attr')['ctime'], last['ctime'], 'ctime')
    same(ctimes, sorted(set(ctimes)), 'ctimes of changes')
    # A directory's changes, one after the other.
    d = a.mkdir(served.root, b'wccdir').must('file')
    last = a.getattr(d).must('attr')
    for i in range(10):
        for r in ((a, b)[i % 2].create(d, b'%d' % i), a.remove(d, b'%d' % i)):
            before, after = r.must('wcc')
            same(before['ctime'], last['ctime'], 'ctime before')
            last = after


def test_times(served):
    """cp -p: times that were set stay, whatever is flushed later."""
    nfs = served.client()
    f = make(served, nfs, b'times')
    for stable in (UNSTABLE, FILE_SYNC):
        nfs.write(f, 0, b'x' * 100000, stable).must()
        nfs.setattr(f, atime=(1000, 5), mtime=(2000, 7)).must()
        nfs.commit(f).must()
        a = nfs.getattr(f).must('attr')
        same((a['atime'], a['mtime']), ((1000, 5), (2000, 7)), 'times')
        same(os.stat(served.path('times')).st_mtime_ns, 2000 * 10**9 + 7,
             'the host\'s mtime')
    served.kill()
    served.start()
    nfs = served.client()
    same(nfs.getattr(f).must('attr')['mtime'], (2000, 7), 'mtime')
    # A write's mtime is not that of its flush.
    at = nfs.write(f, 0, b'y' * 100000).must('wcc')[1]
    time.sleep(0.05)
    nfs.commit(f).must()
    a = nfs.getattr(f).must('attr')
    same((a['mtime'], a['ctime']), (at['mtime'], at['ctime']), 'times')
    served.stop()
    s, n = at['mtime']
    same(os.stat(served.path('times')).st_mtime_ns, s * 10**9 + n,
         'the host\'s mtime')
    served.start()
    nfs = served.client()
    same(nfs.getattr(f).must('attr')['mtime'], (s, n), 'mtime')
    nfs.setattr(f, mtime='now').must()
    check(abs(nfs.getattr(f).must('attr')['mtime'][0] - time.time()) < 5,
          'now is another time')
    nfs.setattr(f, mtime=(1, 999999999), atime=(0xffffffff, 0)).must()
    same(nfs.getattr(f).must('attr')['mtime'], (1, 999999999), 'mtime')


# ---- rights ----

def test_rights(served):
    root = served.client()
    root.setattr(served.root, mode=0o777).must()
    user = served.client(uid=1000, gid=1000)
    other = served.client(uid=1001, gid=1001)
    group = served.client(uid=1002, gid=1002, gids=(5, 1000))
    f = make(served, user, b'rights', b'secret', mode=0o640)
    same(group.read(f, 0, 9).must('data'), b'secret', 'data')
    group.write(f, 0, b'x').is_(ACCES)
    other.read(f, 0, 9).is_(ACCES)
    other.write(f, 0, b'x').is_(ACCES)
    other.commit(f).is_(ACCES)
    other.setattr(f, mode=0o666).is_(PERM, ACCES)
    other.setattr(f, size=0).is_(ACCES, PERM)
    other.setattr(f, mtime='now').is_(ACCES, PERM)
    user.setattr(f, uid=1001).is_(PERM)
    for client, bits in ((user, 0x0d), (group, 0x01), (other, 0),
                         (root, 0x0d)):
        same(client.access(f).must('access'), bits, 'ACCESS')
    # The owner writes a file that it may only read, as after create 0444.
    user.setattr(f, mode=0o444).must()
    user.write(f, 0, b'S').must()
    user.setattr(f, size=5).must()
    other.write(f, 0, b'x').is_(ACCES)
    # To execute is to read.
    user.setattr(f, mode=0o711).must()
    same(other.read(f, 0, 9).must('data'), b'Secre', 'data')
    same(other.access(f).must('access'), 0x20, 'ACCESS')
    user.setattr(f, mode=0o000).must()
    same(user.read(f, 0, 9).must('data'), b'Secre', 'data of the owner')
    other.read(f, 0, 9).is_(ACCES)
    d = user.mkdir(served.root, b'private', mode=0o700).must('file')
    other.lookup(d, b'x').is_(ACCES)
    other.create(d, b'x').is_(ACCES)
    other.readdir(d).is_(ACCES)
    other.remove(served.root, b'none').is_(NOENT)
    sticky = root.mkdir(served.root, b'sticky', mode=0o1777).must('file')
    user.create(sticky, b'mine').must()
    other.remove(sticky, b'mine').is_(ACCES, PERM)
    other.rename(sticky, b'mine', sticky, b'x').is_(ACCES, PERM)
    # Rights that are taken away are gone at once.
    g = make(served, user, b'open', b'data', mode=0o666)
    other.write(g, 0, b'x').must()
    user.setattr(g, mode=0o600).must()
    other.write(g, 0, b'x').is_(ACCES)
    other.read(g, 0, 1).is_(ACCES)


def test_acl(served):
    root = served.client()
    f = make(served, root, b'acl', b'data', mode=0o600)
    none = 0xffffffff
    # Owner rw, user 1000 rw, user 1001 r, group none, mask rw, others none.
    acl = struct.pack('<I', 2) + b''.join(
        struct.pack('<HHI', *e) for e in (
            (1, 6, none), (2, 6, 1000), (2, 4, 1001), (4, 0, none),
            (16, 6, none), (32, 0, none)))
    try:
        os.setxattr(served.path('acl'), 'system.posix_acl_access', acl)
    except OSError as e:
        raise Skip('the host has no ACLs') from e
    user, other = (served.client(uid=u, gid=u) for u in (1000, 1001))
    user.write(f, 0, b'D').must()
    same(user.access(f).must('access'), 0x0d, 'ACCESS')
    same(other.access(f).must('access'), 0x01, 'ACCESS')
    same(other.read(f, 0, 9).must('data'), b'Data', 'data')
    other.write(f, 0, b'x').is_(ACCES)
    served.client(uid=1002, gid=1002).read(f, 0, 1).is_(ACCES)


def test_setuid(served):
    root = served.client()
    user = served.client(uid=1000, gid=1000)
    for mode, left in ((0o6777, 0o777), (0o2767, 0o2767), (0o4766, 0o766)):
        for how in ('write', 'sync', 'size'):
            f = make(served, root, b'suid', b'x', mode=mode)
            root.setattr(f, mode=mode, uid=7).must()
            root.setattr(f, mode=mode).must()
            root.write(f, 0, b'y').must()
            same(root.getattr(f).must('attr')['mode'], mode, 'mode by root')
            if how == 'size':
                user.setattr(f, size=0).must()
            else:
                w = user.write(f, 0, b'z', FILE_SYNC if how == 'sync' else 0)
                same(w.must('wcc')[1]['mode'], left, 'mode in the reply')
            same(root.getattr(f).must('attr')['mode'], left, 'mode', how)
            same(os.stat(served.path('suid')).st_mode & 0o7777, left, how)
            root.remove(served.root, b'suid').must()


# ---- the host's users ----

def test_host_readers(served):
    """Removing through the server hurts nobody who has the file open."""
    nfs = served.client()
    for how in ('remove', 'rename'):
        f = make(served, nfs, b'used', b'library' * 10000)
        nfs.write(f, 0, b'dirty').must()
        nfs.commit(f).must()
        nfs.write(f, 70000, b'never flushed').must()
        with open(served.path('used'), 'rb') as host, \
                mmap.mmap(host.fileno(), 70000, prot=mmap.PROT_READ) as mem:
            if how == 'remove':
                nfs.remove(served.root, b'used').must()
            else:
                make(served, nfs, b'new')
                nfs.rename(served.root, b'new', served.root, b'used').must()
            nfs.getattr(f).is_(STALE)
            check(os.fstat(host.fileno()).st_size >= 70000, 'the file is cut')
            same(mem[5:70000], (b'library' * 10000)[5:], 'mapped bytes')
            nfs.getattr(f).is_(STALE)
            nfs.read(f, 0, 1).is_(STALE)


def test_space_comes_back(served):
    nfs = served.client()
    f = make(served, nfs, b'space')
    for i in range(64):
        nfs.write(f, i << 20, bytes(1 << 20)).must()
    nfs.commit(f).must()
    before = os.statvfs(served.dir)
    nfs.remove(served.root, b'space').must()

    def gain():
        after = os.statvfs(served.dir)
        return (after.f_bfree - before.f_bfree) * after.f_frsize
    # XFS gives it back a little later; an idle file would keep it for 30 s.
    until(lambda: gain() > 32 << 20, 'space of a removed file', 10)


def test_host_changes(served):
    """What somebody on the host does is seen by the next call."""
    nfs = served.client()
    d = nfs.mkdir(served.root, b'hostdir').must('file')
    with_links = []

    def link(f, name):
        with_links.append(name)
        nfs.link(f, d, name).must()
    between = {
        'getattr': lambda f, n: nfs.getattr(f).must(),
        'mode': lambda f, n: nfs.setattr(f, mode=0o611).must(),
        'owner': lambda f, n: nfs.setattr(f, uid=3).must(),
        'rename': lambda f, n: nfs.rename(served.root, n, d, n).must(),
        'failed': lambda f, n: nfs.rename(served.root, n, d, b'').is_(INVAL),
        'over': lambda f, n: nfs.rename(d, b'none', served.root, n
                                        ).is_(NOENT),
        'link': link,
        'unlink': lambda f, n: (nfs.link(f, d, b'u').must(),
                                nfs.remove(d, b'u').must()),
        'create': lambda f, n: nfs.create(served.root, n).must(),
        'times': lambda f, n: nfs.setattr(f, atime=(7, 7)).must(),
        'nothing': lambda f, n: None,
    }
    for word, act in between.items():
        for first in (b'', b'W'):
            name = b'host-' + word.encode() + first
            f = make(served, nfs, name, b'old' * 3000)
            if first:
                nfs.write(f, 0, first).must()
                nfs.commit(f).must()
            nfs.getattr(f).must()
            nfs.read(f, 0, 9000).must()
            with open(served.path(name.decode()), 'r+b') as host:
                host.write(b'new' * 3000)
            act(f, name)
            nfs.getattr(f).must()
            same(nfs.read(f, 0, 9000).must('data')[:9], b'newnewnew',
                 'data after', word, first)


def test_host_times(served):
    """Times set on the host are not put back when the server closes."""
    nfs = served.client()
    f = make(served, nfs, b'hosttimes', b'x' * 5000)
    nfs.commit(f).must()
    nfs.getattr(f).must()
    os.utime(served.path('hosttimes'), (5, 5))
    served.stop()
    same(os.stat(served.path('hosttimes')).st_mtime, 5.0, 'mtime')
    served.start()


# ---- memory ----

def test_million(served):
    """The server does not grow with the number of calls."""
    nfs = served.client()
    names = [b'm%d' % i for i in range(200)]
    files = [make(served, nfs, n) for n in names]
    calls = []
    for i in range(200):
        for proc, args in ((1, opaque(files[i])),
                           (3, dirop(served.root, names[i]))):
            calls.append(proc.to_bytes(1, 'big') + args)

    def rounds(count):
        for _ in range(count):
            batch = bytearray()
            for c in calls:
                _, m = nfs.message(c[0], c[1:])
                batch += u32(len(m) | 1 << 31) + m
            nfs.sock.sendall(batch)
            for _ in calls:
                nfs.record()
    rounds(20)
    before = served.rss()
    rounds(int(os.environ.get('TAILRACE_ROUNDS', '100')))
    check(served.rss() - before < 4 << 20, 'the server grew by',
          served.rss() - before)


if __name__ == '__main__':
    need_root()
    PLACE, END = None, lambda: None
    if sys.argv[2:3] == ['--xfs']:
        try:
            PLACE, _, END = small_device(os.path.realpath(sys.argv[3]), 'xfs',
                                         '512M')
        except Skip as why:
            print(why)
            sys.exit(77)
        del sys.argv[2:4]
    try:
        with Served(sys.argv[1], directory=PLACE,
                    export='rw,no_root_squash') as the_server:
            STATUS = run(globals(), the_server)
    finally:
        END()
    sys.exit(1 if STATUS else 0)
