import type { AccountId, SpaceId } from "../../base/ids.ts";
import type { PushSpace, PushSpaces, SpacePushKeys } from "./port.ts";
import { topicsOfChat, topicsOfSpace } from "./topics.ts";

/** The topics to watch under one space's key. */
export interface PlannedSpace {
  readonly keys: SpacePushKeys;
  readonly topics: readonly string[];
}

/** What the account is to hear of, as its spaces, chats and modes stand. */
export interface SubscriptionPlan {
  plan(): Promise<PlannedSpace[]>;
}

export function createSubscriptionPlan(deps: {
  spaces: PushSpaces;
  accountId: AccountId;
  /** A space's chats could not be listed. */
  onFault(spaceId: SpaceId, error: unknown): void;
}): SubscriptionPlan {
  const { spaces, accountId } = deps;
  /** Topics of spaces whose chats were listed: what holds while they cannot be listed. */
  const lastTopicsBySpace = new Map<SpaceId, readonly string[]>();

  const topicsOf = async (space: PushSpace): Promise<readonly string[]> => {
    const { spaceId, mode, modeByChat } = space;
    if (modeByChat.size === 0) return topicsOfSpace(mode, accountId);
    try {
      const chats = await spaces.chatsOf(spaceId);
      const topics = chats.flatMap((chat) => topicsOfChat(modeByChat.get(chat) ?? mode, chat, accountId));
      lastTopicsBySpace.set(spaceId, topics);
      return topics;
    } catch (error) {
      deps.onFault(spaceId, error);
      // Never the topics of the whole space: they would wake the device for chats that were silenced.
      return lastTopicsBySpace.get(spaceId) ?? [];
    }
  };

  return {
    async plan() {
      const planned: PlannedSpace[] = [];
      for (const space of spaces.active())
        if (space.keys) planned.push({ keys: space.keys, topics: await topicsOf(space) });
      return planned;
    },
  };
}
