import { expect, test } from "bun:test";
import { exchange, fetchFrom, openPair, remove, withDevices } from "../../test/support/worlds/acl-devices.ts";
import { createAccount } from "../../test/support/worlds/acl-world.ts";
import { addAccounts } from "../acl/compose/actions.ts";
import { linkKeyOf } from "../acl/record/space-keys.ts";
import { bytesToHex } from "../base/bytes.ts";
import { createLinkKeys } from "./link-keys.ts";

test("[ACL-6] after a removal those who stay recognise each other by a new key, which who left has not", () =>
  withDevices(async (devices) => {
    const { owner, account: gone, member: former } = await openPair(devices);
    const staying = createAccount();
    await owner.space.aclService.act((c) => addAccounts(c, [{ identity: staying.id, permission: "reader" }]));
    const stayer = devices.open("stayer", staying);
    await fetchFrom(stayer, owner);
    await exchange([owner, former]);
    const all = [owner, stayer, former];
    const keys = all.map(({ account }) => createLinkKeys(account, () => undefined));
    const shown = (): string[][] =>
      keys.map((one, index) => {
        one.spaceChanged(all[index]!.space);
        return one.all().map(({ key }) => bytesToHex(key));
      });
    const ofEpoch = (): string => bytesToHex(linkKeyOf(owner.space.id, owner.space.keys.current()!.key));
    const before = ofEpoch();
    for (const each of shown()) expect(each).toContain(before);

    await remove(owner, gone);
    await exchange(all);
    const present = ofEpoch();
    expect(present).not.toBe(before);
    const [ofOwner, ofStayer, ofFormer] = shown();
    for (const each of [ofOwner, ofStayer]) expect(each).toContain(present);
    expect(ofFormer).not.toContain(present);
    for (const one of keys) one.close();
  }));
