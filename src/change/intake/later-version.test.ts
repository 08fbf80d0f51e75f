import { expect, test } from "bun:test";
import { until } from "../../../test/support/server/client.ts";
import { withDevices } from "../../../test/support/worlds/acl-devices.ts";

test("[CHANGE-5] what an earlier version of the program could not read is tried when a space is opened", () =>
  withDevices(async (devices) => {
    const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
    await one.write("a", "1");
    await one.write("b", "2");
    for (const { id, bytes, writer } of one.changes()) {
      const author = devices.owner.signer.publicKey;
      const waiting = { id, bytes, waitKind: "version", waitFor: new Uint8Array(0), author, receivedMs: 1 } as const;
      if (writer === 0) await two.ingest(bytes);
      else await two.space.engine.write(() => two.space.engine.store.parked.put(waiting));
    }
    expect(await two.values()).toEqual({});
    await two.reopen();
    await until(() => Promise.resolve(two.space.engine.store.parked.usage().count === 0), "all to be tried");
    expect(await two.values()).toEqual({ a: "1", b: "2" });
    expect(await two.rows()).toEqual(await one.rows());
  }));
