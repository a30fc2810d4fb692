// Tests of an official Node client at a gateway. internal/app/interop_test.go serves the log and passes its address in the environment.
// Each client has a file and a process of its own: their generated messages share a global name.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";

const operator = process.env.BAHI_INTEROP_OPERATOR;
const member = process.env.BAHI_INTEROP_MEMBER;
const stranger = process.env.BAHI_INTEROP_STRANGER;

const collect = async (read) => {
  const events = [];
  for await (const { event } of read) events.push(event);
  return events;
};

// suite registers the tests of a client. expecting returns the append option that states the expected revision, by the client's name.
export function suite(name, lib, Client, expecting) {
  // One after the other: a client that is closed ends the appends of all others in its process.
  describe(name, () => {
    const { BACKWARDS, END, FORWARDS, NO_STREAM, START, STREAM_EXISTS, ANY } = lib;
    const stream = () => `interop-${randomUUID()}`;
    const placed = (n, more = {}) => lib.jsonEvent({ type: "OrderPlaced", data: { n, text: "₹ é" }, metadata: { schema: 1 }, ...more });
    const refusedAs = (Kind, check = () => {}) => (error) => {
      assert.ok(error instanceof Kind, `${error?.constructor?.name}: ${error?.message}`);
      check(error);
      return true;
    };
    let client;

    before(() => {
      client = Client.connectionString(operator);
    });
    after(() => client.dispose());

    test("what is appended is read back", async () => {
      const s = stream();
      const events = [placed(1), placed(2), placed(3)];
      const done = await client.appendToStream(s, events, expecting(NO_STREAM));
      assert.equal(done.success, true);
      assert.equal(done.nextExpectedRevision, 2n);

      const got = await collect(client.readStream(s, { direction: FORWARDS, fromRevision: START }));
      assert.deepEqual(got.map((e) => e.id), events.map((e) => e.id));
      assert.deepEqual(got.map((e) => e.revision), [0n, 1n, 2n]);
      assert.deepEqual(got[0].data, { n: 1, text: "₹ é" });
      assert.deepEqual(got[0].metadata, { schema: 1 });
      assert.equal(got[0].type, "OrderPlaced");
      assert.equal(got[0].isJson, true);
      assert.ok(Math.abs(Date.now() - new Date(got[0].created).getTime()) < 3_600_000);
      assert.deepEqual(await collect(client.readStream(s, { direction: BACKWARDS, fromRevision: END, maxCount: 1 })), [got[2]]);
      assert.deepEqual(await collect(client.readStream(s, { fromRevision: 1n })), got.slice(1));
      const [last] = await collect(client.readAll({ direction: FORWARDS, fromPosition: done.position, maxCount: 1 }));
      assert.equal(last.id, events[2].id, "a read of all begins with the event at its position");
    });

    test("an append repeated has one effect", async () => {
      const s = stream();
      const events = [placed(1), placed(2)];
      const first = await client.appendToStream(s, events, expecting(NO_STREAM));
      const again = await client.appendToStream(s, events, expecting(NO_STREAM));
      assert.equal(again.nextExpectedRevision, first.nextExpectedRevision);
      assert.deepEqual(again.position, first.position);
      assert.equal((await collect(client.readStream(s))).length, 2);
    });

    test("an append with credentials of its own goes another way", async () => {
      const s = stream();
      const [, user, password] = /^esdb:\/\/([^:]+):([^@]+)@/.exec(operator);
      const credentials = { username: user, password: decodeURIComponent(password) };
      const done = await client.appendToStream(s, [placed(1)], { ...expecting(ANY), credentials });
      assert.equal(done.nextExpectedRevision, 0n);
      await assert.rejects(
        client.appendToStream(s, [placed(2)], { ...expecting(5n), credentials }),
        refusedAs(lib.WrongExpectedVersionError, (e) => {
          assert.equal(e.streamName, s);
          assert.equal(e.actualVersion ?? e.actualState, 0n);
          assert.equal(e.expectedVersion ?? e.expectedState, 5n);
        }),
      );
    });

    test("an append that conflicts says with what", async () => {
      const s = stream();
      await client.appendToStream(s, [placed(1), placed(2)]);
      await assert.rejects(
        client.appendToStream(s, [placed(3)], expecting(NO_STREAM)),
        refusedAs(lib.WrongExpectedVersionError, (e) => {
          assert.equal(e.streamName, s);
          assert.equal(e.actualVersion ?? e.actualState, 1n);
          assert.equal(e.expectedVersion ?? e.expectedState, NO_STREAM);
        }),
      );
      await assert.rejects(client.appendToStream(stream(), [placed(1)], expecting(STREAM_EXISTS)), refusedAs(lib.WrongExpectedVersionError));
    });

    test("a large append arrives whole", async () => {
      const s = stream();
      const text = "x".repeat(300_000);
      await client.appendToStream(s, [1, 2, 3].map((n) => lib.jsonEvent({ type: "OrderPlaced", data: { n, text } })));
      const got = await collect(client.readStream(s));
      assert.deepEqual(got.map((e) => [e.data.n, e.data.text.length]), [[1, text.length], [2, text.length], [3, text.length]]);
    });

    test("what is not there is not found", async () => {
      await assert.rejects(collect(client.readStream(stream())), refusedAs(lib.StreamNotFoundError));
    });

    test("nothing is deleted", async () => {
      const s = stream();
      await client.appendToStream(s, [placed(1)]);
      await assert.rejects(client.deleteStream(s), refusedAs(lib.AccessDeniedError));
      await assert.rejects(client.tombstoneStream(s), refusedAs(lib.AccessDeniedError));
      assert.equal((await collect(client.readStream(s))).length, 1);
    });

    test("what is no JSON, or Bahi's, is refused", async () => {
      const s = stream();
      const binary = lib.binaryEvent({ type: "OrderPlaced", data: Buffer.from([1, 2, 3]) });
      await assert.rejects(client.appendToStream(s, [binary]), /JSON/);
      const foreign = lib.jsonEvent({ type: "BankAccountRenamed", data: { from: "a", to: "b" }, metadata: { schema: 1 } });
      await assert.rejects(client.appendToStream(s, [foreign]), /BankAccountRenamed is an event of Bahi/);
      await assert.rejects(client.appendToStream("$settings", [placed(1)]), refusedAs(lib.AccessDeniedError));
      await assert.rejects(collect(client.readStream(s)), refusedAs(lib.StreamNotFoundError));
    });

    test("others are not let in", async () => {
      for (const connection of [member, stranger]) {
        const other = Client.connectionString(connection);
        try {
          await assert.rejects(collect(other.readStream(stream())), refusedAs(lib.AccessDeniedError));
          await assert.rejects(collect(other.readAll({ maxCount: 1 })), refusedAs(lib.AccessDeniedError));
          await assert.rejects(other.appendToStream(stream(), [placed(1)]), refusedAs(lib.AccessDeniedError));
        } finally {
          await other.dispose();
        }
      }
    });

    // follow reads that many events, and returns them with the subscription's other messages.
    const follow = (subscription, count) =>
      new Promise((resolve, reject) => {
        const events = [];
        let caughtUp = false;
        subscription.on("error", reject);
        subscription.on("caughtUp", () => {
          caughtUp = true;
        });
        subscription.on("data", ({ event }) => {
          events.push(event);
          if (events.length === count) resolve({ events, caughtUp });
        });
      });

    test("a subscription goes on with what is appended later, and is resumed where it ended", { timeout: 60_000 }, async () => {
      const prefix = stream();
      const filter = lib.streamNameFilter({ prefixes: [prefix], checkpointInterval: 1, maxSearchWindow: 16 });
      const write = (from, count) => Promise.all(Array.from({ length: count }, (_, i) => client.appendToStream(`${prefix}-${from + i}`, [placed(from + i)])));
      await write(0, 20);
      const first = client.subscribeToAll({ fromPosition: START, filter });
      const seen = follow(first, 40);
      await write(20, 20);
      const { events } = await seen;
      await first.unsubscribe();
      assert.deepEqual(events.map((e) => e.data.n).sort((a, b) => a - b), Array.from({ length: 40 }, (_, n) => n));

      await write(40, 10);
      const second = client.subscribeToAll({ fromPosition: events[24].position, filter });
      const resumed = await follow(second, 25);
      await second.unsubscribe();
      assert.deepEqual(resumed.events.slice(0, 15).map((e) => e.id), events.slice(25).map((e) => e.id), "none skipped, none twice");
    });

    test("a stream is followed from where it was read", { timeout: 60_000 }, async () => {
      const s = stream();
      await client.appendToStream(s, [placed(0), placed(1), placed(2)]);
      const subscription = client.subscribeToStream(s, { fromRevision: 1n });
      const told = new Promise((resolve) => {
        subscription.on("caughtUp", resolve);
      });
      const seen = follow(subscription, 3);
      await told;
      await client.appendToStream(s, [placed(3), placed(4)]);
      const { events } = await seen;
      await subscription.unsubscribe();
      assert.deepEqual(events.map((e) => e.data.n), [2, 3, 4]);
    });

    test("an expression that takes for ever is no danger", async () => {
      const filter = lib.eventTypeFilter({ regex: "^(?!\\$)" });
      const subscription = client.subscribeToAll({ fromPosition: START, filter });
      await assert.rejects(follow(subscription, 1), /RE2/);
    });
  });
}
