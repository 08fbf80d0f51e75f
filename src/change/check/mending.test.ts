import { expect, test } from "bun:test";
import { withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { decodeChange } from "../codec/change-codec.ts";

test("[STORE-3] [CHANGE-11] a writer whose place was lost goes on where its changes end, once types are given again", () =>
  withDevices(async (devices) => {
    const device = devices.open("one", devices.owner);
    await device.write("a", "1");
    const { store, engine } = device.space;
    const writers = () => store.db.query("SELECT seq, last, lamport, changes, counted FROM writers ORDER BY no").all();
    const before = writers();
    for (const column of ["seq", "last", "lamport", "changes", "counted"])
      store.db.run(`UPDATE writers SET ${column} = ${column === "last" ? "'x'" : "x'00'"}`);
    await engine.mendTypes();
    expect(writers()).toEqual(before);
    await device.write("b", "2");
    for (const { bytes } of device.changes()) expect(() => decodeChange(bytes)).not.toThrow();
  }));
