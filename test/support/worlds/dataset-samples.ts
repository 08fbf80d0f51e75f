/** What records of each built-in dataset look like, for tests that hold its rules to what all rules are held to. */
import { cidFromDigest } from "../../../src/crypto/cid.ts";
import { peerIdOf } from "../../../src/crypto/peer-id.ts";
import { FILES_TYPE } from "../../../src/domain/file/file-rules.ts";
import type { Json, JsonObject } from "../../../src/protocol/json.ts";

export interface DatasetSample {
  /** Ids that records are given; none where the fold makes them. */
  readonly ids?: readonly string[];
  /** Ids of accounts are those of the writers. */
  readonly idsAreWriters?: boolean;
  /** A record is created by one of these, as one value. */
  readonly created: readonly JsonObject[];
  /** What is set later, by path. */
  readonly set: Readonly<Record<string, readonly Json[]>>;
  /** They are records of the object that is derived from another by this type. */
  readonly derivedType?: string;
}

const CIDS = [1, 2, 3].map((byte) => cidFromDigest(new Uint8Array(32).fill(byte)));
const PEERS = [1, 2].map((byte) => peerIdOf(new Uint8Array(32).fill(byte)));
const TEXTS = ["", "one", "two"];
const ABOUT = { name: TEXTS, description: TEXTS };

/** By dataset. What types declare is written by `definitions.test.ts`. */
export const DATASET_SAMPLES: Readonly<Record<string, DatasetSample>> = {
  objects: { created: [], set: { "svc.name": TEXTS, "nav.pos": TEXTS, "chat.notifyMode": ["all"], createdAt: [1] } },
  chat_messages: {
    created: [{ text: "hello" }, { text: "@you", mentions: ["you"] }, { attachments: {} }],
    set: { text: TEXTS, mentions: [["you"], []], "reactions.x.WRITER": [1], "reactions.y.WRITER": [2], agent: [{}] },
  },
  editor_blocks: {
    created: [
      { type: "paragraph", text: "a", nav: { parentId: "", pos: "a" } },
      { type: "heading", nav: { parentId: "", pos: "b" } },
    ],
    set: { text: TEXTS, type: ["paragraph", ""], "nav.pos": ["c", ""], "style.bold": [true, 2], source: TEXTS },
  },
  space_index: { ids: ["space", "other"], created: [{ name: "n" }], set: ABOUT },
  pair_profiles: { idsAreWriters: true, created: [{ name: "n" }], set: ABOUT },
  bundles: {
    ids: ["notes/v1", "board/v2"],
    created: [
      { name: "Notes", rootId: CIDS[0]! },
      { rootId: CIDS[1]!, derived: true },
    ],
    set: { name: TEXTS, rootId: CIDS, derived: [true, false] },
  },
  bundle_children: { ids: CIDS, created: [{ root: CIDS[0]! }], set: { root: CIDS } },
  deletions: { ids: [...CIDS, "nothing"], created: [{}], set: { at: [1] } },
  files: {
    created: [
      { size: 2, data: "aGk=", name: "a.txt", mime: "text/plain", objectId: "OBJECT" },
      { size: 3, data: "aGk=", objectId: "OBJECT" },
    ],
    set: { name: TEXTS, durable: [true] },
    derivedType: FILES_TYPE,
  },
  spaces: {
    ids: [...CIDS, "nothing"],
    created: [{ name: "n", status: "active", spaceType: "a" }, { author: "me" }],
    set: { name: TEXTS, status: ["active", "left"], final: [true, false], spaceType: TEXTS, "push.at": [1] },
  },
  profile: { ids: ["profile", "other"], created: [{ name: "n" }], set: ABOUT },
  devices: {
    ids: [...PEERS, "nothing"],
    created: [{ name: "d", os: "linux" }],
    set: { name: TEXTS, "apps.a": [{ version: "1" }], "activeClaims.a": [{ seq: 1 }, 3], other: [1] },
  },
  read_frontiers: {
    ids: CIDS,
    created: [{ spaceId: "s" }],
    set: { "writers.a": [1, 2, 3, 4, 5], "writers.b": [1, 2, 3], spaceId: TEXTS },
  },
  account_values: { ids: CIDS, created: [{ chat: { notifyMode: "all" } }], set: { "chat.notifyMode": TEXTS } },
  space_roots: {
    ids: CIDS,
    created: [{ header: "h" }, { transport: "t" }],
    set: { header: TEXTS, aclRoot: TEXTS, transport: TEXTS },
  },
  acl_secrets: {
    ids: CIDS,
    created: [{ token: "t" }],
    set: { token: TEXTS, hint: TEXTS, "invites.a": TEXTS, "guests.b": TEXTS, other: TEXTS },
  },
};
