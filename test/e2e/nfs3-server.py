#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Goal: what exports, limits of descriptors, the reply cache and a directory's
lock promise.
Method: servers of their own with other exports, other limits, or calls that
hang (test/lib/failio.c); raw calls.

usage: nfs3-server.py TAILRACE FAILIO [TEST]...
"""
import os
import resource
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))
# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from nfs3 import *  # noqa: E402,F403

TAILRACE, FAILIO = (os.path.realpath(a) for a in sys.argv[1:3])


# ---- the directory's lock ----

def waiting(served, *options):
    """Another server of the directory, which has told that it waits."""
    other = subprocess.Popen(
        [TAILRACE, 'serve', served.dir, '--state', served.work + '/state',
         '--cache', '64M', '-p', '0', '--mount-port', '0', *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = other.stderr.readline()
    check('waiting' in line and served.dir in line, 'told', line)
    return other


def test_lock_waited_for():
    with Served(TAILRACE) as served:
        other = waiting(served)
        served.stop()
        check(any(line.startswith('ready:') for line in other.stdout),
              'no start after the other\'s end')
        other.send_signal(signal.SIGTERM)
        out, err = other.communicate()
        same((other.returncode, out, err), (0, '', ''), 'the end')


def test_lock_wait_ended():
    with Served(TAILRACE) as served:
        for sig in (signal.SIGTERM, signal.SIGINT):
            other = waiting(served)
            other.send_signal(sig)
            # Less than is left of the wait.
            out, err = other.communicate(timeout=5)
            same((other.returncode, out, err), (0, '', ''), 'the end')
        # A daemon's child ends with its parent: nobody has the pipe then.
        other = waiting(served, '--daemon')
        other.send_signal(signal.SIGTERM)
        out, err = other.communicate(timeout=5)
        same((other.returncode, out, err), (-signal.SIGTERM, '', ''),
             'the end of a daemon')


# ---- exports ----

def test_root_squash():
    with Served(TAILRACE) as served:
        os.chmod(served.dir, 0o777)
        os.mkdir(served.path('private'), 0o700)
        with open(served.path('hosts'), 'wb') as f:
            f.write(b'secret')
        os.chmod(served.path('hosts'), 0o600)
        nfs = served.client()
        f = nfs.create(served.root, b'f', mode=0o6755).must('file')
        a = nfs.getattr(f).must('attr')
        same((a['uid'], a['gid']), (65534, 65534), 'owner')
        nfs.setattr(f, uid=0).is_(PERM)
        nfs.create(served.root, b'g', uid=0).is_(PERM)
        nfs.mknod(served.root, b'dev', CHR, 1, 3).is_(PERM)
        d = nfs.lookup(served.root, b'private').must('file')
        nfs.create(d, b'x').is_(ACCES)
        nfs.readdir(d).is_(ACCES)
        same(nfs.access(d).must('access'), 0, 'ACCESS')
        secret = nfs.lookup(served.root, b'hosts').must('file')
        nfs.read(secret, 0, 10).is_(ACCES)
        nfs.write(secret, 0, b'x').is_(ACCES)
        nfs.setattr(secret, size=0).is_(ACCES)
        # Root's group and supplementary groups are nobody's either.
        os.chown(served.path('hosts'), 7, 0)
        os.chmod(served.path('hosts'), 0o660)
        for who in (served.client(uid=1000, gid=0),
                    served.client(uid=1000, gid=1000, gids=(0,))):
            who.read(secret, 0, 10).is_(ACCES)


def test_all_squash():
    with Served(TAILRACE,
                export='rw,all_squash,anonuid=1234,anongid=99') as served:
        os.chown(served.dir, 1234, 99)
        nfs = served.client(uid=1000, gid=1000)
        f = nfs.create(served.root, b'f').must('file')
        a = nfs.getattr(f).must('attr')
        same((a['uid'], a['gid']), (1234, 99), 'owner')


def test_read_only():
    with Served(TAILRACE, export='ro,no_root_squash') as served:
        with open(served.path('f'), 'wb') as f:
            f.write(b'data')
        os.mkdir(served.path('d'))
        nfs, root = served.client(), served.root
        f = nfs.lookup(root, b'f').must('file')
        d = nfs.lookup(root, b'd').must('file')
        same(nfs.read(f, 0, 9).must('data'), b'data', 'data')
        for r in (nfs.write(f, 0, b'x'), nfs.setattr(f, mode=0),
                  nfs.setattr(f, size=0), nfs.create(root, b'x'),
                  nfs.create(root, b'f', size=0), nfs.mkdir(root, b'x'),
                  nfs.create(root, b'x', EXCLUSIVE, bytes(8)),
                  nfs.symlink(root, b'x', b'y'), nfs.mknod(root, b'x', FIFO),
                  nfs.remove(root, b'f'), nfs.rmdir(root, b'd'),
                  nfs.rename(root, b'f', d, b'f'), nfs.link(f, d, b'f')):
            r.is_(ROFS)
        same(nfs.access(f).must('access') & 0x1c, 0, 'rights to change')
        same(sorted(os.listdir(served.dir)), ['d', 'f'], 'names')


def test_other_export():
    """A handle is good in its export only; names do not go between two."""
    with Served(TAILRACE, export='rw,no_root_squash') as served:
        other = os.path.join(served.work, 'other')
        os.mkdir(other)
        with open(served.exports, 'a', encoding='ascii') as f:
            f.write(f'{other} 127.0.0.9(rw,no_root_squash,insecure) '
                    '127.0.0.8(ro,insecure)\n')
        served.stop()
        served.start()
        nfs = served.client()
        same(nfs.mount(other.encode())['status'], ACCES, 'MNT')
        nine, eight = (served.client(address=f'127.0.0.{n}') for n in (9, 8))
        root2 = nine.mount(other.encode()).must('file')
        f = nine.create(root2, b'f').must('file')
        nine.write(f, 0, b'data').must()
        nfs.getattr(f).is_(ACCES, PERM, STALE)
        nfs.read(f, 0, 4).is_(ACCES, PERM, STALE)
        nfs.write(f, 0, b'x').is_(ACCES, PERM, STALE)
        eight.read(f, 0, 4).is_(OK, ACCES)
        eight.write(f, 0, b'x').is_(ROFS)
        nine.rename(root2, b'f', served.root, b'f').is_(XDEV)
        nine.link(f, served.root, b'f').is_(XDEV)
        same(nine.read(f, 0, 9).must('data'), b'data', 'data')


def test_secure_ports():
    with Served(TAILRACE) as served:
        served.stop()
        with open(served.exports, 'w', encoding='ascii') as f:
            f.write(f'{served.dir} 127.0.0.1(rw,no_root_squash)\n')
        served.start()
        high, low = served.client(reserved=False), served.client()
        high.getattr(served.root).is_(PERM, ACCES)
        same(high.mount(served.dir.encode())['status'] != OK, True, 'MNT')
        low.getattr(served.root).must()
        served.client(address='127.0.0.5').getattr(served.root
                                                   ).is_(ACCES, PERM)


def test_mount_paths():
    with Served(TAILRACE, export='rw,no_root_squash') as served:
        os.makedirs(served.path('sub', 'deep'))
        os.symlink('sub', served.path('link'))
        with open(served.path('file'), 'wb'):
            pass
        nfs, path = served.client(), served.dir.encode()
        sub = nfs.mount(path + b'/sub').must('file')
        same(nfs.lookup(served.root, b'sub').must('file'), sub, 'handle')
        for good in (b'/sub/deep', b'/sub//deep/', b'/', b'//'):
            nfs.mount(path + good).must()
        for bad in (b'/..', b'/sub/../..', b'/link', b'/none', b'/sub/x',
                    b'/file', b'/link/deep', b'x', b'\0', b'/sub\0'):
            check(nfs.mount(path + bad)['status'] != OK, 'mounted', bad)
        for bad in (b'', b'/', b'/etc', b'.', os.path.dirname(path),
                    b'/' + b'x' * 1000):
            r = nfs.mount(bad)
            # Of one export alone, / is that export.
            check(r['status'] != OK or r['file'] == served.root, 'mounted',
                  bad)


def test_async():
    """An async export answers what was asked for, without waiting."""
    io = FailIo(FAILIO)
    with Served(TAILRACE, '--io', 'threads', env=io.env,
                export='rw,no_root_squash,async') as served:
        nfs = served.client()
        f = nfs.create(served.root, b'f').must('file')
        nfs.write(f, 0, b'x').must()
        for kind in ('write', 'fsync', 'fdatasync'):
            io.set(kind, error=FailIo.WAIT)
        nfs.sock.settimeout(10)
        for stable in range(3):
            r = nfs.write(f, 0, b'y' * 10000, stable).must()
            same(r['committed'], stable, 'committed')
        nfs.commit(f).must()
        nfs.create(served.root, b'g').must()
        nfs.rename(served.root, b'g', served.root, b'h').must()
        io.clear()


# ---- limits ----

def test_descriptors():
    """More files than descriptors: requests wait, nothing is lost."""
    with Served(TAILRACE, export='rw,no_root_squash') as served:
        served.stop()
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
        try:
            served.start()
        finally:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
            except ValueError:
                pass
        resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE,
                         (300, 300))
        nfs = served.client()
        files, verifiers = [], set()
        for i in range(400):
            f = nfs.create(served.root, b'f%d' % i).must('file')
            verifiers.add(nfs.write(f, 0, b'%d' % i * 100).must('verifier'))
            files.append(f)
            check(served.fd_count() <= 300, 'too many descriptors')
        for i, f in enumerate(files):
            same(nfs.read(f, 0, 1000).must('data'), b'%d' % i * 100, 'data')
            verifiers.add(nfs.commit(f).must('verifier'))
        same(len(verifiers), 1, 'verifiers')
        for i in range(400):
            with open(served.path(f'f{i}'), 'rb') as host:
                same(host.read(), b'%d' % i * 100, 'the host\'s data')


# ---- the reply cache ----

def test_removed_on_host():
    """A file that the host removes is closed long before it is old."""
    with Served(TAILRACE, export='rw,no_root_squash') as served:
        nfs = served.client()
        f = nfs.create(served.root, b'f').must('file')
        nfs.write(f, 0, bytes(5000), FILE_SYNC).must()
        fds = f'/proc/{served.process.pid}/fd'

        def removed():
            links = (os.readlink(f'{fds}/{n}') for n in os.listdir(fds)
                     if os.path.islink(f'{fds}/{n}'))
            return [link for link in links if link.endswith('/f (deleted)')]
        os.unlink(served.path('f'))
        check(removed(), 'the file is not open')
        # The test's time is shorter than edge_max_age, which it waits for.
        end = time.monotonic() + 20
        while removed():
            check(time.monotonic() < end, 'the file is still open')
            time.sleep(0.05)
        same(nfs.getattr(f)['status'], STALE, 'its handle')


def test_running_copy():
    """A copy of a call that still runs is not run, and not answered twice."""
    io = FailIo(FAILIO)
    with Served(TAILRACE, '--io', 'threads', env=io.env,
                export='rw,no_root_squash') as served:
        nfs, again = served.client(), served.client()
        f = nfs.create(served.root, b'f').must('file')
        args = nfs.write_args(f, 0, b'x' * 9000, FILE_SYNC)
        io.set('write', error=FailIo.WAIT)
        xid = nfs.send(7, args)
        until(lambda: io.waiting('write'), 'the write')
        for c in (nfs, again, again):
            c.send(7, args, xid=xid)
        # The copies were looked at when these are answered.
        for c in (nfs, again):
            c.getattr(served.root).must()
        io.clear()
        same(nfs.receive(xid).take('I'), OK, 'status')
        for c in (nfs, again):
            c.getattr(served.root).must()
            same(c.replies, {}, 'replies to copies')
        # Now it is answered, from the cache.
        nfs.write(f, 0, b'y' * 9000, FILE_SYNC).must()
        same(again.call(7, args, xid=xid).take('I'), OK, 'status')
        same(nfs.read(f, 0, 1).must('data'), b'y', 'data')
        # A connection that ends does not end its calls.
        io.set('fsync', error=FailIo.WAIT)
        args = dirop(served.root, b'made') + u32(GUARDED) + sattr(mode=0o600)
        xid = again.send(8, args)
        until(lambda: io.waiting('fsync'), 'the create')
        again.close()
        io.clear()
        third = served.client()

        def answered():
            third.send(8, args, xid=xid)
            third.getattr(served.root).must()
            return xid in third.replies
        until(answered, 'the answer to the call of a closed connection')
        same(third.receive(xid).take('I'), OK, 'status')


need_root()
del sys.argv[2:3]
STATUS = run(globals())
sys.exit(1 if STATUS else 0)
