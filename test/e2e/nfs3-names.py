#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Goal: handles, names and what is made, linked, renamed, listed and removed
by them are as RFC 1813 and spec have it, also where a client is wrong.
Method: raw calls, and a look at the host's directory.

usage: nfs3-names.py TAILRACE [TEST]...
"""
import os
import random
import socket
import stat
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))
# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from nfs3 import *  # noqa: E402,F403


def folder(served, nfs, name, mode=0o777):
    return nfs.mkdir(served.root, name, mode=mode).must('file')


# ---- handles ----

def test_forged_handles(served):
    nfs = served.client()
    f = nfs.create(served.root, b'forged').must('file')
    for i in range(len(f) * 8):
        bad = bytearray(f)
        bad[i // 8] ^= 1 << i % 8
        nfs.getattr(bytes(bad)).is_(BADHANDLE)
    for n in range(len(f)):
        nfs.getattr(f[:n]).is_(BADHANDLE)
    for n in range(len(f) + 1, 65):
        nfs.getattr(f.ljust(n, b'\0')).is_(BADHANDLE)
    same(nfs.getattr(bytes(68))['status'], 'refused', 'a handle of 68 bytes')
    rng = random.Random(1)
    for _ in range(500):
        nfs.read(rng.randbytes(rng.randrange(65)), 0, 1).is_(BADHANDLE)
    bad = f[:-1] + bytes([f[-1] ^ 1])
    for reply in (nfs.setattr(bad, mode=0), nfs.lookup(bad, b'x'),
                  nfs.access(bad), nfs.readlink(bad), nfs.write(bad, 0, b'x'),
                  nfs.create(bad, b'x'), nfs.mkdir(bad, b'x'),
                  nfs.symlink(bad, b'x', b'y'), nfs.mknod(bad, b'x', FIFO),
                  nfs.remove(bad, b'x'), nfs.rmdir(bad, b'x'),
                  nfs.rename(bad, b'x', served.root, b'y'),
                  nfs.rename(served.root, b'x', bad, b'y'),
                  nfs.link(bad, served.root, b'y'),
                  nfs.link(f, bad, b'y'), nfs.readdir(bad),
                  nfs.readdirplus(bad), nfs.fsinfo(bad), nfs.commit(bad)):
        reply.is_(BADHANDLE)
    nfs.getattr(f).must()


def test_stale_handles(served):
    nfs = served.client()
    f = nfs.create(served.root, b'stale').must('file')
    nfs.write(f, 0, b'x' * 5000).must()
    nfs.remove(served.root, b'stale').must()
    nfs.getattr(f).is_(STALE)
    nfs.read(f, 0, 1).is_(STALE)
    nfs.write(f, 0, b'x').is_(STALE)
    nfs.commit(f).is_(STALE)
    d = folder(served, nfs, b'staledir')
    nfs.rmdir(served.root, b'staledir').must()
    nfs.create(d, b'x').is_(STALE)
    nfs.readdir(d).is_(STALE)
    # The inode number may be used again at once: another file.
    g = nfs.create(served.root, b'stale2').must('file')
    check(f != g, 'a handle was used again')
    nfs.getattr(f).is_(STALE)
    # Removed by somebody on the host.
    nfs.write(g, 0, b'x').must()
    os.unlink(served.path('stale2'))
    nfs.getattr(g).is_(STALE)
    nfs.write(g, 0, b'x').is_(STALE)


def test_handles_live_on(served):
    nfs = served.client()
    d = folder(served, nfs, b'live')
    f = nfs.create(d, b'on').must('file')
    nfs.write(f, 0, b'data', FILE_SYNC).must()
    nfs.rename(d, b'on', served.root, b'moved').must()
    same(nfs.lookup(served.root, b'moved').must('file'), f, 'handle')
    served.stop()
    served.start()
    nfs = served.client()
    same(nfs.read(f, 0, 10).must('data'), b'data', 'data')
    same(nfs.lookup(served.root, b'moved').must('file'), f, 'handle')
    served.kill()
    served.start()
    nfs = served.client()
    same(nfs.read(f, 0, 10).must('data'), b'data', 'data')
    nfs.getattr(d).must()


# ---- names ----

def test_odd_names(served):
    nfs = served.client()
    d = folder(served, nfs, b'odd')
    good = [bytes([c]) * 3 for c in range(1, 256) if c not in b'./']
    good += [b'n' * 255, b'...', b'-rf', b' ', b'a b\n', b'\xff\xfe\x80']
    for name in good:
        f = nfs.create(d, name).must('file')
        same(nfs.lookup(d, name).must('file'), f, name)
    same(set(os.listdir(served.path('odd').encode())), set(good), 'names')
    for name in good:
        nfs.remove(d, name).must()
    same(os.listdir(served.path('odd')), [], 'what is left')


def test_bad_names(served):
    nfs = served.client()
    d = folder(served, nfs, b'bad')
    f = nfs.create(d, b'f').must('file')

    def each(name, *statuses):
        for reply in (nfs.create(d, name), nfs.mkdir(d, name),
                      nfs.symlink(d, name, b't'), nfs.mknod(d, name, FIFO),
                      nfs.rename(d, b'f', d, name), nfs.link(f, d, name)):
            reply.is_(*statuses)
    for name in (b'', b'/', b'a/b', b'../x', b'/etc/passwd', b'a\0b', b'\0'):
        each(name, INVAL, ACCES)
        nfs.lookup(d, name).is_(INVAL, ACCES, NOENT)
        nfs.remove(d, name).is_(INVAL, ACCES, NOENT)
        nfs.rmdir(d, name).is_(INVAL, ACCES, NOENT)
        nfs.rename(d, name, d, b'y').is_(INVAL, ACCES, NOENT)
    for n in (256, 257, 1000, 4096, 8000):
        each(b'n' * n, NAMETOOLONG)
        nfs.lookup(d, b'n' * n).is_(NAMETOOLONG)
        nfs.remove(d, b'n' * n).is_(NAMETOOLONG)
    for name in (b'.', b'..'):
        nfs.lookup(d, name).must()
        each(name, EXIST, INVAL)
        nfs.remove(d, name).is_(INVAL, ACCES, EXIST, ISDIR)
        nfs.rmdir(d, name).is_(INVAL, EXIST, NOTEMPTY)
        nfs.rename(d, name, d, b'y').is_(INVAL)
    same(os.listdir(served.path('bad')), ['f'], 'names')
    # The way up ends at the root of the export.
    top = nfs.lookup(served.root, b'..').must('file')
    same(nfs.getattr(top).must('attr')['fileid'],
         nfs.getattr(served.root).must('attr')['fileid'], 'root\'s parent')
    nfs.lookup(f, b'x').is_(NOTDIR)
    nfs.create(f, b'x').is_(NOTDIR)
    nfs.remove(f, b'x').is_(NOTDIR)
    nfs.readdir(f).is_(NOTDIR)
    nfs.readdirplus(f).is_(NOTDIR)


def test_symlinks(served):
    nfs = served.client()
    d = folder(served, nfs, b'sym')
    longest = b'x' * 4095
    try:
        os.symlink(longest, served.path('long'))
    except OSError:
        longest = b'x' * 1023
    for target in (b'/etc/passwd', b'../../../../etc/passwd', longest,
                   b'\xff', b'.'):
        link = nfs.symlink(d, b'l', target).must('file')
        same(nfs.readlink(link).must('target'), target, 'target')
        same(nfs.getattr(link).must('attr')['type'], LNK, 'type')
        # No call of the server follows it.
        nfs.read(link, 0, 10).is_(INVAL)
        nfs.write(link, 0, b'x').is_(INVAL)
        nfs.readdir(link).is_(NOTDIR)
        nfs.lookup(link, b'passwd').is_(NOTDIR)
        nfs.create(d, b'l').is_(EXIST)
        nfs.create(d, b'l', EXCLUSIVE, b'12345678').is_(EXIST)
        nfs.setattr(link, size=0).is_(INVAL)
        nfs.remove(d, b'l').must()
    nfs.symlink(d, b'l', b'').is_(INVAL, NOENT)
    nfs.symlink(d, b'l', b'x' * 4096).is_(NAMETOOLONG)
    nfs.symlink(d, b'l', b'a\0b').is_(INVAL)
    # A link's own attributes change, never the target's.
    nfs.create(d, b'target', mode=0o600).must()
    link = nfs.symlink(d, b'l', b'target').must('file')
    nfs.setattr(link, uid=77, mtime=(5, 0)).must()
    st = os.stat(served.path('sym', 'target'))
    check(st.st_uid != 77 and st.st_mtime != 5, 'went through a link')
    same(os.lstat(served.path('sym', 'l')).st_uid, 77, 'the link\'s owner')
    # A directory of links does not lead out either.
    os.symlink('/etc', served.path('sym', 'dir'))
    out = nfs.lookup(d, b'dir').must('file')
    nfs.lookup(out, b'passwd').is_(NOTDIR)
    same(nfs.mount(served.path('sym', 'dir').encode())['status'] != OK, True,
         'mounted through a link')


def test_special_files(served):
    nfs = served.client()
    d = folder(served, nfs, b'special')
    for name, kind, how in ((b'fifo', FIFO, stat.S_ISFIFO),
                            (b'sock', SOCK, stat.S_ISSOCK),
                            (b'chr', CHR, stat.S_ISCHR),
                            (b'blk', BLK, stat.S_ISBLK)):
        f = nfs.mknod(d, name, kind, 7, 300, mode=0o640).must('file')
        st = os.lstat(served.path('special', name.decode()))
        check(how(st.st_mode), name, 'has another type')
        same(st.st_mode & 0o7777, 0o640, 'mode')
        a = nfs.getattr(f).must('attr')
        same(a['type'], kind, 'type')
        if kind in (CHR, BLK):
            same((a['major'], a['minor']), (7, 300), 'device')
        # None of them is opened, or a call would hang or reach a device.
        nfs.read(f, 0, 1).is_(INVAL)
        nfs.write(f, 0, b'x').is_(INVAL)
        nfs.commit(f).is_(INVAL)
        nfs.setattr(f, size=0).is_(INVAL)
        nfs.setattr(f, mode=0o600).must()
        nfs.mknod(d, name, kind).is_(EXIST)
        nfs.remove(d, name).must()
        nfs.getattr(f).is_(STALE)
    for kind in (REG, DIR, LNK, 0, 8, 0xffffffff):
        nfs.mknod(d, b'x', kind).is_(BADTYPE)
    user = served.client(uid=1000, gid=1000)
    user.mknod(d, b'dev', CHR, 1, 3).is_(PERM, ACCES)
    user.mknod(d, b'dev', FIFO).must()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(served.path('special', 'bound'))
        f = nfs.lookup(d, b'bound').must('file')
        nfs.read(f, 0, 1).is_(INVAL)


# ---- creating ----

def test_create_modes(served):
    nfs = served.client()
    d = folder(served, nfs, b'create')
    f = nfs.create(d, b'a', GUARDED, mode=0o4751).must('file')
    same(nfs.getattr(f).must('attr')['mode'], 0o4751, 'mode')
    nfs.write(f, 0, b'12345').must()
    nfs.create(d, b'a', GUARDED).is_(EXIST)
    # UNCHECKED changes the size of what is there and nothing else.
    same(nfs.create(d, b'a', mode=0o600, uid=9).must('file'), f, 'handle')
    a = nfs.getattr(f).must('attr')
    same((a['mode'], a['uid'], a['size']), (0o4751, 0, 5), 'attributes')
    nfs.create(d, b'a', size=2).must()
    same(nfs.read(f, 0, 9).must('data'), b'12', 'data')
    nfs.create(d, b'a', size=0).must()
    same(nfs.getattr(f).must('attr')['size'], 0, 'size')
    # On something new all attributes count.
    g = nfs.create(d, b'b', mode=0o600, uid=9, gid=10, size=1000,
                   mtime=(99, 5), atime=(98, 4)).must('file')
    a = nfs.getattr(g).must('attr')
    same((a['uid'], a['gid'], a['size'], a['mtime'], a['atime']),
         (9, 10, 1000, (99, 5), (98, 4)), 'attributes')
    h = nfs.mkdir(d, b'd', mode=0o700, uid=9, mtime=(99, 5)).must('file')
    a = nfs.getattr(h).must('attr')
    same((a['uid'], a['mode'], a['mtime']), (9, 0o700, (99, 5)), 'directory')
    nfs.create(d, b'd').is_(EXIST, ISDIR)
    nfs.create(d, b'd', EXCLUSIVE, b'verifier').is_(EXIST)
    nfs.mkdir(d, b'a').is_(EXIST)
    # Others may not shorten what they may not write.
    user = served.client(uid=1000, gid=1000)
    user.create(d, b'b', size=0).is_(ACCES, PERM)
    same(nfs.getattr(g).must('attr')['size'], 1000, 'size')
    user.create(d, b'u', uid=0).is_(PERM)


def test_exclusive(served):
    nfs = served.client()
    d = folder(served, nfs, b'excl')
    for i, v in enumerate((b'verifier', bytes(8), b'\xff' * 8,
                           b'\x80\0\0\1\0\0\0\x80')):
        name = b'e%d' % i
        f = nfs.create(d, name, EXCLUSIVE, v).must('file')
        # The reply was lost: another connection, another xid.
        same(served.client().create(d, name, EXCLUSIVE, v).must('file'), f,
             'handle')
        nfs.create(d, name, EXCLUSIVE, v[::-1] if i else b'other!!!'
                   ).is_(*((OK, EXIST) if i in (1, 2) else (EXIST,)))
        nfs.create(d, name, GUARDED).is_(EXIST)
    f = nfs.create(d, b'again', EXCLUSIVE, b'abcdefgh').must('file')
    served.kill()
    served.start()
    nfs = served.client()
    same(nfs.create(d, b'again', EXCLUSIVE, b'abcdefgh').must('file'), f,
         'handle after the server was killed')
    nfs.create(d, b'again', EXCLUSIVE, b'abcdefgx').is_(EXIST)
    # Reads leave the verifier alone.
    nfs.read(f, 0, 10).must()
    nfs.create(d, b'again', EXCLUSIVE, b'abcdefgh').must()
    # What the client does next ends it.
    nfs.setattr(f, mode=0o600, atime='now', mtime='now').must()
    nfs.create(d, b'again', EXCLUSIVE, b'abcdefgh').is_(EXIST)


# ---- renaming and linking ----

def test_rename(served):
    nfs = served.client()
    d, e = (folder(served, nfs, n) for n in (b'ren1', b'ren2'))
    a = nfs.create(d, b'a').must('file')
    b = nfs.create(e, b'b').must('file')
    nfs.write(a, 0, b'A' * 9000).must()
    nfs.write(b, 0, b'B').must()
    r = nfs.rename(d, b'a', e, b'b').must()
    for side in ('from', 'to'):
        check(r[side][0] and r[side][1], 'wcc data of', side)
        check(r[side][0]['ctime'] < r[side][1]['ctime'], 'ctime of', side)
    nfs.getattr(b).is_(STALE)
    same(nfs.lookup(e, b'b').must('file'), a, 'handle')
    same(nfs.read(a, 0, 9000).must('data'), b'A' * 9000, 'data')
    nfs.rename(e, b'b', e, b'b').must()
    same(nfs.read(a, 0, 9000).must('data'), b'A' * 9000, 'data')
    nfs.link(a, e, b'c').must()
    nfs.rename(e, b'b', e, b'c').must()
    same(nfs.getattr(a).must('attr')['nlink'], 2, 'links of one file')
    nfs.rename(e, b'none', e, b'x').is_(NOENT)
    # Directories.
    s = nfs.mkdir(d, b'sub').must('file')
    t = nfs.mkdir(s, b'below').must('file')
    nfs.rename(d, b'sub', s, b'x').is_(INVAL)
    nfs.rename(d, b'sub', t, b'x').is_(INVAL)
    nfs.rename(d, b'sub', e, b'c').is_(NOTDIR, EXIST)
    nfs.rename(e, b'c', d, b'sub').is_(ISDIR, EXIST)
    nfs.mkdir(e, b'full').must()
    nfs.create(nfs.lookup(e, b'full').must('file'), b'x').must()
    nfs.rename(d, b'sub', e, b'full').is_(NOTEMPTY, EXIST)
    old = nfs.mkdir(e, b'empty').must('file')
    nfs.rename(d, b'sub', e, b'empty').must()
    nfs.getattr(old).is_(STALE)
    same(nfs.lookup(e, b'empty').must('file'), s, 'handle')
    same(nfs.getattr(nfs.lookup(s, b'..').must('file')).must('attr')['fileid'],
         nfs.getattr(e).must('attr')['fileid'], 'parent')


def test_links(served):
    nfs = served.client()
    d = folder(served, nfs, b'links')
    f = nfs.create(d, b'f').must('file')
    nfs.write(f, 0, b'one').must()
    r = nfs.link(f, d, b'g').must()
    same(r['attr']['nlink'], 2, 'links')
    nfs.link(f, d, b'g').is_(EXIST)
    nfs.link(d, d, b'h').is_(ISDIR, PERM, NOTSUPP, INVAL)
    nfs.link(f, f, b'h').is_(NOTDIR)
    nfs.write(f, 3, b'two').must()
    nfs.remove(d, b'f').must()
    same(nfs.read(f, 0, 9).must('data'), b'onetwo', 'data of the other link')
    with open(served.path('links', 'g'), 'rb') as host:
        nfs.commit(f).must()
        same(host.read(), b'onetwo', 'data on the host')
    # A symbolic link may have two names; a hard link does not follow it.
    link = nfs.symlink(d, b's', b'g').must('file')
    nfs.link(link, d, b's2').must()
    same(nfs.readlink(nfs.lookup(d, b's2').must('file')).must('target'), b'g',
         'target')
    nfs.link(nfs.mknod(d, b'p', FIFO).must('file'), d, b'p2').must()


def test_link_limit(served):
    nfs = served.client()
    d = folder(served, nfs, b'max')
    f = nfs.create(d, b'f').must('file')
    host = served.path('max')
    made = 1
    try:
        for made in range(1, 70000):
            os.link(host + '/f', f'{host}/{made}')
    except OSError:
        pass
    if made == 69999:
        raise Skip('the host has no limit of links')
    nfs.link(f, d, b'more').is_(MLINK)
    nfs.remove(d, b'1').must()
    nfs.link(f, d, b'more').must()


# ---- listing ----

def walk(nfs, d, step, change=lambda names: None):
    """All names by calls of step(cookie); change() between calls."""
    names, cookie = [], 0
    while True:
        r = step(cookie)
        r.must()
        names += [e['name'] for e in r['entries']]
        if r['eof']:
            return names
        check(r['entries'], 'neither an entry nor the end')
        cookie = r['entries'][-1]['cookie']
        change(names)


def test_listing(served):
    nfs = served.client()
    d = folder(served, nfs, b'large')
    host = served.path('large').encode() + b'/'
    stay = {b'stay%05d-' % i + b'x' * (i % 50) for i in range(10000)}
    for n in stay:
        os.close(os.open(host + n, os.O_CREAT | os.O_WRONLY))
    rng = random.Random(4)
    gone = [b'gone%d' % i for i in range(2000)]
    for n in gone:
        os.close(os.open(host + n, os.O_CREAT | os.O_WRONLY))
    nr = [0]

    def change(_):
        # Some by the server, which syncs each, and some beside it.
        for i in range(5):
            if gone:
                name = gone.pop(rng.randrange(len(gone)))
                if i:
                    os.unlink(host + name)
                else:
                    nfs.remove(d, name).must()
            nr[0] += 1
            if i:
                os.mkdir(host + b'new%d' % nr[0])
            else:
                nfs.create(d, b'new%d' % nr[0]).must()
    for step in (lambda c: nfs.readdir(d, c, 4096),
                 lambda c: nfs.readdir(d, c, 65536),
                 lambda c: nfs.readdirplus(d, c, 1024, 8192),
                 lambda c: nfs.readdirplus(d, c, 65536, 65536)):
        names = walk(nfs, d, step, change)
        check(len(names) == len(set(names)), 'names were listed twice:',
              len(names) - len(set(names)))
        check(stay | {b'.', b'..'} <= set(names), 'names are missing:',
              len(stay - set(names)))
        check(set(names) - stay - {b'.', b'..'} <=
              {n for n in names if n[:3] in (b'gon', b'new')}, 'odd names')


def test_listing_limits(served):
    nfs = served.client()
    d = folder(served, nfs, b'few')
    for i in range(40):
        nfs.create(d, b'%02d' % i + b'n' * (i * 6)).must()
    want = set(os.listdir(served.path('few').encode())) | {b'.', b'..'}
    for count in list(range(400, 700, 12)) + [1000, 32768, 1 << 20, 0xffffffff]:
        xid = nfs.send(16, opaque(d) + u64(0) + u64(0) + u32(count))
        r = nfs.receive(xid)
        check(len(r.data) - 24 <= max(count, 4), 'a reply of', len(r.data),
              'to a count of', count)
        same(set(walk(nfs, d, lambda c: nfs.readdir(d, c, count))), want,
             'names')
    for count in range(700, 1000, 12):
        xid = nfs.send(17, opaque(d) + u64(0) + u64(0) + u32(count) +
                       u32(count))
        check(len(nfs.receive(xid).data) - 24 <= count, 'too large')
        same(set(walk(nfs, d, lambda c: nfs.readdirplus(d, c, count, count))),
             want, 'names')
    for count in (0, 1, 100, 127):
        nfs.readdir(d, 0, count).is_(TOOSMALL)
        nfs.readdirplus(d, 0, 8192, count).is_(TOOSMALL)
    # dircount is a hint of how much to look at; maxcount is the limit.
    for e in nfs.readdirplus(d, 0, 0xffffffff, 0xffffffff).must('entries'):
        if e['name'] in (b'.', b'..'):
            continue
        same(e['file'], nfs.lookup(d, e['name']).must('file'), 'handle')
        same(e['attr'], nfs.getattr(e['file']).must('attr'), 'attributes')
        same(e['attr']['fileid'], e['fileid'], 'fileid')


def test_bad_cookies(served):
    nfs = served.client()
    d = folder(served, nfs, b'cookies')
    for i in range(300):
        nfs.create(d, b'%d' % i).must()
    rng = random.Random(9)
    for cookie in [1, 2, 3, OFFSET_MAX, OFFSET_MAX + 1, MAX64] + [
            rng.getrandbits(rng.randrange(1, 65)) for _ in range(300)]:
        for reply in (nfs.readdir(d, cookie), nfs.readdirplus(d, cookie),
                      nfs.readdir(d, cookie, verifier=MAX64)):
            reply.is_(OK, BAD_COOKIE)
    nfs.readdir(d, MAX64).is_(BAD_COOKIE)
    # A listing whose directory is removed meanwhile.
    e = nfs.mkdir(d, b'e').must('file')
    cookie = nfs.readdir(e).must('entries')[0]['cookie']
    nfs.rmdir(d, b'e').must()
    nfs.readdir(e, cookie).is_(STALE)
    # The root's parent is the root: nothing outside is shown.
    for e in nfs.readdirplus(served.root).must('entries'):
        if e['name'] == b'..':
            same(e['fileid'], nfs.getattr(served.root).must('attr')['fileid'],
                 'fileid of the root\'s parent')


# ---- resending ----

def test_resent(served):
    nfs = served.client()
    d = folder(served, nfs, b'dup')
    f = nfs.create(d, b'f').must('file')
    calls = [lambda c, x: c.create(d, b'guarded', GUARDED, xid=x),
             lambda c, x: c.mkdir(d, b'dir', xid=x),
             lambda c, x: c.link(f, d, b'link', xid=x),
             lambda c, x: c.rename(d, b'link', d, b'moved', xid=x),
             lambda c, x: c.remove(d, b'moved', xid=x),
             lambda c, x: c.rmdir(d, b'dir', xid=x)]
    for i, call in enumerate(calls):
        x = 0x70000000 + random.getrandbits(20) * 16 + i
        first = call(nfs, x)
        first.must()
        # On the same connection, on a new one, from another port.
        for c in (nfs, served.client(), served.client(reserved=False)):
            same(call(c, x), first, 'a resent call')
    # An old SETATTR and WRITE that come again do not undo newer ones.
    nfs.setattr(f, size=3, xid=0x60000001).must()
    nfs.write(f, 0, b'newer', FILE_SYNC).must()
    nfs.setattr(f, size=3, xid=0x60000001).must()
    nfs.write(f, 0, b'older', FILE_SYNC, xid=0x60000002).must()
    nfs.write(f, 0, b'newer', FILE_SYNC).must()
    again = served.client()
    again.write(f, 0, b'older', FILE_SYNC, xid=0x60000002).must()
    same(nfs.read(f, 0, 9).must('data'), b'newer', 'data')
    # The same xid with other arguments is another call.
    nfs.write(f, 0, b'third', FILE_SYNC, xid=0x60000002).must()
    same(nfs.read(f, 0, 9).must('data'), b'third', 'data')


# ---- moved away on the host ----

def test_moved_out(served):
    nfs = served.client()
    d = folder(served, nfs, b'leave')
    sub = nfs.mkdir(d, b'sub').must('file')
    outside = os.path.join(os.path.dirname(served.dir), 'outside')
    os.rename(served.path('leave', 'sub'), outside)
    try:
        nfs.lookup(sub, b'..').is_(STALE, ACCES)
    finally:
        os.rename(outside, served.path('leave', 'sub'))
    nfs.lookup(sub, b'..').must()


need_root()
with Served(sys.argv[1], export='rw,no_root_squash') as the_server:
    STATUS = run(globals(), the_server)
sys.exit(1 if STATUS else 0)
