#!/usr/bin/env python3
"""Replay the books of a Bahi log, as docs/replay.md specifies. It needs Python 3.8 and nothing else.

    python3 replay.py [--as-of DAY] [--known-at POSITION] [--rows] ARCHIVE
    zstdcat ARCHIVE/segments/*.zst | python3 replay.py -
    python3 replay.py --vectors FILE

ARCHIVE is a folder that was written with --plain, or - for the lines of events on standard input. Broken archives are bahi-verify's
business: this program believes what it reads.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import sys
from decimal import Decimal

LEDGERS = {"bank": "BankAccount", "bullion": "BullionAccount", "client": "Client", "karigar": "Karigar", "polisher": "Polisher"}

# Kinds of streams that do not concern the books.
UNRELATED = set("""apikey audit bot botanswer botpage botsource botwebhook buyer campaign campaignblock channel channelidentity
    company companydomain companyslug confirmation contact contactlist contactnotice contactprimary emailclaim enquiry
    enquirynotification follower identityclaim khata message messagetemplate messagethread messagingcontact messagingphone
    messagingsender number orderdraft ordersender ordertakadas party plan plancustomer product productbatch productsku request
    session user workspace""".split())

NONE = (0, 0, "-", "", 0)  # a side without entries
DECODER = json.JSONDecoder(parse_float=Decimal)
SPACE = re.compile(r"[ \t\r\n]*")


class Unreadable(Exception):
    """An event that this program cannot read."""


def members(text):
    """Returns the members of a JSON object, each with its value and its text."""
    try:
        found, at = {}, SPACE.match(text, 0).end()
        if text[at] != "{":
            raise Unreadable("its payload cannot be read")
        at = SPACE.match(text, at + 1).end()
        while text[at] != "}":
            name, at = DECODER.raw_decode(text, at)
            at = SPACE.match(text, SPACE.match(text, at).end() + 1).end()  # the colon
            value, end = DECODER.raw_decode(text, at)
            found[name] = (value, text[at:end])
            at = SPACE.match(text, end).end()
            if text[at] == ",":
                at = SPACE.match(text, at + 1).end()
        return found
    except (ValueError, IndexError) as e:
        raise Unreadable("its payload cannot be read") from e


def without_nul(text):
    """Removes the escapes of NUL."""
    return re.sub(r"\\(u0000|.)", lambda m: "" if m[1] == "u0000" else m[0], text)


def units(value, places):
    """Returns a decimal number as a whole number of its smallest part."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or value * 10**places != int(value * 10**places):
        raise Unreadable("its entries cannot be read")
    return int(value * 10**places)


def day(text):
    """Checks a day."""
    if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return datetime.date.fromisoformat(text).isoformat()
    raise Unreadable("its payload cannot be read")


def days(text, count):
    return (datetime.date.fromisoformat(text) + datetime.timedelta(days=count)).isoformat()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


MONEY = ("amount", "making_charge", "other", "rate")
METAL = ("weight", "fine_weight", "wastage_weight", "loss_weight")


def value_of(ledger, out, entry):
    """Returns the paise and the milligrams that an entry counts."""
    of = {name: units(entry.get(name), 2) for name in MONEY}
    of.update({name: units(entry.get(name), 3) for name in METAL})
    if ledger == "bank":
        return of["amount"], 0
    if ledger == "bullion":
        if entry.get("kind") == "rate_cut" and of["weight"] + of["fine_weight"] > 0:
            return 0, of["fine_weight"]
        return of["amount"], of["fine_weight"]
    if ledger == "client":
        priced = entry.get("rate") is not None
        return of["amount"] + of["making_charge"], 0 if priced else of["fine_weight"]
    if ledger == "karigar":
        if out:
            return of["amount"], of["fine_weight"]
        return of["other"], of["fine_weight"] + of["wastage_weight"]
    return of["amount"], of["weight"] + (0 if out else of["loss_weight"])


def side_of(ledger, out, value, text):
    """Returns what a side counts, the digest of its text, the metal that it names, and what of it was lost in work."""
    if value is None or text == "[]":
        return NONE
    if not isinstance(value, list) or not all(isinstance(e, dict) for e in value):
        raise Unreadable("its entries cannot be read")
    counted = [value_of(ledger, out, e) for e in value]
    metals = [e.get("metal") for e, (_, fine) in zip(value, counted) if fine and e.get("metal")]
    lost = {"karigar": "wastage_weight", "polisher": "loss_weight"}.get(ledger)
    loss = 0 if out or not lost else sum(units(e.get(lost), 3) for e in value)
    return sum(c for c, _ in counted), sum(f for _, f in counted), digest(text), metals[0] if metals else "", loss


class Workspace:
    def __init__(self, uuid, doubt):
        self.uuid, self.doubt, self.locked, self.metal, self.seals = uuid, doubt, None, "silver", []


class Account:
    def __init__(self, number, ledger, workspace, opened):
        self.number, self.ledger, self.workspace, self.opened = number, ledger, workspace, opened
        self.deleted, self.doubt, self.metal, self.rows = False, 0, "", []


class Row:
    __slots__ = ("number", "account", "day", "sides", "void", "deleted", "reverses", "reversed_by", "paired", "position")

    def __init__(self, number):
        self.number, self.void, self.deleted, self.reversed_by, self.paired, self.sides = number, False, False, 0, 0, [NONE, NONE]

    def enter(self, ledger, data, edit):
        """Sets the sides that are present."""
        for i, name in enumerate(("in_entries", "out_entries")):
            value, text = data.get(name, (None, "null"))
            if value is not None or not edit:
                self.sides[i] = side_of(ledger, i == 1, value, text)
        if self.void:
            self.cancel()

    def cancel(self):
        self.void = True
        self.sides = [(0, 0, side[2], "", 0) for side in self.sides]

    def words(self):
        """Returns the words of a row as the digest of its period has them."""
        (cash, fine, text, *_), (out_cash, out_fine, out_text, *_) = self.sides
        state = "void" if self.void else "-"
        return (f"row {self.number} {self.day} {cash} {fine} {out_cash} {out_fine} {state} {self.reverses} {self.reversed_by} "
                f"{text} {out_text}")


class Books:
    def __init__(self, known_at=0):
        self.known_at, self.position = known_at, 0
        self.workspaces, self.accounts, self.rows, self.orders, self.takadas = {}, {}, {}, {}, {}
        self.doubt, self.doubts = 0, []
        self.rest, self.past = 0, False

    def add(self, e):
        """Applies the next event. It returns false after the last one that counts."""
        meta = None
        if self.known_at:
            if self.rest == 0:
                meta = json.loads(e["meta"])
                self.rest = meta.get("more", 0) + 1
                self.past = self.past or e["position"] + self.rest - 1 > self.known_at
            self.rest -= 1
            if self.past:
                return False
        self.position = e["position"]
        category, _, number = e["stream"].partition("-")
        if category in UNRELATED:
            return True
        workspace = account = None
        try:
            try:
                meta = meta or json.loads(e["meta"])
                workspace = self.workspace(meta["workspace"])
            except (ValueError, KeyError, TypeError) as x:
                raise Unreadable("its metadata cannot be read") from x
            ledger = category[:-3] if category.endswith("row") else category
            if ledger not in LEDGERS and category not in ("bookslock", "booksmetal", "period", "clientorder", "takada"):
                raise Unreadable("its kind of stream is unknown")
            account = self.concerned(category, ledger, number)
            if meta.get("schema") != 1:
                raise Unreadable(f"its schema version {meta.get('schema')} is unknown")
            if category not in ("bookslock", "booksmetal", "period"):
                number = int(number)
            self.apply(category, ledger, number, workspace, e["type"], members(without_nul(e["data"])), e["position"])
        except (Unreadable, ValueError, TypeError) as x:
            self.doubted(e, workspace, account, x)
        return True

    def workspace(self, uuid):
        if uuid not in self.workspaces:
            self.workspaces[uuid] = Workspace(uuid, self.doubt)
        return self.workspaces[uuid]

    def concerned(self, category, ledger, number):
        """Returns the account of a stream, or None."""
        if ledger not in LEDGERS or not number.isdigit():
            return None
        if category == ledger:
            return self.accounts.get(int(number))
        row = self.rows.get(int(number))
        return self.accounts.get(row.account) if row else None

    def doubted(self, e, workspace, account, reason):
        of = f"account {account.number}" if account else f"workspace {workspace.uuid}" if workspace else "all accounts"
        self.doubts.append(f"CANNOT TELL from position {e['position']} on, {of}: {e['type']} in {e['stream']}: {reason}")
        for doubtful in [account or workspace] if account or workspace else [self, *self.workspaces.values()]:
            doubtful.doubt = doubtful.doubt or e["position"]

    def apply(self, category, ledger, number, workspace, kind, data, position):
        if kind != {"bookslock": "BooksLockMoved", "booksmetal": "BooksMetalSet"}.get(category, kind):
            raise Unreadable("its type is unknown")
        if category == "bookslock":
            to = data.get("to", (None,))[0]
            workspace.locked = day(to) if to is not None else None
        elif category == "booksmetal":
            workspace.metal = data.get("to", (None,))[0] or "silver"
        elif category == "period":
            self.period(workspace, kind, data, position)
        elif category == "clientorder":
            self.ordered(self.orders, "ClientOrder", "client_id", number, workspace, kind, data)
        elif category == "takada":
            self.ordered(self.takadas, "Takada", "client_order_id", number, workspace, kind, data)
        elif category == ledger:
            self.account(ledger, number, workspace, kind, data, position)
        else:
            self.row(ledger, number, kind, data, position)

    def account(self, ledger, number, workspace, kind, data, position):
        account = self.accounts.get(number, Account(number, ledger, workspace, position))
        if kind == LEDGERS[ledger] + "Opened":
            self.accounts[number] = account
        elif kind == LEDGERS[ledger] + "Deleted":
            account.deleted = True
        elif kind == LEDGERS[ledger] + "MetalChanged":
            account.metal = data.get("to", (None,))[0] or ""
        elif kind not in (LEDGERS[ledger] + "Renamed", LEDGERS[ledger] + "TypeChanged"):
            raise Unreadable("its type is unknown")

    def row(self, ledger, number, kind, data, position):
        prefix = LEDGERS[ledger].replace("Account", "") + "Row"
        if not kind.startswith(prefix):
            raise Unreadable("its type is unknown")
        change, row = kind[len(prefix):], self.rows.get(number)
        exists = row is not None and not row.deleted
        get = {name: value or 0 for name, (value, _) in data.items()}.get
        if change == "Added":
            if exists:
                return
            added = Row(number)
            added.account, added.reverses, added.position = get("account", 0), get("reverses", 0), position
            if not added.account or not get("date"):
                raise Unreadable("its payload lacks the account or the date")
            added.day = day(get("date"))
            added.enter(ledger, data, False)
            self.rows[number] = added
            return
        if row is None:
            return
        if change == "Edited":
            if exists:
                if get("date"):
                    row.day = day(get("date"))
                row.enter(ledger, data, True)
        elif change == "Deleted":
            row.deleted = True
        elif change == "Voided":
            if exists:
                row.cancel()
        elif change == "Reversed":
            row.reversed_by = get("by", 0)
        elif change in ("Paired", "Unpaired"):
            row.paired = get("with", 0) if change == "Paired" else 0
        else:
            raise Unreadable("its type is unknown")
        row.position = position

    def period(self, workspace, kind, data, position):
        through = day(data.get("through", (None,))[0])
        if kind == "PeriodClosed":
            begin = data.get("from", (None,))[0]
            workspace.seals.append((day(begin) if begin else "1900-01-01", through, data.get("digest", ("",))[0], position))
        elif kind == "PeriodReopened":
            workspace.seals = [s for s in workspace.seals if s[1] != through]
        else:
            raise Unreadable("its type is unknown")

    def ordered(self, records, prefix, holder, number, workspace, kind, data):
        """Applies an event of an order or a takada, which both have a holder, a date and items."""
        if kind not in (prefix + "Added", prefix + "Edited", prefix + "Deleted"):
            raise Unreadable("its type is unknown")
        if kind == prefix + "Added":
            records[number] = {"workspace": workspace, "deleted": False, "holder": 0, "day": "1970-01-01", "weight": 0, "karigars": []}
        record = records.get(number)
        if record is None:
            return
        if kind == prefix + "Deleted":
            record["deleted"] = True
        if holder in data:
            record["holder"] = data[holder][0] or 0
        if "date" in data:
            record["day"] = day(data["date"][0])
        if "items" in data:
            items = data["items"][0] or []
            record["weight"], record["karigars"] = sum(units(i.get("weight"), 3) for i in items), [i.get("karigar_id") for i in items]

    def lines(self, as_of=None):
        """Yields the lines of the text."""
        yield f"bahi-books/v1 {self.position} as_of {as_of or '-'} known_at {self.known_at or '-'}"
        for row in self.rows.values():
            account = self.accounts.get(row.account)
            if account and self.dated(row.number, as_of):
                account.rows.append(row)
        spaces = {}
        for number, account in sorted(self.accounts.items()):
            if not account.deleted:
                spaces.setdefault(account.workspace.uuid, []).append(account)
        for uuid in sorted(spaces):
            yield from self.workspace_lines(self.workspaces[uuid], spaces[uuid], as_of)

    def dated(self, number, as_of):
        """Reports whether a row is in a text as of a day."""
        row = self.rows.get(number)
        return row is not None and not row.deleted and (as_of is None or row.day <= as_of)

    def workspace_lines(self, workspace, accounts, as_of):
        now = not as_of and not self.known_at
        yield f"workspace {workspace.uuid} locked {now and workspace.locked or '-'} metal {workspace.metal}"
        for seal in workspace.seals:
            yield "seal " + " ".join(map(str, seal))
        untold, closings, trial, metals, loss = False, "bahi-closing/v1\n", {}, {}, {}
        for a in accounts:
            yield f"account {a.ledger} {a.number} {a.opened}"
            if a.doubt or workspace.doubt:
                untold = True
                yield "unknown account"
                continue
            cash, fine = yield from self.account_lines(a)
            closing = f"{a.ledger} {a.number} {cash} {fine} {len(a.rows)}"
            closings += closing + "\n"
            yield "closing " + closing
            sign = -1 if a.ledger == "bank" else 1
            trial.setdefault(a.ledger, [0, 0])[cash * sign > 0] += abs(cash)  # debits and credits
            fine_of = {}
            for row in a.rows:
                (_, in_fine, _, in_metal, lost), (_, out_fine, _, out_metal, _) = row.sides
                name = in_metal or out_metal or a.metal or workspace.metal
                if lost and not self.dated(row.reversed_by, as_of):
                    loss[name] = loss.get(name, 0) + lost
                if in_fine or out_fine:
                    fine_of[name] = fine_of.get(name, 0) + in_fine - out_fine
            for name, net in fine_of.items():
                metals.setdefault((a.ledger, name), [0, 0])[net * sign > 0] += abs(net)
        if untold:
            yield from ("unknown trial", "unknown metal", "unknown digest")
        else:
            for ledger, (debit, credit) in sorted(trial.items()):
                yield f"trial {ledger} {debit} {credit}"
            net = sum(debit - credit for debit, credit in trial.values())
            yield f"trial unpaired {max(0, -net)} {max(0, net)}"
            rest = dict(loss)
            for (_, name), (debit, credit) in metals.items():
                rest[name] = rest.get(name, 0) + debit - credit
            for line, sign, sums in (("unpaired", 1, rest), ("loss", -1, loss)):
                for name, net in sums.items():
                    metals.setdefault((line, name), [0, 0])[net * sign > 0] += abs(net)
            for (ledger, name), (debit, credit) in sorted(metals.items()):
                yield f"metal {ledger} {debit} {credit} {name}"
            yield "digest " + digest(closings)
        if now:
            yield from self.order_lines(workspace)

    def account_lines(self, a):
        """Yields the rows and periods of an account, and returns its balance."""
        cash = fine = count = 0
        span = text = None

        def end():
            text.update(f"closing {cash} {fine}\n".encode())
            return f"period {span[0]} {span[1]} {count} {cash} {fine} {text.hexdigest()}"

        a.rows.sort(key=lambda r: (r.day, r.number))
        for row in a.rows:
            if span is None or row.day > span[1]:
                if span is not None:
                    yield end()
                span, count = period_of(a.workspace.seals, row.day), 0
                text = hashlib.sha256(f"bahi-period/v1 {a.ledger} {a.number} {span[0]} {span[1]}\nopening {cash} {fine}\n".encode())
            words = row.words()
            text.update((words + "\n").encode())
            yield f"{words} {row.paired} {row.position}"
            count += 1
            cash += row.sides[0][0] - row.sides[1][0]
            fine += row.sides[0][1] - row.sides[1][1]
        if span is not None:
            yield end()
        return cash, fine

    def order_lines(self, workspace):
        opened = {n for n, a in self.accounts.items() if not a.deleted}
        orders = {n: o for n, o in self.orders.items() if o["workspace"] is workspace and not o["deleted"] and o["holder"] in opened}
        takadas = {n: t for n, t in sorted(self.takadas.items()) if not t["deleted"] and t["holder"] in orders}
        of = {}
        for t in takadas.values():
            of.setdefault(t["holder"], []).append(t["weight"])
        for number, o in sorted(orders.items()):
            delivered = of.get(number, [])
            yield f"order {number} {o['holder']} {o['day']} {o['weight']} {sum(delivered)} {len(delivered)}"
        for number, t in takadas.items():
            karigars = sorted({k for k in t["karigars"] if k in opened})
            yield " ".join(map(str, ["takada", number, t["holder"], t["day"], t["weight"], *karigars]))


def period_of(seals, of):
    """Returns the first and the last day of the period of a day."""
    year = int(of[:4]) - (of[5:7] < "04")
    begin, end = f"{year}-04-01", f"{year + 1}-03-31"
    for first, last, *_ in seals:
        if first <= of <= last:
            return first, last
        if last < of:
            begin = max(begin, days(last, 1))
        else:
            end = min(end, days(first, -1))
    return begin, end


def events(archive):
    """Yields the events of a plain archive, or of standard input."""
    if archive == "-":
        yield from map(json.loads, sys.stdin.buffer)
        return
    with open(os.path.join(archive, "manifest.json"), encoding="utf-8") as f:
        segments = json.load(f)["segments"]
    for segment in segments:
        if segment["file"].endswith(".zst"):
            sys.exit("The archive is compressed: write it with --plain, or pipe zstdcat of its segments to this program.")
        with open(os.path.join(archive, segment["file"]), "rb") as f:
            yield from map(json.loads, f)


def check(file):
    """Checks test vectors: each line has events, parameters and the digest of the text with rows."""
    checked = wrong = 0
    with open(file, encoding="utf-8") as f:
        for vector in map(json.loads, f):
            books = Books(vector.get("known_at", 0))
            for position, (stream, kind, data, meta) in enumerate(vector["events"], 1):
                if not books.add({"position": position, "stream": stream, "type": kind, "data": data, "meta": meta}):
                    break
            text = "".join(line + "\n" for line in books.lines(vector.get("as_of")))
            checked += 1
            if digest(text) != vector["sha256"]:
                wrong += 1
                print(f"DIFFERENT. Book {vector['seed']}:\n{text}")
    print(f"{checked - wrong} of {checked} books have the digests of the vectors.")
    return 1 if wrong or not checked else 0


def main():
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    p = argparse.ArgumentParser(description="Replay the books of a Bahi log (docs/replay.md).")
    p.add_argument("archive", help="the folder of a plain archive, - for standard input, or a file of vectors")
    p.add_argument("--as-of", metavar="DAY", type=day, help="only rows dated up to this day")
    p.add_argument("--known-at", metavar="POSITION", type=int, default=0, help="only what was recorded up to this position")
    p.add_argument("--rows", action="store_true", help="print each row too")
    p.add_argument("--vectors", action="store_true", help="check test vectors")
    given = p.parse_args()
    if given.vectors:
        return check(given.archive)
    books = Books(given.known_at)
    for e in events(given.archive):
        if not books.add(e):
            break
    for line in books.lines(given.as_of):
        if given.rows or not line.startswith("row "):
            print(line)
    for doubt in books.doubts:
        print(doubt, file=sys.stderr)
    return 2 if books.doubts else 0


if __name__ == "__main__":
    sys.exit(main())
