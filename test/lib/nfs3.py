# SPDX-License-Identifier: GPL-2.0-or-later
"""A small NFSv3 client and the server it talks to, for tests.

Goal: every call of RFC 1813 as one line of a test, with any argument, also
wrong ones, and everything that the reply says. The client hides nothing: no
caches, no resending, one connection.

    with Served(sys.argv[1]) as served:
        nfs = served.client()
        f = nfs.create(served.root, b'name').must('file')

Replies are dicts with 'status' and what the procedure returns; attributes are
dicts too, wcc data a pair (before, after). A test is a function whose name
starts with test_; run(globals()) calls them with a server each module shares.
"""
import atexit
import mmap
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

OK, PERM, NOENT, IO, NXIO, ACCES, EXIST, XDEV = 0, 1, 2, 5, 6, 13, 17, 18
NODEV, NOTDIR, ISDIR, INVAL, FBIG, NOSPC, ROFS = 19, 20, 21, 22, 27, 28, 30
MLINK, NAMETOOLONG, NOTEMPTY, DQUOT, STALE = 31, 63, 66, 69, 70
BADHANDLE, NOT_SYNC, BAD_COOKIE, NOTSUPP, TOOSMALL = (
    10001, 10002, 10003, 10004, 10005)
SERVERFAULT, BADTYPE, JUKEBOX = 10006, 10007, 10008

REG, DIR, BLK, CHR, LNK, SOCK, FIFO = range(1, 8)
UNCHECKED, GUARDED, EXCLUSIVE = range(3)
UNSTABLE, DATA_SYNC, FILE_SYNC = range(3)
MAX64 = (1 << 64) - 1
OFFSET_MAX = (1 << 63) - 1

_xid = [random.getrandbits(31)]


class Failed(Exception):
    """What a test found wrong."""


class Skip(Exception):
    """A tool is missing."""


def check(condition, *what):
    """Fails the test unless condition holds."""
    if not condition:
        raise Failed(' '.join(str(w) for w in what))


def same(got, want, *what):
    """Fails the test unless got is want."""
    if got != want:
        raise Failed(' '.join(str(w) for w in what) +
                     f': is {got!r:.200}, not {want!r:.200}')


# ---- the wire ----

def u32(v):
    return struct.pack('>I', v)


def u64(v):
    return struct.pack('>Q', v)


def opaque(data):
    return u32(len(data)) + data + bytes(-len(data) % 4)


def sattr(mode=None, uid=None, gid=None, size=None, atime=None, mtime=None):
    """sattr3; times are 'now' or (seconds, nanoseconds)."""
    out = b''
    for v in (mode, uid, gid):
        out += u32(0) if v is None else u32(1) + u32(v)
    out += u32(0) if size is None else u32(1) + u64(size)
    for v in (atime, mtime):
        if v is None:
            out += u32(0)
        elif v == 'now':
            out += u32(1)
        else:
            out += u32(2) + struct.pack('>II', *v)
    return out


class Reader:
    """Takes a reply apart."""

    def __init__(self, data):
        self.data = data
        self.pos = 0

    def take(self, form):
        out = struct.unpack_from('>' + form, self.data, self.pos)
        self.pos += struct.calcsize('>' + form)
        return out if len(out) > 1 else out[0]

    def opaque(self):
        n = self.take('I')
        out = bytes(self.data[self.pos:self.pos + n])
        check(len(out) == n, 'a counted field passes the end')
        self.pos += n + -n % 4
        return out

    def attr(self):
        names = ('type mode nlink uid gid size used major minor fsid fileid '
                 'atime_s atime_n mtime_s mtime_n ctime_s ctime_n').split()
        out = dict(zip(names, self.take('IIIIIQQIIQQIIIIII')))
        for t in ('atime', 'mtime', 'ctime'):
            out[t] = (out.pop(t + '_s'), out.pop(t + '_n'))
        return out

    def post(self):
        return self.attr() if self.take('I') else None

    def wcc(self):
        before = None
        if self.take('I'):
            v = self.take('QIIII')
            before = {'size': v[0], 'mtime': v[1:3], 'ctime': v[3:5]}
        return before, self.post()

    def handle(self):
        return self.opaque() if self.take('I') else None

    def end(self):
        same(self.pos, len(self.data), 'length of the reply')


class Reply(dict):
    """A reply; must() demands success and returns a field."""

    def must(self, field=None, status=OK):
        same(self['status'], status, 'status')
        return self[field] if field else self

    def is_(self, *statuses):
        if self['status'] not in statuses:
            raise Failed(f"status is {self['status']}, not {statuses}")
        return self


class Rpc:
    """One connection. Calls may be sent without waiting and in any order."""

    def __init__(self, port, uid=0, gid=0, gids=(), reserved=True,
                 address='127.0.0.1'):
        self.sock = socket.socket()
        self.sock.settimeout(60)
        if reserved and not os.geteuid():
            self._bind(address)
        else:
            self.sock.bind((address, 0))
        self.sock.connect(('127.0.0.1', port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = (u32(1) + opaque(b'test') + u32(uid) + u32(gid) +
                u32(len(gids)) + b''.join(map(u32, gids)))
        self.cred = u32(1) + opaque(body)
        self.replies = {}

    def _bind(self, address):
        for port in random.sample(range(600, 1023), 400):
            try:
                self.sock.bind((address, port))
                return
            except OSError:
                continue
        raise Failed('no reserved port is free')

    def message(self, proc, args, prog=100003, xid=None):
        if xid is None:
            _xid[0] = xid = (_xid[0] + 1) & 0xffffffff
        return xid, (struct.pack('>IIIIII', xid, 0, 2, prog, 3, proc) +
                     self.cred + u32(0) + u32(0) + args)

    def send(self, proc, args, prog=100003, xid=None):
        xid, m = self.message(proc, args, prog, xid)
        self.sock.sendall(u32(len(m) | 1 << 31) + m)
        return xid

    def _exactly(self, n):
        out = bytearray()
        while len(out) < n:
            got = self.sock.recv(n - len(out))
            if not got:
                raise ConnectionResetError('the server closed')
            out += got
        return out

    def record(self):
        out, last = bytearray(), 0
        while not last:
            mark, = struct.unpack('>I', self._exactly(4))
            last = mark >> 31
            out += self._exactly(mark & 0x7fffffff)
        return out

    def receive(self, xid):
        """The results of a call: Reader, or None for one not accepted."""
        while xid not in self.replies:
            record = self.record()
            self.replies[struct.unpack_from('>I', record)[0]] = record
        r = Reader(self.replies.pop(xid))
        _, kind, accepted = r.take('III')
        same(kind, 1, 'message type')
        if accepted:
            return None
        r.take('I')
        r.opaque()
        return r if r.take('I') == 0 else None

    def call(self, proc, args, prog=100003, xid=None):
        return self.receive(self.send(proc, args, prog, xid))

    def close(self):
        self.sock.close()


# ---- the protocol ----

def dirop(d, name):
    return opaque(d) + opaque(name)


class Nfs(Rpc):
    """NFSv3. xid= sends a call again as the same."""

    def result(self, proc, args, good, bad, xid=None):
        r = self.call(proc, args, xid=xid)
        if r is None:
            return Reply(status='refused')
        out = Reply(status=r.take('I'))
        for name, how in good if not out['status'] else bad:
            out[name] = r.take(how) if isinstance(how, str) else how(r)
        r.end()
        return out

    def mount(self, path):
        r = self.call(1, opaque(path), prog=100005)
        status = r.take('I')
        return Reply(status=status, file=None if status else r.opaque())

    def getattr(self, f):
        return self.result(1, opaque(f), [('attr', Reader.attr)], [])

    def setattr(self, f, guard=None, xid=None, **what):
        g = u32(0) if guard is None else u32(1) + struct.pack('>II', *guard)
        wcc = [('wcc', Reader.wcc)]
        return self.result(2, opaque(f) + sattr(**what) + g, wcc, wcc, xid)

    def lookup(self, d, name):
        return self.result(3, dirop(d, name),
                           [('file', Reader.opaque), ('attr', Reader.post),
                            ('dir', Reader.post)], [('dir', Reader.post)])

    def access(self, f, bits=0x3f):
        return self.result(4, opaque(f) + u32(bits),
                           [('attr', Reader.post), ('access', 'I')],
                           [('attr', Reader.post)])

    def readlink(self, f):
        return self.result(5, opaque(f), [('attr', Reader.post),
                                          ('target', Reader.opaque)],
                           [('attr', Reader.post)])

    def read(self, f, off, count):
        return self.result(6, opaque(f) + u64(off) + u32(count),
                           [('attr', Reader.post), ('count', 'I'),
                            ('eof', 'I'), ('data', Reader.opaque)],
                           [('attr', Reader.post)])

    def write_args(self, f, off, data, stable=UNSTABLE, count=None):
        return (opaque(f) + u64(off) +
                u32(len(data) if count is None else count) + u32(stable) +
                opaque(data))

    WRITE_GOOD = [('wcc', Reader.wcc), ('count', 'I'), ('committed', 'I'),
                  ('verifier', 'Q')]

    def write(self, f, off, data, stable=UNSTABLE, count=None, xid=None):
        return self.result(7, self.write_args(f, off, data, stable, count),
                           self.WRITE_GOOD, [('wcc', Reader.wcc)], xid)

    MAKE = ([('file', Reader.handle), ('attr', Reader.post),
             ('wcc', Reader.wcc)], [('wcc', Reader.wcc)])

    def create(self, d, name, how=UNCHECKED, verifier=None, xid=None, **what):
        if how == EXCLUSIVE:
            tail = u32(how) + verifier
        else:
            what.setdefault('mode', 0o644)
            tail = u32(how) + sattr(**what)
        return self.result(8, dirop(d, name) + tail, *self.MAKE, xid)

    def mkdir(self, d, name, xid=None, **what):
        what.setdefault('mode', 0o755)
        return self.result(9, dirop(d, name) + sattr(**what), *self.MAKE, xid)

    def symlink(self, d, name, target, **what):
        return self.result(10, dirop(d, name) + sattr(**what) +
                           opaque(target), *self.MAKE)

    def mknod(self, d, name, kind, major=0, minor=0, **what):
        what.setdefault('mode', 0o644)
        tail = u32(kind)
        if kind in (CHR, BLK, SOCK, FIFO):
            tail += sattr(**what)
        if kind in (CHR, BLK):
            tail += u32(major) + u32(minor)
        return self.result(11, dirop(d, name) + tail, *self.MAKE)

    def remove(self, d, name, xid=None):
        wcc = [('wcc', Reader.wcc)]
        return self.result(12, dirop(d, name), wcc, wcc, xid)

    def rmdir(self, d, name, xid=None):
        wcc = [('wcc', Reader.wcc)]
        return self.result(13, dirop(d, name), wcc, wcc, xid)

    def rename(self, d, name, d2, name2, xid=None):
        wcc = [('from', Reader.wcc), ('to', Reader.wcc)]
        return self.result(14, dirop(d, name) + dirop(d2, name2), wcc, wcc,
                           xid)

    def link(self, f, d, name, xid=None):
        wcc = [('attr', Reader.post), ('wcc', Reader.wcc)]
        return self.result(15, opaque(f) + dirop(d, name), wcc, wcc, xid)

    @staticmethod
    def _entries(plus):
        def read(r):
            out = []
            while r.take('I'):
                e = {'fileid': r.take('Q'), 'name': r.opaque(),
                     'cookie': r.take('Q')}
                if plus:
                    e['attr'], e['file'] = r.post(), r.handle()
                out.append(e)
            return out
        return read

    def readdir(self, d, cookie=0, count=8192, verifier=0):
        return self.result(16, opaque(d) + u64(cookie) + u64(verifier) +
                           u32(count),
                           [('attr', Reader.post), ('verifier', 'Q'),
                            ('entries', self._entries(False)), ('eof', 'I')],
                           [('attr', Reader.post)])

    def readdirplus(self, d, cookie=0, dircount=8192, maxcount=32768,
                    verifier=0):
        return self.result(17, opaque(d) + u64(cookie) + u64(verifier) +
                           u32(dircount) + u32(maxcount),
                           [('attr', Reader.post), ('verifier', 'Q'),
                            ('entries', self._entries(True)), ('eof', 'I')],
                           [('attr', Reader.post)])

    def fsinfo(self, f):
        return self.result(19, opaque(f),
                           [('attr', Reader.post), ('facts', '7IQIII')],
                           [('attr', Reader.post)])

    def commit(self, f, off=0, count=0):
        return self.result(21, opaque(f) + u64(off) + u32(count),
                           [('wcc', Reader.wcc), ('verifier', 'Q')],
                           [('wcc', Reader.wcc)])


# ---- the server ----

class Served:
    """A directory of its own, served on ports of the kernel's choice."""

    def __init__(self, tailrace, *options, directory=None, export='rw',
                 cache='64M', env=None, user=None):
        self.tailrace = tailrace
        self.options = list(options)
        self.cache = cache
        self.env = dict(os.environ, **(env or {}))
        # Of a server with sanitizers: freed memory goes, preloading is meant.
        self.env['ASAN_OPTIONS'] = (os.environ.get('ASAN_OPTIONS', '') +
                                    ':quarantine_size_mb=1'
                                    ':verify_asan_link_order=0')
        self.work = tempfile.mkdtemp(prefix='tailrace-e2e.', dir='/var/tmp')
        os.chmod(self.work, 0o755)
        self.dir = directory or os.path.join(self.work, 'data')
        os.makedirs(self.dir, exist_ok=True)
        # Not root: handles are of the server's own making then.
        self.user = user
        if user:
            for path in (self.work, self.dir):
                os.chown(path, user, user)
        self.exports = os.path.join(self.work, 'exports')
        with open(self.exports, 'w', encoding='ascii') as f:
            f.write(f'{self.dir} 127.0.0.0/8({export},insecure)\n')
        self.port = self.mount_port = 0
        self.process = None
        self.stderr = None  # the test's own
        self.clients = []
        self.root = None
        atexit.register(self.fini)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *rest):
        if kind:
            self.kill()
        else:
            self.stop()
        self.fini()

    def start(self):
        # Sockets of the test would keep the port of a server that is killed.
        self.process = subprocess.Popen(
            [self.tailrace, 'serve', '--exports', self.exports, '--listen',
             '127.0.0.1', '--state', os.path.join(self.work, 'state'),
             '--cache', self.cache, '-p', str(self.port), '--mount-port',
             str(self.mount_port)] + self.options,
            stdout=subprocess.PIPE, stderr=self.stderr, text=True,
            env=self.env, user=self.user, group=self.user,
            extra_groups=[] if self.user else None)
        for line in self.process.stdout:
            if line.startswith('ready:'):
                words = line.split()
                self.port = int(words[2].rsplit(':', 1)[1])
                self.mount_port = int(words[4])
                break
        else:
            raise Failed(f'no start: status {self.process.wait()}')
        if self.root is None:
            nfs = self.client()
            self.root = nfs.mount(self.dir.encode()).must('file')

    def client(self, **ids):
        """A new connection."""
        nfs = Nfs(self.port, **ids)
        self.clients.append(nfs)
        return nfs

    def _ended(self):
        for nfs in self.clients:
            nfs.close()
        self.clients = []
        self.process.stdout.close()
        self.process = None

    def stop(self, *statuses):
        """The orderly end; fails the test unless the status is one (0)."""
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            status = self.process.wait(60)
            self._ended()
            check(status in (statuses or (0,)), 'exit status', status)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self._ended()

    def rss(self):
        """Resident memory of the server in bytes."""
        with open(f'/proc/{self.process.pid}/status', encoding='ascii') as f:
            for line in f:
                if line.startswith('VmRSS:'):
                    return int(line.split()[1]) << 10
        raise Failed('the server is gone')

    def fd_count(self):
        return len(os.listdir(f'/proc/{self.process.pid}/fd'))

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def fini(self):
        self.kill()
        shutil.rmtree(self.work, ignore_errors=True)


class FailIo:
    """Device calls of a server that fail: test/lib/failio.c, preloaded."""
    KINDS = ('write', 'fsync', 'fdatasync', 'truncate', 'fallocate')
    WAIT = -1

    def __init__(self, library):
        fd, self.path = tempfile.mkstemp(prefix='tailrace-failio.')
        os.truncate(fd, 4096)
        self.page = mmap.mmap(fd, 4096)
        os.close(fd)
        self.env = {'LD_PRELOAD': library, 'TAILRACE_FAILIO': self.path}
        atexit.register(os.unlink, self.path)

    def _words(self, kind):
        return 20 * self.KINDS.index(kind)

    def set(self, kind, nth=1, lasting=True, error=5):
        """The nth call from now fails, and all later ones if lasting."""
        struct.pack_into('=iii', self.page, self._words(kind) + 8, lasting,
                         error, 0)
        struct.pack_into('=ii', self.page, self._words(kind), 0, nth)

    def clear(self):
        for kind in self.KINDS:
            struct.pack_into('=i', self.page, self._words(kind) + 4, 0)

    def _word(self, kind, at):
        return struct.unpack_from('=i', self.page, self._words(kind) + at)[0]

    def seen(self, kind):
        return self._word(kind, 0)

    def waiting(self, kind):
        return self._word(kind, 16)


def until(condition, what, limit=30):
    """Waits for a condition that nobody announces."""
    end = time.monotonic() + limit
    while not condition():
        check(time.monotonic() < end, 'waited too long for', what)
        time.sleep(0.002)


def small_device(tool, fs, size):
    """A device made by tools/device: (where it is mounted, its image, end())."""
    if os.geteuid():
        raise Skip('not root')
    if not shutil.which('mkfs.' + fs):
        raise Skip(f'no mkfs.{fs}')
    name = f'nfs3-{fs}-{os.getpid()}'
    place = ['--name', name, '--dir', '/var/tmp/tailrace-e2e-device']
    up = subprocess.run([tool, 'up', '--fs', fs, '--size', size] + place,
                        capture_output=True, text=True, check=False)
    if up.returncode:
        raise Skip('no device: ' + up.stderr.strip())
    words = dict(w.split('=', 1) for w in up.stdout.split())

    def down():
        return not subprocess.run([tool, 'down', '--purge'] + place,
                                  capture_output=True,
                                  check=False).returncode

    def end():
        # The kernel lets go of a ring's files after the process has ended.
        until(down, 'the device to be let go')
        try:
            os.rmdir(place[3])
        except OSError:
            pass
    os.chmod(words['MNT'], 0o755)
    return words['MNT'], words['IMG'], end


def need_root():
    """Ends the test as skipped where the server cannot take on ids."""
    if os.geteuid():
        print('not root')
        sys.exit(77)


def run(names, *args):
    """Calls all test_ functions; ends the process with their result."""
    only = sys.argv[2:]
    failed = 0
    for name, function in list(names.items()):
        if not name.startswith('test_') or only and name not in only:
            continue
        start = time.monotonic()
        try:
            function(*args)
            word = 'ok'
        except Skip as e:
            word = f'skipped: {e}'
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
            word = 'FAILED'
            failed += 1
        print(f'{name}: {word} ({time.monotonic() - start:.1f} s)',
              flush=True)
    return failed
