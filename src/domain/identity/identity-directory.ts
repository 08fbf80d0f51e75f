import type { Profile } from "../../account/own-space/tech-space.ts";
import { createEvents } from "../../base/events.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import { svcError } from "../../protocol/errors.ts";
import type { IdentitiesFrame, IdentityInfo } from "../../protocol/identity.ts";
import type { AccountStore } from "../../store/account-store.ts";

interface DirectoryDeps {
  store: Pick<
    AccountStore,
    "changeDirectory" | "membersOf" | "setMembers" | "spacesOf" | "identities" | "profile" | "putProfile"
  >;
  accountId: AccountId;
}

/**
 * The accounts that share a space with this one, and what is known of them (ACL-20). Kept on this device; carries no rights. One's
 * own account is not in it.
 */
export type IdentityDirectory = ReturnType<typeof createIdentityDirectory>;

export function createIdentityDirectory({ store, accountId }: DirectoryDeps) {
  const events = createEvents<{ changed: [frame: IdentitiesFrame] }>();

  const infoOf = (identity: string): IdentityInfo | undefined => {
    const spaceIds = identity === accountId ? [] : store.spacesOf(identity);
    if (spaceIds.length === 0) return undefined;
    const known = store.profile(identity);
    return { identity, ...(known ? (JSON.parse(known) as Profile) : {}), spaceIds };
  };

  /** Tells what a change made of these identities. */
  const notify = (before: ReadonlyMap<string, IdentityInfo | undefined>): void => {
    const frame: Required<IdentitiesFrame> = { added: [], updated: [], removed: [] };
    for (const [identity, was] of before) {
      const is = infoOf(identity);
      if (is && !was) frame.added.push(is);
      else if (!is && was) frame.removed.push(identity);
      else if (is && !Bun.deepEquals(is, was)) frame.updated.push(is);
    }
    const news: IdentitiesFrame = {
      ...(frame.added.length > 0 ? { added: frame.added } : {}),
      ...(frame.updated.length > 0 ? { updated: frame.updated } : {}),
      ...(frame.removed.length > 0 ? { removed: frame.removed } : {}),
    };
    if (Object.keys(news).length > 0) events.emit("changed", news);
  };

  const remember = (identities: Iterable<string>) =>
    new Map([...identities].map((identity) => [identity, infoOf(identity)]));

  /** Changes that are not in the store yet. While there is one, the store does not say what will be known. */
  let underWay = 0;
  const change = async (identities: () => Iterable<string>, apply: () => void): Promise<void> => {
    underWay++;
    try {
      const before = await store.changeDirectory(() => {
        const known = remember(identities());
        apply();
        return known;
      });
      notify(before);
    } finally {
      underWay--;
    }
  };

  return {
    list: (): IdentityInfo[] =>
      store
        .identities()
        .map(infoOf)
        .filter((info) => info !== undefined),
    get(identity: string): IdentityInfo {
      const info = infoOf(identity);
      if (!info) throw svcError("identity.not_found", { identity });
      return info;
    },
    /** The members of a space as its ACL has them now; none once the space was left. */
    async setMembers(spaceId: SpaceId, members: readonly AccountId[]): Promise<void> {
      const isKnown = () => Bun.deepEquals(store.membersOf(spaceId), [...members].sort());
      if (underWay === 0 && isKnown()) return; // as whenever a space is opened
      await change(
        () => [...store.membersOf(spaceId), ...members],
        () => store.setMembers(spaceId, members),
      );
    },
    /** What an account says of itself, now that its key has opened it. */
    async setProfile(identity: AccountId, profile: Profile): Promise<void> {
      const text = JSON.stringify(profile);
      if (underWay === 0 && store.profile(identity) === text) return;
      await change(
        () => [identity],
        () => store.putProfile(identity, text),
      );
    },
    subscribe: (listener: (frame: IdentitiesFrame) => void): (() => void) => events.on("changed", listener),
  };
}
