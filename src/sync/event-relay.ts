import { bytesToHex, bytesToUtf8, utf8ToBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import { type CborValue, decodeCbor, encodeCbor } from "../base/dag-cbor.ts";
import type { PeerId, SpaceId } from "../base/ids.ts";
import { exceedsDepth } from "../base/json-depth.ts";
import type { Log } from "../base/log.ts";
import type { Account } from "../crypto/account.ts";
import { accountIdOf } from "../crypto/account-id.ts";
import { deriveKey } from "../crypto/derive.ts";
import { sha256 } from "../crypto/hash.ts";
import { parsePeerId } from "../crypto/peer-id.ts";
import { admitPublicKey } from "../crypto/public-key.ts";
import { seal, open as unseal } from "../crypto/seal.ts";
import { isSignedBy, readEnvelope, signEnvelope } from "../crypto/signed-envelope.ts";
import type { Json } from "../protocol/json.ts";
import { LIMITS } from "../protocol/limits.ts";
import type { Replica } from "../space/port/replica.ts";
import type { EventTransport } from "./transport.ts";
import type { Transports } from "./transports.ts";

/** Where an event goes: to the account's devices, or to a space's members. */
export type EventAudience = { readonly scope: "account" } | { readonly scope: "space"; readonly spaceId: string };

export interface ReceivedEvent {
  readonly audience: EventAudience;
  readonly topic: string;
  readonly data?: Json;
  readonly identity: string;
  readonly peerId: string;
}

export interface EventRelayDeps {
  readonly account: Account;
  readonly peerId: PeerId;
  readonly tech: Replica;
  readonly transports: Transports;
  readonly clock: Clock;
  readonly log: Log;
  open(spaceId: string): Promise<Replica | undefined>;
  receive(event: ReceivedEvent): void;
}

/** An event that is older than this, or as far in the future, is a replay or comes from a wrong clock. */
const MAX_SKEW_MS = 10 * 60_000;
const REMEMBERED = 4096;
/** The most that an event holds: its data, and what else it says. */
const PAYLOAD_BYTES = LIMITS.eventDataBytes + 8_192;
const FORMAT = 1;

/** Events between devices: signed by the account, sealed for the space, taken at most once. */
export type EventRelay = ReturnType<typeof createEventRelay>;

export function createEventRelay(deps: EventRelayDeps) {
  const { account, tech, clock, log } = deps;
  const transports = (): EventTransport[] => deps.transports.joined.flatMap(({ events }) => events ?? []);
  /** The topic patterns that streams want from each space; a transport that joins later gets them too. */
  const patternsBySpace = new Map<SpaceId, readonly string[]>();
  const seen = new Set<string>();
  let dropped = 0;

  const replicaOf = async (audience: EventAudience): Promise<Replica | undefined> =>
    audience.scope === "account" ? tech : deps.open(audience.spaceId);
  const audienceOf = (replica: Replica): EventAudience =>
    replica.id === tech.id ? { scope: "account" } : { scope: "space", spaceId: replica.id };
  const keyOf = (readKey: Uint8Array, spaceId: SpaceId) => deriveKey(readKey, "event", spaceId);

  /** `{k, b}`: id of the read key, and sealed under it the signed `{v, replica, topic, data, author, peer, time}`. */
  const wrap = (replica: Replica, topic: string, data: Json | undefined): Uint8Array | undefined => {
    const epoch = replica.readKey();
    if (!epoch) return undefined;
    const header = encodeCbor({
      v: FORMAT,
      space: replica.id,
      topic,
      data: data === undefined ? null : utf8ToBytes(JSON.stringify(data)),
      author: account.signer.publicKey,
      peer: deps.peerId,
      time: clock.nowMs(),
    });
    const signed = signEnvelope("event", header, account.signer);
    return encodeCbor({ k: epoch.id, b: seal(keyOf(epoch.key, replica.id), signed, epoch.id) }).slice();
  };

  const nameOf = (payload: Uint8Array): string => bytesToHex(sha256(payload).subarray(0, 16));
  const remember = (name: string): void => {
    seen.add(name);
    if (seen.size > REMEMBERED) for (const oldest of seen) if (seen.delete(oldest)) break;
  };

  const unwrap = (
    replica: Replica,
    payload: Uint8Array,
    patterns: readonly string[],
  ): ReceivedEvent | "unwanted" | undefined => {
    const outer = fields(payload);
    const keyId = outer?.["k"];
    const body = outer?.["b"];
    if (!(keyId instanceof Uint8Array) || !(body instanceof Uint8Array)) return undefined;
    const current = replica.readKey();
    // Sealed under the present key alone, because accounts that were removed hold the earlier ones.
    if (!current || bytesToHex(current.id) !== bytesToHex(keyId)) return undefined;
    const signed = unseal(keyOf(current.key, replica.id), body, current.id);
    if (!signed) return undefined;
    const envelope = readEnvelope(signed);
    const { v, space: spaceId, topic, data, author, peer, time } = envelope.header;
    if (
      envelope.bodyHash ||
      v !== FORMAT ||
      spaceId !== replica.id ||
      typeof topic !== "string" ||
      typeof peer !== "string" ||
      !parsePeerId(peer)
    )
      return undefined;
    // The LAN brings every event of the space.
    if (!patterns.some((pattern) => letsThrough(pattern, topic))) return "unwanted";
    if (!(author instanceof Uint8Array) || !admitPublicKey(author) || typeof time !== "number") return undefined;
    if (Math.abs(clock.nowMs() - time) > MAX_SKEW_MS) return undefined;
    if (!isSignedBy(author, "event", envelope)) return undefined;
    const permission = replica.acl.permissionOf(author);
    if (permission === "none" || permission === "guest") return undefined;
    const base = { audience: audienceOf(replica), topic, identity: accountIdOf(author), peerId: peer };
    if (data === null) return base;
    const fits = data instanceof Uint8Array && data.length <= LIMITS.eventDataBytes;
    const text = fits ? bytesToUtf8(data) : undefined;
    return text === undefined || exceedsDepth(text, LIMITS.bodyDepth)
      ? undefined
      : { ...base, data: JSON.parse(text) as Json };
  };

  /** Takes in a payload for a space, once, whichever transport brings it. */
  const take = (replica: Replica, payload: Uint8Array): void => {
    const patterns = patternsBySpace.get(replica.id);
    if (!patterns) return;
    if (payload.length > PAYLOAD_BYTES) {
      dropped++;
      return;
    }
    const name = nameOf(payload);
    if (seen.has(name)) return;
    let event: ReturnType<typeof unwrap>;
    try {
      event = unwrap(replica, payload, patterns);
    } catch (error) {
      if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
    }
    if (event === undefined) dropped++;
    else if (event !== "unwanted") {
      // Only events signed by a member are remembered: junk must not push out the ids of events that must not be taken
      // twice.
      remember(name);
      deps.receive(event);
    }
  };
  const watchOn = (transport: EventTransport, replica: Replica, patterns: readonly string[]): void =>
    transport.watch(replica, patterns, (payload) => take(replica, payload));

  const watchAll = async (transport: EventTransport): Promise<void> => {
    for (const spaceId of patternsBySpace.keys()) {
      const replica = spaceId === tech.id ? tech : await deps.open(spaceId);
      if (replica) watchOn(transport, replica, patternsBySpace.get(spaceId) ?? []);
    }
  };
  deps.transports.onJoined(({ events }) => {
    if (events) watchAll(events).catch((error: unknown) => log.debug("events: not watched", { err: error }));
  });

  return {
    take,
    dropped: (): number => dropped,

    /** Sends one event; does nothing if nobody is reached. */
    send(audience: EventAudience, topic: string, data: Json | undefined): void {
      if (transports().length === 0) return;
      replicaOf(audience)
        .then((replica) => {
          const payload = replica && wrap(replica, topic, data);
          if (!replica || !payload) return;
          remember(nameOf(payload));
          for (const transport of transports()) transport.publish(replica, topic, payload);
        })
        .catch((error: unknown) => log.debug("events: not sent", { err: error }));
    },

    /** The space is open now and its key is here, so the topics that streams want from it can be listened for. */
    attach(replica: Replica): void {
      const patterns = patternsBySpace.get(replica.id);
      if (patterns) for (const transport of transports()) watchOn(transport, replica, patterns);
    },

    /** Replaces the patterns wanted from an audience. */
    watch(audience: EventAudience, patterns: readonly string[]): void {
      const spaceId = audience.scope === "account" ? tech.id : (audience.spaceId as SpaceId);
      // A space that is closed, or ends, is not opened just to stop listening.
      if (patterns.length === 0) {
        patternsBySpace.delete(spaceId);
        this.detach(spaceId);
        return;
      }
      patternsBySpace.set(spaceId, patterns);
      replicaOf(audience)
        .then((replica) => {
          if (replica)
            for (const transport of transports()) watchOn(transport, replica, patternsBySpace.get(spaceId) ?? []);
        })
        .catch((error: unknown) => log.debug("events: not watched", { err: error }));
    },

    /** The space ended. Should it come back, `attach` listens for what is still wanted from it. */
    detach(spaceId: SpaceId): void {
      for (const transport of transports()) transport.forget(spaceId);
    },
  };
}

/** Whether a pattern names a topic: `*` is one segment, `>` one or more. */
function letsThrough(pattern: string, topic: string): boolean {
  const wanted = pattern.split("/");
  const given = topic.split("/");
  if (wanted.at(-1) === ">" ? given.length < wanted.length : given.length !== wanted.length) return false;
  return wanted.every((part, index) => part === ">" || part === "*" || part === given[index]);
}

function fields(bytes: Uint8Array): { [key: string]: CborValue } | undefined {
  const value = decodeCbor(bytes);
  const isMap = typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
  return isMap ? (value as { [key: string]: CborValue }) : undefined;
}
