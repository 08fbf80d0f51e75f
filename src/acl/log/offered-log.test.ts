import { expect, test } from "bun:test";
import { scratchDir } from "../../../test/support/scratch.ts";
import { createDevices } from "../../../test/support/worlds/acl-devices.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { addAccounts } from "../compose/actions.ts";
import { encodeAclRecord } from "../record/record.ts";
import { type AclState, permissionOf } from "../reducer/state.ts";
import { judgeOfferedAcl } from "./offered-log.ts";

test("[ACL-11] of a log that forks the branch is judged that every member takes, in whatever order both stand", async () => {
  using dir = scratchDir("svc-offered-log");
  await using devices = createDevices(dir.path);
  const [one, other] = [devices.open("one", devices.owner), devices.open("other", devices.owner)];
  const root = one.aclLog().length;
  const added = [createAccount(), createAccount()];
  for (const [index, device] of [one, other].entries())
    for (const permission of ["reader", "writer"] as const)
      await device.space.aclService.act((context) =>
        addAccounts(context, [
          { identity: (permission === "reader" ? added[index]! : createAccount()).id, permission },
        ]),
      );
  const branches = [one, other].map((device) => device.aclLog().slice(root));
  const shared = one.aclLog().slice(0, root);
  const [first, second] = branches as [Uint8Array[], Uint8Array[]];
  const orders = [
    [...first, ...second],
    [...second, ...first],
    [first[0]!, second[0]!, first[1]!, second[1]!],
    [second[0]!, first[0]!, randomRecord(first[1]!), second[1]!, first[1]!],
    [...first, ...strangersRecords(one.space.acl.state, root), ...second],
    [...second, ...strangersRecords(one.space.acl.state, root), ...first],
  ];
  const judged = await Promise.all(orders.map((order) => judgeOfferedAcl(one.space.id, [...shared, ...order])));
  await one.space.aclService.take(other.aclLog());
  const head = bytesToHex(one.space.acl.head().id);
  expect(judged.map((each) => bytesToHex(each!.state.head!))).toEqual(orders.map(() => head));
  const members = added.map(({ signer }) => permissionOf(judged[0]!.state, signer.publicKey));
  expect(members.toSorted()).toEqual(["none", "reader"]);
});

/**
 * Valid records by an unknown account, all behind the record that both branches follow: more than the branches that are
 * looked into.
 */
function strangersRecords({ space, positions }: AclState, count: number): Uint8Array[] {
  const [prev] = [...positions].find(([, { pos }]) => pos === count - 1)!;
  const record = { space: space!, prev: Buffer.from(prev, "hex"), clock: 0, ops: [{ op: "selfRemove" } as const] };
  return Array.from({ length: 300 }, (_, time) => encodeAclRecord({ ...record, time }, createAccount().signer).bytes);
}

/** What anybody may have put there. */
const randomRecord = (like: Uint8Array): Uint8Array => crypto.getRandomValues(new Uint8Array(like.length));
