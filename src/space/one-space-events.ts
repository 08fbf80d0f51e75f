import { createEvents, type Events, type Listening } from "../base/events.ts";
import type { CommitBatch } from "../change/fold/commit-batch.ts";

/** What happens in one open space. */
interface OneSpaceEventMap {
  /** After a commit, once its writers were answered. */
  committed: [batch: CommitBatch];
  /** The ACL has moved: members, rights or keys may have changed. */
  aclChanged: [];
}

/** Where others listen to one open space. They are gone with it. */
export type OneSpaceEvents = Listening<OneSpaceEventMap>;
export const createOneSpaceEvents = (): Events<OneSpaceEventMap> => createEvents<OneSpaceEventMap>();
