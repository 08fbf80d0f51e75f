import { describe, expect, test } from "bun:test";
import { bodyBytes, createForger, setOf } from "../../../test/support/hostile/forged-change.ts";
import { add, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { refusal } from "../../protocol/refusals.ts";
import { PATIENCE_ROUNDS } from "../port/replica.ts";

describe("[CHANGE-5] what waits in vain is told", () => {
  test("a change under a read key that nobody was given is named with that key", async () => {
    await withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const member = createAccount();
      await owner.write("a", "1");
      await add(owner, member);
      const { space } = owner;
      const forger = createForger(space, space.engine.object(space.engine.derivedId("test.items", ""))!, member.signer);
      const keyId = randomBytes(16);
      const body = bodyBytes(`{"dataset":"items","records":[${setOf("a", "v", "2")}]}`);
      await owner.ingest(forger.write(body, { keyId }).bytes);
      for (let round = 0; round <= PATIENCE_ROUNDS; round++) await space.replica.age();
      const [reported] = space.replica.backlog().quarantined;
      expect(reported?.refusal).toEqual(refusal("change.waits_in_vain", { kind: "key", what: bytesToHex(keyId) }));
    });
  });
});
