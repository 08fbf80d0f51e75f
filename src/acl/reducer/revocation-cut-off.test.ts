import { describe, expect, test } from "bun:test";
import { type Device, fetchFrom, openPair, remove, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { type Change, decodeChange, encodeChange, encodeHeader } from "../../change/codec/change-codec.ts";

describe("nobody writes into the past", () => {
  /** Forges a change in the place of one of the member's: same seq and parents, other content. */
  function forgeSibling(member: Device, of: Change): Uint8Array {
    const space = member.space;
    const object = space.engine.objects.byId(of.header.object!)!;
    const epoch = { id: of.header.keyId, key: space.keys.byId(of.header.keyId)! };
    const headerBytes = encodeHeader(of.header);
    const body = {
      dataset: "items",
      records: [{ id: "forged", upsert: true, ops: [{ type: "$set" as const, path: "v", value: "forged" }] }],
    };
    const sealed = space.engine.opener.seal(body, object.idText, epoch, headerBytes);
    return encodeChange(headerBytes, sealed, member.account.signer).bytes;
  }

  for (const order of ["record first", "changes first", "forgery between"] as const) {
    test(`[CHANGE-6] a second change in a place before a cut-off does not count: ${order}`, () =>
      withDevices(async (devices) => {
        const { owner, account, member } = await openPair(devices);
        for (const id of ["a", "b", "c"]) await member.write(id, "honest");
        await fetchFrom(owner, member);
        await remove(owner, account);
        const own = owner.changes().filter(({ seq }) => seq > 0);
        const middle = decodeChange(own[1]!.bytes) as Change;
        const forged = forgeSibling(member, middle);
        const late = devices.open("late", devices.owner);
        const all = owner.changes().map(({ bytes }) => bytes);
        const takeLog = () => late.space.aclService.take(owner.aclLog());
        const steps =
          order === "record first"
            ? [
                takeLog,
                ...all.slice(0, 2).map((b) => () => late.ingest(b)),
                () => late.ingest(forged),
                ...all.slice(2).map((b) => () => late.ingest(b)),
              ]
            : order === "changes first"
              ? [...all.map((b) => () => late.ingest(b)), () => late.ingest(forged), takeLog]
              : [
                  () => late.ingest(forged),
                  ...all.map((b) => () => late.ingest(b)),
                  takeLog,
                  () => late.ingest(forged),
                ];
        for (const step of steps) await step();
        for (const bytes of all) await late.ingest(bytes);
        await late.ingest(forged);
        await owner.ingest(forged);
        expect(await late.values()).toEqual({ a: "honest", b: "honest", c: "honest" });
        expect(await late.rows()).toEqual(await owner.rows());
        expect(owner.changes()).toHaveLength(late.changes().length);
      }));
  }

  test("[SYNC-8] both ends of a writer that forked before its removal stay", () =>
    withDevices(async (devices) => {
      const { owner, account, member } = await openPair(devices);
      for (const id of ["a", "b"]) await member.write(id, "honest");
      const last = decodeChange(member.changes().at(-1)!.bytes) as Change;
      const sibling = forgeSibling(member, last);
      await fetchFrom(owner, member);
      await owner.ingest(sibling);
      await remove(owner, account);
      expect(await owner.values()).toEqual({ a: "honest", b: "honest", forged: "forged" });
    }));
});
