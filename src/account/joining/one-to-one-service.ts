import { ONE_TO_ONE_TYPE } from "../../acl/record/space-header.ts";
import type { Clock } from "../../base/clock.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import type { Account } from "../../crypto/account.ts";
import { accountIdOf, parseAccountId } from "../../crypto/account-id.ts";
import { canSealTo } from "../../crypto/box.ts";
import { refusedAs, svcError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { SpaceInfo } from "../../protocol/space.ts";
import { oneToOneGenesis } from "../../space/one-to-one.ts";
import { writePairProfile } from "../../space/pair-profiles.ts";
import type { AccountStore } from "../../store/account-store.ts";
import type { SpaceRegistry } from "../life/space-registry.ts";
import { type SpaceStatus, spaceStatusOf } from "../own-space/space-status.ts";
import type { TechSpace } from "../own-space/tech-space.ts";
import { spaceInfoOf } from "../rows/space-info.ts";

/** Names, description and icon that somebody gave of the other participant. */
export interface DisplayHint {
  name?: string;
  description?: string;
  iconCid?: string;
}

/**
 * Spaces of two accounts. Both sides compute the same space, so nothing is exchanged to make it. A request that waits for
 * an answer is a row on this device alone (SPACE-4); an answer is shared by the account's devices.
 */
export type OneToOneService = ReturnType<typeof createOneToOneService>;

export function createOneToOneService(deps: {
  account: Account;
  tech: TechSpace;
  store: AccountStore;
  spaces: Pick<SpaceRegistry, "open" | "rowOf" | "knownRow">;
  clock: Clock;
  /** What this account says of itself. */
  profile(): DisplayHint | undefined;
  /** Tells the other that a space of the two was begun. */
  announce(other: AccountId): Promise<void>;
}) {
  const { account, tech, store, spaces, clock } = deps;

  /** Throws `request.invalid_field` for what is no account, and for oneself. */
  const pairWith = (identity: string, field: string): { other: AccountId; spaceId: SpaceId } => {
    const key = parseAccountId(identity);
    const refuse = (reason: Refusal, remedy: Refusal) =>
      refusedAs("request.invalid_field", { field }, { ...remedy, at: field }, { reason });
    if (!key || !canSealTo(key)) throw refuse(refusal("pair.no_account"), refusal("pair.give_account"));
    if (identity === account.id) throw refuse(refusal("pair.self"), refusal("pair.somebody_else"));
    return { other: accountIdOf(key), spaceId: oneToOneGenesis(account, key).spaceId };
  };

  /** Writes the row that all devices of the account see, in place of the row that only this device has. */
  const answer = async (spaceId: SpaceId, other: AccountId, move: "pairBegan" | "pairDeclined"): Promise<void> => {
    const pending = store.pendingSpace(spaceId);
    const hint = pending === undefined ? {} : (JSON.parse(pending) as JsonObject);
    const row = tech.spaceRow(spaceId);
    const fields: JsonObject = {};
    // The id follows from the two accounts, so a row that says something else was written without verification.
    if (!row || row["spaceType"] !== ONE_TO_ONE_TYPE) {
      Object.assign(fields, { spaceType: ONE_TO_ONE_TYPE, author: other });
      for (const field of ["name", "description", "iconCid", "settings"])
        if (hint[field] !== undefined) fields[field] = hint[field];
    }
    await tech.moveSpace(spaceId, move, fields);
    await store.dropPendingSpace(spaceId);
  };

  const open = async (spaceId: SpaceId): Promise<SpaceInfo> => {
    const space = await spaces.open(spaceId);
    await writePairProfile(space, deps.profile());
    return spaceInfoOf(spaces.rowOf(spaceId));
  };

  /** The other participant of a one-to-one row and its status. Throws `space.not_invite_pending` for other rows. */
  const pairRow = (spaceId: SpaceId): { other: AccountId; status: SpaceStatus } => {
    const row = spaces.rowOf(spaceId);
    const status = spaceStatusOf(row);
    if (row["spaceType"] !== ONE_TO_ONE_TYPE) {
      if (status === "deleted") throw svcError("space.deleted", { spaceId });
      throw refusedAs("space.not_invite_pending", { spaceId, status }, refusal("space.no_pair"));
    }
    return { other: row["author"] as AccountId, status };
  };

  return {
    /** Initiates, accepts what the other has begun, takes back a decline, or revives what was deleted. */
    async start(otherIdentity: string): Promise<SpaceInfo> {
      const { other, spaceId } = pairWith(otherIdentity, "otherIdentity");
      const row = tech.spaceRow(spaceId);
      const asked = store.pendingSpace(spaceId) !== undefined;
      if (!row || spaceStatusOf(row) !== "active") {
        await answer(spaceId, other, "pairBegan");
        if (!asked) await deps.announce(other);
      }
      return open(spaceId);
    },

    /**
     * Somebody began a one-to-one space: this device keeps it as pending, and shows it while there is room. A row there is
     * already is left alone.
     */
    async registerIncoming(peerIdentity: string, hint: DisplayHint): Promise<void> {
      const { other, spaceId } = pairWith(peerIdentity, "peerIdentity");
      if (spaces.knownRow(spaceId)) return;
      const row: JsonObject = {
        id: spaceId,
        createdAt: { $date: new Date(clock.nowMs()).toISOString() },
        spaceType: ONE_TO_ONE_TYPE,
        author: other,
        status: "one_to_one_pending",
        ...hint,
      };
      await store.addPendingSpace(spaceId, JSON.stringify(row), store.spacesOf(other).length > 0);
    },

    /** Throws the space resolution errors, and `space.not_invite_pending` for a space that is none of two. */
    async accept(spaceId: SpaceId): Promise<SpaceInfo> {
      const { other, status } = pairRow(spaceId);
      if (status === "deleted") throw svcError("space.deleted", { spaceId });
      if (status !== "active") await answer(spaceId, other, "pairBegan");
      return open(spaceId);
    },

    /** Holds on all devices of the account until it is accepted or begun again. */
    async decline(spaceId: SpaceId): Promise<void> {
      const { other, status } = pairRow(spaceId);
      if (status === "deleted") throw svcError("space.deleted", { spaceId });
      if (status === "active")
        throw refusedAs("space.not_invite_pending", { spaceId, status }, refusal("space.accepted"));
      if (status !== "one_to_one_declined") await answer(spaceId, other, "pairDeclined");
    },
  };
}
