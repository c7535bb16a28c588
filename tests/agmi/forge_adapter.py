"""forge as a target of the suite agent-memory-integrity.

    pip install agent-memory-integrity
    PYTHONPATH=tests/agmi FORGE_BIN=target/release/forge \
        agmi-check --adapter forge_adapter:ForgeAdapter

A record is a checkpoint, and its raw form the frame of the journal that holds it (docs/format.md). Edits are those of
somebody who knows the format and may write every file of the store, but has no key: lengths, positions, links,
checksums and the mark of what is durable are made right again after every edit. What forge answers is the exit code of
a command that reads: 0, or a refusal.
"""

import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from agmi.adapters.base import MemoryAdapter, Record

HEADER = 96
SEAL = slice(68, 96)
CONTEXTS = {"first": 0, "other": 1}


# --- blake3, as far as frames need it -----------------------------------------------------------

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
QUARTERS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
START, END, PARENT, ROOT = 1, 2, 4, 8
MASK = 0xFFFFFFFF


def _turn(word, by):
    return ((word >> by) | (word << (32 - by))) & MASK


def _compress(chain, block, counter, length, flags):
    state = list(chain) + list(IV[:4]) + [counter & MASK, counter >> 32, length, flags]
    words = list(struct.unpack("<16I", block.ljust(64, b"\0")))
    for step in range(7):
        for place, (a, b, c, d) in enumerate(QUARTERS):
            for word, (first, second) in zip(words[2 * place:2 * place + 2], ((16, 12), (8, 7))):
                state[a] = (state[a] + state[b] + word) & MASK
                state[d] = _turn(state[d] ^ state[a], first)
                state[c] = (state[c] + state[d]) & MASK
                state[b] = _turn(state[b] ^ state[c], second)
        if step < 6:
            words = [words[place] for place in ORDER]
    return [state[i] ^ state[i + 8] for i in range(8)]


def _tree(data, counter, root):
    if len(data) <= 1024:
        chain = IV
        blocks = [data[at:at + 64] for at in range(0, len(data), 64)] or [b""]
        for place, block in enumerate(blocks):
            last = place == len(blocks) - 1
            flags = (START if place == 0 else 0) | ((END | root) if last else 0)
            chain = _compress(chain, block, counter, len(block), flags)
        return chain
    left = 1024
    while left * 2 < len(data):
        left *= 2
    both = _tree(data[:left], counter, 0) + _tree(data[left:], counter + left // 1024, 0)
    return _compress(IV, struct.pack("<16I", *both), 0, 64, PARENT | root)


def blake3(data):
    return struct.pack("<8I", *_tree(data, 0, ROOT))


# --- frames -------------------------------------------------------------------------------------


class Frame:
    def __init__(self, header, payload):
        self.header, self.payload = bytearray(header), payload

    def _text(self):
        """The position of the message: its prefix, its first byte, and the byte after it."""
        at = self.payload.index(b"\xa7message") + 8
        kind = self.payload[at]
        if 0xA0 <= kind <= 0xBF:
            return at, at + 1, at + 1 + (kind & 0x1F)
        assert kind == 0xD9, "a message that is longer than any here"
        return at, at + 2, at + 2 + self.payload[at + 1]

    @property
    def message(self):
        _, first, behind = self._text()
        return self.payload[first:behind].decode()

    @message.setter
    def message(self, text):
        at, _, behind = self._text()
        text = text.encode()
        assert len(text) < 32
        self.payload = self.payload[:at] + bytes([0xA0 | len(text)]) + text + self.payload[behind:]

    @property
    def session(self):
        return self.payload[self.payload.index(b"\xa7session") + 8]

    def _time(self):
        begin = self.payload.index(b"\xaacheckpoint")
        at = self.payload.index(b"\xa4time", begin) + 5
        assert self.payload[at] in (0xCF, 0xD3)
        return at + 1

    @property
    def time(self):
        return struct.unpack_from(">q", self.payload, self._time())[0]

    @time.setter
    def time(self, micros):
        at = self._time()
        self.payload = self.payload[:at] + struct.pack(">q", micros) + self.payload[at + 8:]

    def is_checkpoint(self):
        return b"\xaaCheckpoint" in self.payload and b"\xa7message" in self.payload


def read_frames(path):
    data, at, frames = path.read_bytes(), 0, []
    while data[at:at + 4] == b"FRJ\x01":
        length = struct.unpack_from("<I", data, at + 4)[0]
        frames.append(Frame(data[at:at + HEADER], data[at + HEADER:at + HEADER + length]))
        at += HEADER + length
    return frames


def write_frames(path, frames):
    out, previous = b"", bytes(32)
    for frame in frames:
        header, position = frame.header, len(out)
        struct.pack_into("<I", header, 4, len(frame.payload))
        struct.pack_into("<Q", header, 16, position)
        synced = struct.unpack_from("<Q", header, 24)[0]
        struct.pack_into("<Q", header, 24, min(synced, position))
        header[32:64] = previous
        previous = blake3(bytes(header[:8] + header[16:68]) + bytes(28) + frame.payload)
        header[8:16] = previous[:8]
        out += bytes(header) + frame.payload
    path.write_bytes(out)
    mark = b"FRJSYNC\x01" + struct.pack("<Q", len(out)) + previous + bytes(8)
    path.with_name("SYNCED").write_bytes(mark + blake3(mark)[:8])


# --- the adapter --------------------------------------------------------------------------------


class ForgeAdapter(MemoryAdapter):
    name = "forge"
    detection_point = "read"
    supports_replay = True
    supports_metadata = True
    supports_snapshot = True

    def __init__(self):
        self.forge = os.path.abspath(os.environ.get("FORGE_BIN") or shutil.which("forge") or "forge")
        self.root = None

    def setup(self):
        self.root = Path(tempfile.mkdtemp(prefix="forge-agmi-"))
        (self.root / "project").mkdir()
        (self.root / "home").mkdir()
        self._must("init", "--name", "first")
        self._must("session", "new", "other")

    def teardown(self):
        if self.root is not None:
            shutil.rmtree(self.root, ignore_errors=True)
            self.root = None

    def _run(self, *args):
        environment = {"HOME": str(self.root / "home"), "PATH": "/usr/bin:/bin"}
        return subprocess.run([self.forge, *args], cwd=self.root / "project", env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def _must(self, *args):
        done = self._run(*args)
        if done.returncode != 0:
            raise RuntimeError(f"forge {' '.join(args)}: {done.stderr.strip()}")

    def _save(self, context, text):
        self._must("--session", context, "checkpoint", "create", text)

    def seed(self, n):
        for number in range(n):
            self._save("first", f"seed-{number}")

    def seed_other(self, n):
        for number in range(n):
            self._save("other", f"else-{number}")

    def append_genuine(self):
        self._save("first", "late")

    # The data of the store on disk; the key and the witness are elsewhere.

    @property
    def store(self):
        return self.root / "project" / ".forge"

    def snapshot_store(self):
        return self._copy_store(self.store)

    def restore_store(self, token):
        shutil.rmtree(self.store)
        shutil.copytree(token, self.store)

    # Records in the journal.

    @property
    def segment(self):
        return max((self.store / "journal").glob("*.log"))

    def _places(self, frames, context="first"):
        wanted = CONTEXTS[context]
        return [place for place, frame in enumerate(frames)
                if frame.is_checkpoint() and frame.session == wanted]

    def _records(self, context):
        frames = read_frames(self.segment)
        records = []
        for seq, place in enumerate(self._places(frames, context)):
            frame = frames[place]
            fields = {"context": context, "message": frame.message, "time": frame.time,
                      "payload": frame.payload, "seal": bytes(frame.header[SEAL])}
            records.append(Record(seq=seq, fields=fields))
        return records

    def read_all_raw(self):
        return self._records("first")

    def read_other_raw(self):
        return self._records("other")

    def _edit(self, seq, change):
        frames = read_frames(self.segment)
        change(frames[self._places(frames)[seq]])
        write_frames(self.segment, frames)

    def write_raw(self, record):
        frames = read_frames(self.segment)
        places = self._places(frames)
        if record.seq == len(places):
            last = frames[places[-1]]
            frames.append(Frame(bytes(last.header), last.payload))
            places.append(len(frames) - 1)
        frame = frames[places[record.seq]]
        frame.payload = record.fields["payload"]
        frame.message = record.fields["message"]
        frame.header[SEAL] = record.fields["seal"]
        write_frames(self.segment, frames)

    def delete_raw(self, seq):
        frames = read_frames(self.segment)
        del frames[self._places(frames)[seq]]
        write_frames(self.segment, frames)

    def mutate_payload(self, record):
        record.fields["message"] += " [TAMPERED]"
        return record

    def forge_record(self, template):
        forged = Record(seq=template.seq + 1, fields=dict(template.fields))
        forged.fields["message"] = "forged"
        return forged

    def replay_onto(self, victim_seq, donor):
        def change(frame):
            frame.message = donor.fields["message"]
            frame.header[SEAL] = donor.fields["seal"]
        self._edit(victim_seq, change)

    def read_meta(self, seq):
        return {"time": self.read_all_raw()[seq].fields["time"]}

    def write_meta(self, seq, meta):
        def change(frame):
            frame.time = meta["time"] - (3_600_000_000 if "agmi_meta_tampered" in meta else 0)
        self._edit(seq, change)

    def identity_of(self, record):
        return f"{record.fields['context']}:{record.seq}"

    def payload_of(self, record):
        return record.fields["message"]

    def owner_of(self, record):
        return record.fields["context"]

    # The output of forge.

    def reload(self):
        """Nothing to do: every command opens the store again."""

    def verify(self):
        self.verify_detail = None
        done = self._run("--session", "first", "checkpoint", "list", "--json")
        if done.returncode == 0:
            return True
        self.verify_detail = f"exit {done.returncode}: {done.stderr.strip()[:300]}"
        return False
