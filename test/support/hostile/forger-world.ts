/** Devices of one owner, and a forger who writes to them by hand. */
import { expect } from "bun:test";
import { type Device, withDevices } from "../worlds/acl-devices.ts";
import { bodyBytes, createForger } from "./forged-change.ts";

const TYPE = "test.items";
/** The object that devices of a test write to. */
export const objectOf = ({ space }: Device) => space.engine.object(space.engine.derivedId(TYPE, ""))!;
/** The plain bytes of a body with these records. */
export const withRecords = (records: string) => bodyBytes(`{"dataset":"items","records":[${records}]}`);

/** Two devices of the owner that hold the same, and somebody who writes to one of them by hand. */
export async function withForger(
  run: (world: { one: Device; two: Device; forge: ReturnType<typeof createForger> }) => Promise<void>,
) {
  await withDevices(async (devices) => {
    const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
    await one.write("a", "1");
    for (const { bytes } of one.changes()) await two.ingest(bytes);
    const forge = createForger(one.space, objectOf(one), devices.owner.signer);
    await run({ one, two, forge });
    // Whatever it was: both go on, and agree, also on what they fold anew.
    await one.write("after", "2");
    for (const { bytes } of one.changes()) await two.ingest(bytes);
    for (const { bytes } of two.changes()) await one.ingest(bytes);
    expect(await two.values()).toMatchObject({ a: "1", after: "2" });
    const rows = await one.rows();
    expect(await two.rows()).toEqual(rows);
    await two.space.engine.rebuildProjection();
    expect(await two.rows()).toEqual(rows);
  });
}
