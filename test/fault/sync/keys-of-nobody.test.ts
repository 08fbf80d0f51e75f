/**
 * Keys under which nothing can be sealed, named by an admin in a record of rights: half of all 32 bytes are no point of the
 * curve. Where one became a member, the read key could not be changed any more, nor members be recognised on the LAN.
 */
import { expect } from "bun:test";
import { changePermissions } from "../../../src/acl/compose/actions.ts";
import type { AclOp } from "../../../src/acl/record/op.ts";
import { encodeAclRecord } from "../../../src/acl/record/record.ts";
import { currentEpoch } from "../../../src/acl/reducer/state.ts";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { besiege } from "../../support/hostile/besieged.ts";
import { rule } from "../../support/rule.ts";
import { startServer } from "../../support/server/server.ts";
import { aclLogOf, createAccount, keyOffTheCurve } from "../../support/worlds/acl-world.ts";

rule(
  "[ACL-2] a record that makes a member of a key that nobody has is refused: members come and go as before, after a restart too",
  async () => {
    await using besieged = await besiege();
    const { server, owner, writer: admin, spaceId, world } = besieged;
    const path = `/v1/spaces/${spaceId}`;
    const nobody = keyOffTheCurve();
    world.act(owner, (context) => changePermissions(context, [{ identity: admin.id, permission: "admin" }]));
    const ops: AclOp[] = [
      { op: "accountAdd", account: nobody, permission: "reader" },
      {
        op: "shareKey",
        keyId: currentEpoch(world.state)!.epoch.keyId,
        sealed: [{ to: nobody, box: new Uint8Array(100).fill(1) }],
      },
    ];
    const next = { space: world.state.space!, prev: world.state.head!, time: 1, clock: world.state.clocks.at(-1)! };
    const forged = encodeAclRecord({ ...next, ops }, admin.signer).bytes;
    const peer = await besieged.join();
    const log = aclLogOf(world);
    await peer.push(spaceId, { aclLog: log });
    await peer.push(spaceId, { aclLog: [...log, forged] });
    await besieged.partAll();

    const identity = createAccount().id;
    const comeAndGo = async (client: typeof server.server.client): Promise<void> => {
      await client.post(`${path}/acl/add`, { accounts: [{ identity, permission: "reader" }] }, 204);
      await client.post(`${path}/acl/remove`, { identities: [identity] }, 204);
    };
    await comeAndGo(server.server.client);
    await besieged.goesOn();
    const add = { accounts: [{ identity: accountIdOf(nobody), permission: "reader" }] };
    const refused = await server.server.client.request("POST", `${path}/acl/add`, { body: add });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("not an account id")]);
    const pair = { identity: accountIdOf(nobody) };
    expect((await server.server.client.request("POST", "/v1/spaces/one-to-one", { body: pair })).status).toBe(400);

    await server.server.stop();
    await using again = await startServer({ dataDir: server.server.dataDir, env: { SVC_P2P_ENABLED: "true" } });
    await comeAndGo(again.client);
  },
  120_000,
);
