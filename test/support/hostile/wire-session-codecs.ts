/** The messages of a sync session. */
import { encodeCbor } from "../../../src/base/dag-cbor.ts";
import * as messages from "../../../src/sync/session/messages.ts";
import { mutateEncoded } from "./mutate.ts";
import { bytesOf, map, refusesWith, spaceId, type WireCodec } from "./wire-codec.ts";

const writer = {
  author: bytesOf(32),
  writer: bytesOf(16),
  seq: 3,
  count: 3,
  last: bytesOf(32),
  forks: new Uint8Array(0),
};
const STATE: messages.SpaceState = {
  known: true,
  same: false,
  more: false,
  aclHead: bytesOf(32),
  aclCount: 3,
  pending: bytesOf(32),
  content: true,
  lacks: bytesOf(32),
  vector: [writer],
} as unknown as messages.SpaceState;

/** A message of a session: what is left of it after reading is a fixed point, whatever else stood beside. */
const session = <T>(
  name: string,
  good: Uint8Array,
  decode: (bytes: Uint8Array) => T,
  encode?: (value: T) => Uint8Array,
): WireCodec => ({
  name: `session: ${name}`,
  weight: 4,
  make: () => good,
  spoil: mutateEncoded,
  decode,
  refuses: refusesWith(messages.SessionFault),
  ...(encode ? { encode: (value: never) => encode(decode(encode(value))) } : {}),
});

const PULL = {
  space: spaceId,
  vector: [writer],
  only: true,
  cursor: 4,
  chains: [{ author: bytesOf(32), writer: bytesOf(16), ids: [bytesOf(32)] }],
  held: [bytesOf(32)],
};
export const SESSION_CODECS: readonly WireCodec[] = [
  session("state", messages.encodeState(STATE).slice(), messages.decodeState, messages.encodeState),
  session(
    "state request",
    messages
      .encodeStateRequest(
        map({
          space: spaceId,
          aclHead: bytesOf(32),
          pending: bytesOf(32),
          digest: bytesOf(32),
        }) as never,
      )
      .slice(),
    messages.decodeStateRequest,
  ),
  session(
    "vector request",
    messages.encodeVectorRequest(spaceId, bytesOf(48), [bytesOf(32), bytesOf(32)]).slice(),
    messages.decodeVectorRequest,
    ({ space, after, parts }) => messages.encodeVectorRequest(space, after, parts),
  ),
  session(
    "vector",
    messages.encodeVectorPage({ shared: bytesOf(2), vector: [writer], rest: true }).slice(),
    messages.decodeVectorPage,
    messages.encodeVectorPage,
  ),
  session("pull", messages.encodePullRequest(PULL).slice(), messages.decodePullRequest, messages.encodePullRequest),
  session(
    "frame",
    messages.encodePullReply({ changes: [bytesOf(40)], next: 2, withheld: 0, needIds: [bytesOf(48)] }).slice(),
    messages.decodePullReply,
    messages.encodePullReply,
  ),
  session("wants", messages.encodeWants(spaceId, [bytesOf(32)]).slice(), messages.decodeWants, ({ space, ids }) =>
    messages.encodeWants(space, ids),
  ),
  session("items", messages.encodeItems([bytesOf(40)]).slice(), messages.decodeItems, messages.encodeItems),
  session("ACL request", messages.encodeAclRequest(spaceId, 3).slice(), messages.decodeAclRequest, ({ space, from }) =>
    messages.encodeAclRequest(space, from),
  ),
  session("space", messages.encodeSpaceName(spaceId).slice(), messages.decodeSpaceName, messages.encodeSpaceName),
  session("marks", messages.encodeMarks([[spaceId, bytesOf(32)]]).slice(), messages.decodeMarks, messages.encodeMarks),
  session(
    "guest proof",
    messages.encodeGuestProof(spaceId, bytesOf(32), bytesOf(64)).slice(),
    messages.decodeGuestProof,
    ({ space, key: of, proof }) => messages.encodeGuestProof(space, of, proof),
  ),
  session("payload", encodeCbor({ space: spaceId, payload: bytesOf(40) }).slice(), messages.decodeSpacePayload),
];
