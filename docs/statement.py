#!/usr/bin/env python3
"""Verify statements of a Bahi log, as docs/audit-format.md specifies. It needs Python 3.8 and replay.py beside it.

    python3 statement.py KEYS FILE...

KEYS has the public keys of the log, one a line, and each FILE is a statement.proof. It exits with 0 if all are verified, with 1 if one
was tampered with, and with 2 if it cannot tell.
"""

import base64
import gzip
import hashlib
import json
import sys
import uuid

import replay

# Ed25519, as RFC 8032, section 6 has it.
P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(a, b):
    i, j = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    k, l = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = j - i, l - k, l + k, j + i
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, point):
    result = (0, 1, 1, 0)
    while n:
        if n & 1:
            result = add(result, point)
        point, n = add(point, point), n >> 1
    return result


def recover(y, sign):
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        raise Tampered("the signature is wrong")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = recover(4 * pow(5, P - 2, P) % P, 0)


def point(raw):
    n = int.from_bytes(raw, "little")
    return recover(n & (2**255 - 1), n >> 255)


def signed(public, message, signature):
    a, r, s = point(public), point(signature[:32]), int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % Q
    left, right = times(s, BASE), add(r, times(h, a))
    return s < Q and (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


class Tampered(Exception):
    pass


class Undecided(Exception):
    pass


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def parse_leaf(raw):
    """Returns an event as an archive has it."""
    def take(n):
        nonlocal raw
        if n > len(raw):
            raise Tampered("a leaf is cut off")
        taken, raw = raw[:n], raw[n:]
        return taken

    def text():
        return take(int.from_bytes(take(4), "big")).decode()

    if take(13) != b"bahi event 1\n":
        raise Undecided("a leaf is of another version")
    e = {"position": int.from_bytes(take(8), "big"), "stream": text(), "revision": int.from_bytes(take(8), "big"),
         "id": str(uuid.UUID(bytes=take(16))), "type": text()}
    take(8)
    e["meta"], e["data"] = text(), text()
    if raw:
        raise Tampered("something follows a leaf")
    return e


def root(hashes):
    """Returns the root of RFC 6962, section 2.1."""
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256()
    k = 1 << (len(hashes) - 1).bit_length() - 1
    return sha256(b"\x01", root(hashes[:k]), root(hashes[k:]))


checked = {}  # checkpoints whose signature was verified


def checkpoint(note, keys):
    """Returns position and map of a checkpoint that one of the keys signed."""
    body, signatures = note.split("\n\n", 1)
    body += "\n"
    lines = body.split("\n")
    for name, public in keys:
        prefix = sha256(name.encode(), b"\n", public)[:4]
        for line in signatures.splitlines():
            _, who, encoded = line.split(" ")
            raw = base64.b64decode(encoded)
            if who == name == lines[0] and raw[:4] == prefix:
                if note not in checked and not signed(public[1:], body.encode(), raw[4:]):
                    raise Tampered("the checkpoint is not as it was signed")
                checked[note] = True
    if note not in checked:
        raise Undecided("no key of yours signed the checkpoint")
    of = dict(line.split(" ", 1) for line in lines[3:] if " " in line)
    if "bahi-map/v1" not in of:
        raise Undecided("the checkpoint has no map of accounts")
    return int(of["position"]), base64.b64decode(of["bahi-map/v1"])


def in_map(name, entry, expected):
    """Checks the path of an entry, or that there is none."""
    key = sha256(b"bahi-map/v1\n", name.encode())
    path = [base64.b64decode(h) for h in entry["path"]]
    bits = int.from_bytes(key, "big")
    if entry["size"]:
        at = sha256(b"\x02", key, sha256(entry["size"].to_bytes(8, "big"), base64.b64decode(entry["root"])))
    elif entry.get("other"):
        other, value = (base64.b64decode(h) for h in entry["other"])
        if other == key or (int.from_bytes(other, "big") ^ bits) >> 256 - len(path):
            raise Tampered(f"the path of {name} ends elsewhere")
        at = sha256(b"\x02", other, value)
    else:
        at = bytes(32) if path else sha256()
    for depth, beside in zip(range(len(path) - 1, -1, -1), path):
        at = sha256(b"\x03", beside, at) if bits >> 255 - depth & 1 else sha256(b"\x03", at, beside)
    if at != expected:
        raise Tampered(f"the path of {name} does not lead to the map that was signed")


def concern(e, rows):
    """Returns the name of the entry that an event concerns."""
    category, _, number = e["stream"].partition("-")
    if category in replay.LEDGERS:
        return "account " + number
    if category in ("bookslock", "period"):
        return "common " + number
    if e["stream"] not in rows and e["type"].endswith("RowAdded"):
        rows[e["stream"]] = f"account {json.loads(e['data'])['account']}"
    return rows.get(e["stream"])


def verify(file, keys):
    """Returns a sentence about a statement that is verified."""
    with gzip.open(file) as f:
        if f.readline() != b"bahi statement 1\n":
            raise Undecided("it is no statement of a version that is known here")
        about, rest = json.loads(f.readline()), f.read()
    position, expected = checkpoint(about["checkpoint"], keys)
    entries = {f"account {about['account']}": about["entry"], "common " + about["workspace"]: about["common"]}
    leaves, rows, books, last = {name: [] for name in entries}, {}, replay.Books(), {}
    while rest:
        n = int.from_bytes(rest[:4], "big")
        raw, rest = rest[4:4 + n], rest[4 + n:]
        e = parse_leaf(raw)
        name = concern(e, rows)
        if name not in entries or not last.get(name, 0) < e["position"] <= position:
            raise Tampered(f"the event at position {e['position']} is not of the account, or not in its place")
        last[name] = e["position"]
        leaves[name].append(sha256(b"\x00", raw))
        if name.startswith("account "):
            if not leaves[name][1:] and json.loads(e["meta"])["workspace"] != about["workspace"]:
                raise Tampered("the account is of another workspace")
            books.add(e)
    for name, entry in entries.items():
        in_map(name, entry, expected)
        if len(leaves[name]) != entry["size"] or entry["size"] and root(leaves[name]) != base64.b64decode(entry["root"]):
            raise Tampered(f"the {len(leaves[name])} events of {name} are not the {entry['size']} that were signed")
    if books.doubts:
        raise Undecided("an event is not known here")
    counted = [(r.day, [i - o for i, o in zip(r.sides[0][:2], r.sides[1][:2])]) for r in books.rows.values() if not r.deleted]
    for what, wanted in (("opening", lambda day: "from" in about and day < about["from"]),
                         ("closing", lambda day: day <= about.get("to", "9"))):
        for nth, unit, places in ((0, "cash", 2), (1, "fine", 3)):
            amount = sum(net[nth] for day, net in counted if wanted(day))
            exact = f"{'-' if amount < 0 else ''}{abs(amount) // 10**places}.{abs(amount) % 10**places:0{places}}"
            if about[what][unit] != exact:
                raise Tampered(f"the {what} {unit} is {about[what][unit]} by the file, and {exact} by the events")
    return f"account {about['account']}, opening {about['opening']}, closing {about['closing']}"


def main():
    status, keys = 0, []
    with open(sys.argv[1], encoding="ascii") as f:
        for line in filter(None, map(str.strip, f)):
            name, _, encoded = line.split("+", 2)
            keys.append((name, base64.b64decode(encoded)))
    for file in sys.argv[2:]:
        try:
            print(f"{file}: VERIFIED. It is {verify(file, keys)}.")
        except Tampered as why:
            status = 1
            print(f"{file}: TAMPERED: {why}.")
        except (Undecided, replay.Unreadable) as why:
            status = status or 2
            print(f"{file}: CANNOT TELL: {why}.")
    sys.exit(status)


if __name__ == "__main__":
    main()
