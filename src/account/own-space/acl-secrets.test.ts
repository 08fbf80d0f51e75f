import { expect, test } from "bun:test";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { pairLinkKeyOf } from "../../acl/record/space-keys.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import { sharedSecret } from "../../crypto/box.ts";
import { createAclSecrets } from "./acl-secrets.ts";
import type { TechSpace } from "./tech-space.ts";

const SPACE = "space" as SpaceId;

test("[SPACE-5] the place of a space is that of the record as it is now", () => {
  const texts = new Map<string, string>();
  const tech = { recordText: (_: unknown, id: string) => texts.get(id) } as unknown as TechSpace;
  const [account, one, other] = [createAccount(), createAccount(), createAccount()];
  const secrets = createAclSecrets(tech, account);
  const keep = (adder: AccountId, secret: number) => {
    const place = Buffer.alloc(32, secret).toString("base64");
    texts.set(SPACE, JSON.stringify({ place, adder }));
  };
  expect(secrets.placeOf(SPACE)).toBeUndefined();
  for (const [adder, secret] of [
    [one, 1],
    [other, 1],
    [other, 2],
  ] as const) {
    keep(adder.id, secret);
    for (let time = 0; time < 2; time++)
      expect(secrets.placeOf(SPACE)).toEqual({
        spaceId: SPACE,
        transportSecret: new Uint8Array(32).fill(secret),
        linkKey: pairLinkKeyOf(SPACE, sharedSecret(account.seed, adder.signer.publicKey)),
        seeds: [account.seed],
      });
    expect(secrets.placeOf("another" as SpaceId)).toBeUndefined();
  }
  texts.delete(SPACE);
  expect(secrets.placeOf(SPACE)).toBeUndefined();
  expect(secrets.wasAdded(SPACE)).toBe(false);
});
