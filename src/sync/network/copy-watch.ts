import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { decodeCbor, encodeCbor } from "../../base/dag-cbor.ts";
import type { PeerId } from "../../base/ids.ts";
import { randomBytes } from "../../base/random.ts";
import type { Service } from "../../base/service.ts";
import { deriveKey } from "../../crypto/derive.ts";
import { open, seal } from "../../crypto/seal.ts";
import type { NetworkStore } from "./network-store.ts";
import { deriveChannelKeys } from "./subjects.ts";

const INSTANCE_BYTES = 16;
const SAY_EVERY_MS = 30_000;
/** Answers follow each other no faster. */
const ANSWER_GAP_MS = 1_000;
const NOTHING = new Uint8Array(0);

export interface CopyWatchDeps {
  readonly store: Pick<NetworkStore, "events" | "state" | "onState">;
  readonly peerId: PeerId;
  /** Of the account's own space: its channel, and a key that its devices alone hold. */
  readonly transportSecret: Uint8Array;
  readonly readKey: Uint8Array;
  /** Another process runs with this peer id. */
  seen(): void;
}

/**
 * Notices over the network that another process runs with this device's key. Each says, to those who listen for the same
 * peer id, the random name of its run and the name of the other run that it heard last. A process that hears its own run
 * named knows that the other has heard it, and so runs now; a notice to an earlier run, or one that is replayed, names
 * another.
 */
export function createCopyWatch(deps: CopyWatchDeps): Service {
  const { store, peerId } = deps;
  const keys = deriveChannelKeys(deps.transportSecret);
  const key = deriveKey(deps.readKey, "device-copy", peerId);
  const topic = `copy/${peerId}`;
  const instance = randomBytes(INSTANCE_BYTES);
  let heard: Uint8Array = NOTHING;
  let answeredMs = Number.NEGATIVE_INFINITY;

  const say = (): void => {
    if (store.state().phase !== "online") return;
    store.events.publish(keys, topic, seal(key, encodeCbor([instance, heard]), NOTHING));
  };
  const hear = (payload: Uint8Array): void => {
    const said = readSaying(open(key, payload, NOTHING));
    if (!said || equalBytes(said.instance, instance)) return;
    if (equalBytes(said.heard, instance)) deps.seen();
    const isNew = bytesToHex(said.instance) !== bytesToHex(heard);
    heard = said.instance;
    // Otherwise two that hear each other would answer for ever.
    if (!isNew || performance.now() - answeredMs < ANSWER_GAP_MS) return;
    answeredMs = performance.now();
    say();
  };
  const ends: (() => void)[] = [];
  return {
    name: "copy watch",
    start() {
      const subscription = store.events.subscribe(keys, topic, hear);
      const stopState = store.onState(({ phase }) => {
        if (phase === "online") say();
      });
      const timer = setInterval(say, SAY_EVERY_MS);
      ends.push(
        () => subscription[Symbol.dispose](),
        stopState,
        () => clearInterval(timer),
      );
      say();
    },
    stop() {
      for (const end of ends) end();
    },
  };
}

function readSaying(bytes: Uint8Array | undefined): { instance: Uint8Array; heard: Uint8Array } | undefined {
  if (!bytes) return undefined;
  try {
    const value = decodeCbor(bytes);
    if (!Array.isArray(value) || value.length !== 2) return undefined;
    const [instance, heard] = value;
    if (!(instance instanceof Uint8Array) || instance.length !== INSTANCE_BYTES) return undefined;
    if (!(heard instanceof Uint8Array) || (heard.length !== 0 && heard.length !== INSTANCE_BYTES)) return undefined;
    return { instance: new Uint8Array(instance), heard: new Uint8Array(heard) };
  } catch {
    return undefined; // of another version
  }
}
