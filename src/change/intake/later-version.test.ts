import { expect, test } from "bun:test";
import { until } from "../../../test/support/server/client.ts";
import { exchange, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { decodeCbor, encodeCbor } from "../../base/dag-cbor.ts";
import { PATIENCE_ROUNDS } from "../../space/port/replica.ts";
import { type Change, decodeChange, encodeChange } from "../codec/change-codec.ts";

test("[CHANGE-5] what an earlier version of the program could not read is tried when a space is opened", () =>
  withDevices(async (devices) => {
    const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
    await one.write("a", "1");
    await one.write("b", "2");
    for (const { id, bytes, writer } of one.changes()) {
      const author = devices.owner.signer.publicKey;
      const waiting = { id, bytes, waitKind: "version", waitFor: new Uint8Array(0), author, receivedMs: 1 } as const;
      if (writer === 0) await two.ingest(bytes);
      else await two.space.engine.write(() => two.space.store.parked.put(waiting));
    }
    expect(await two.values()).toEqual({});
    await two.reopen();
    await until(() => Promise.resolve(two.space.store.parked.usage().count === 0), "all to be tried");
    expect(await two.values()).toEqual({ a: "1", b: "2" });
    expect(await two.rows()).toEqual(await one.rows());
  }));

test("[CHANGE-5] a change of a later version waits, over a restart too, and others go on", () =>
  withDevices(async (devices) => {
    const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
    await one.write("a", "1");
    await exchange([one, two]);
    const { headerBytes, sealed } = decodeChange(one.changes().at(-1)!.bytes) as Change;
    const header = decodeCbor(headerBytes) as { v: number };
    const later = encodeChange(encodeCbor({ ...header, v: header.v + 1 }), sealed, devices.owner.signer);
    expect(await two.ingest(later.bytes)).toMatchObject({ kind: "parked", waitKind: "version" });
    await two.reopen();
    await two.space.engine.idle();
    expect(two.space.store.parked.waitingCount(PATIENCE_ROUNDS)).toBe(1); // the space is not synced
    await one.write("b", "2");
    await exchange([one, two]);
    expect(await two.values()).toEqual({ a: "1", b: "2" });
    expect(two.space.store.parked.usage().count).toBe(1);
    const none = encodeChange(encodeCbor({ ...header, v: 0 }), sealed, devices.owner.signer);
    expect((await two.ingest(none.bytes)).kind).toBe("quarantined");
  }));
