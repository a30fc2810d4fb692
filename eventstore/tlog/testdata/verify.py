#!/usr/bin/env python3
"""Verifies proofs of Bahi's log, from docs/audit-format.md alone. It wants nothing but Python 3.8.

    verify.py proof FILE KEYFILE     exit status 0 if every event of the file is in the log
    verify.py vectors FILE           holds the test vectors against this program

It is here to show that the document suffices, and to be read. Its Ed25519 is RFC 8032's own sample, and slow.
"""

import base64
import datetime
import hashlib
import json
import sys
import uuid

# --- Ed25519 (RFC 8032, section 6) ---------------------------------------------------------------------------------

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
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = recover(4 * pow(5, P - 2, P) % P, 0)


def point(raw):
    n = int.from_bytes(raw, "little")
    return recover(n & (2**255 - 1), n >> 255)


def ed25519(public, message, signature):
    if len(public) != 32 or len(signature) != 64:
        return False
    a, r, s = point(public), point(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= Q:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % Q
    left, right = times(s, BASE), add(r, times(h, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


# --- The leaf ------------------------------------------------------------------------------------------------------

TAG = b"bahi event 1\n"


def text(raw):
    return len(raw).to_bytes(4, "big") + raw


def leaf(e):
    since = datetime.datetime.strptime(e["recorded_at"], "%Y-%m-%dT%H:%M:%S.%fZ") - datetime.datetime(1970, 1, 1)
    micros = since // datetime.timedelta(microseconds=1)
    return (TAG + e["position"].to_bytes(8, "big") + text(e["stream"].encode()) + e["revision"].to_bytes(8, "big") +
            uuid.UUID(e["id"]).bytes + text(e["type"].encode()) + micros.to_bytes(8, "big", signed=True) +
            text(e["meta"].encode()) + text(e["data"].encode()))


def parse_leaf(raw):
    def take(n):
        nonlocal raw
        if n > len(raw):
            raise ValueError("the leaf is cut off")
        taken, raw = raw[:n], raw[n:]
        return taken

    def number():
        return int.from_bytes(take(8), "big")

    def words():
        return take(int.from_bytes(take(4), "big"))

    if take(len(TAG)) != TAG:
        raise ValueError("this is not the leaf of an event")
    e = {"position": number(), "stream": words().decode(), "revision": number(), "id": str(uuid.UUID(bytes=take(16))), "type": words().decode()}
    micros = int.from_bytes(take(8), "big", signed=True)
    e["recorded_at"] = (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    e["meta"], e["data"] = words().decode(), words().decode()
    if raw:
        raise ValueError("something follows the leaf")
    return e


# --- The tree (RFC 6962) -------------------------------------------------------------------------------------------

def leaf_hash(raw):
    return hashlib.sha256(b"\x00" + raw).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


def root(hashes):
    if not hashes:
        return hashlib.sha256(b"").digest()
    if len(hashes) == 1:
        return hashes[0]
    k = 1 << (len(hashes) - 1).bit_length() - 1
    return node_hash(root(hashes[:k]), root(hashes[k:]))


def included(hash, index, size, proof, expected):
    """RFC 9162, section 2.1.3.2."""
    if index >= size:
        return False
    fn, sn, r = index, size - 1, hash
    for p in proof:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            r = node_hash(p, r)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node_hash(r, p)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and r == expected


def consistent(first, second, proof, first_root, second_root):
    """RFC 9162, section 2.1.4.2."""
    if first == second:
        return not proof and first_root == second_root
    if not 0 < first < second or not proof:
        return False
    path = list(proof) if first & (first - 1) else [first_root] + list(proof)
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for c in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = node_hash(c, fr), node_hash(c, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node_hash(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return fr == first_root and sr == second_root and sn == 0


# --- Checkpoints and proofs ----------------------------------------------------------------------------------------

def parse_key(line):
    name, key_id, encoded = line.strip().split("+", 2)
    raw = base64.b64decode(encoded, validate=True)
    if raw[0] != 1 or hashlib.sha256(name.encode() + b"\n" + raw).digest()[:4].hex() != key_id:
        raise ValueError("this is not the public key of a log")
    return name, raw


def open_checkpoint(note, key):
    """Answers origin, size and root of a checkpoint that the key signed."""
    name, public = key
    body, signatures = note.split("\n\n", 1)
    body += "\n"
    prefix = hashlib.sha256(name.encode() + b"\n" + public).digest()[:4]
    good = False
    for line in signatures.splitlines():
        dash, who, encoded = line.split(" ")
        raw = base64.b64decode(encoded, validate=True)
        if dash != "\u2014":
            raise ValueError("this is not a signature")
        if who == name and raw[:4] == prefix:
            if not ed25519(public[1:], body.encode(), raw[4:]):
                raise ValueError("the signature is wrong")
            good = True
    origin, size, encoded = body.split("\n")[:3]
    if not good or origin != name:
        raise ValueError("the checkpoint is not signed by the key")
    if str(int(size)) != size:
        raise ValueError("the size is not written as sizes are")
    return origin, int(size), base64.b64decode(encoded, validate=True)


def split_proofs(file):
    """A proof ends behind the signatures of its checkpoint."""
    proofs, lines, signed = [], [], False
    for line in file.splitlines(keepends=True):
        if signed and not line.startswith("\u2014 "):
            proofs.append("".join(lines))
            lines, signed = [], False
        lines.append(line)
        signed = line.startswith("\u2014 ")
    return proofs + ["".join(lines)]


def verify_proof(file, key):
    """Answers the event and the log that a proof is of, if it holds."""
    head, checkpoint = file.split("\n\n", 1)
    lines = head.split("\n")
    if lines[0] != "c2sp.org/tlog-proof@v1" or not lines[1].startswith("extra ") or not lines[2].startswith("index "):
        raise ValueError("this is not a proof of an event")
    raw = base64.b64decode(lines[1][len("extra "):], validate=True)
    index = int(lines[2][len("index "):])
    proof = [base64.b64decode(line, validate=True) for line in lines[3:]]
    origin, size, expected = open_checkpoint(checkpoint, key)
    if not included(leaf_hash(raw), index, size, proof, expected):
        raise ValueError("the event is not in the log at this place")
    return parse_leaf(raw), origin


# --- The program ---------------------------------------------------------------------------------------------------

def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def holds(check, *args):
    try:
        check(*args)
        return True
    except ValueError:
        return False


def vectors(path):
    v = json.loads(read(path))

    def b64(hash):
        return base64.b64decode(hash)

    published = [leaf_hash(bytes.fromhex(p["leaf"])) for p in v["rfc6962"]]
    for n, p in enumerate(v["rfc6962"]):
        assert root(published[:n + 1]) == b64(p["root"]), p
    for e in v["leaves"]:
        assert leaf(e).hex() == e["leaf"], e
        assert leaf_hash(leaf(e)) == b64(e["hash"]), e
        assert parse_leaf(bytes.fromhex(e["leaf"])) == {k: e[k] for k in e if k not in ("leaf", "hash")}, e
    hashes = [b64(e["hash"]) for e in v["leaves"]]
    roots = [b64(r) for r in v["roots"]]
    for n, r in enumerate(roots):
        assert root(hashes[:n]) == r, n
    for i in v["inclusion"]:
        proof = [b64(h) for h in i["hashes"] or []]
        assert included(hashes[i["index"]], i["index"], i["size"], proof, roots[i["size"]]), i
        assert not included(hashes[i["index"]], i["index"], i["size"], proof + [hashes[0]], roots[i["size"]]), i
    for c in v["consistency"]:
        assert consistent(c["from"], c["to"], [b64(h) for h in c["hashes"] or []], roots[c["from"]], roots[c["to"]]), c
    key = parse_key(v["public_keys"][0])
    for c in v["checkpoints"]:
        assert holds(open_checkpoint, c["text"], key) == c["good"], c
    for f in v["proofs"]:
        assert all(holds(verify_proof, p, key) for p in split_proofs(f["text"])) == f["good"], f
    print("all vectors hold")


def proofs(path, key_path):
    key = parse_key(read(key_path))
    for n, file in enumerate(split_proofs(read(path)), 1):
        try:
            e, origin = verify_proof(file, key)
        except (ValueError, IndexError) as problem:
            sys.exit(f"proof {n} does not hold: {problem}")
        print(f"event {e['position']}, {e['type']} {e['stream']}@{e['revision']}, is in the log {origin}: {e['data']}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["vectors"] and len(sys.argv) == 3:
        vectors(sys.argv[2])
    elif sys.argv[1:2] == ["proof"] and len(sys.argv) == 4:
        proofs(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)
