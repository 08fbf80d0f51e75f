import type { SpaceKeyRing } from "../../acl/key-ring.ts";
import type { AclLog } from "../../acl/log/acl-log.ts";
import { judgeOfferedAcl } from "../../acl/log/offered-log.ts";
import { openEpochKey } from "../../acl/record/epoch.ts";
import { transportSecretOf } from "../../acl/record/space-keys.ts";
import { currentEpoch } from "../../acl/reducer/state.ts";
import { bytesToHex } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";

export { isRootOf } from "../../acl/log/offered-log.ts";

/** Where the holder of a token finds a space. */
export interface SpacePlace {
  readonly spaceId: SpaceId;
  /** The secret of a place of the space on the network; undefined for a holder who may only ask to join. */
  readonly transportSecret: Uint8Array | undefined;
  /** The key by which members on the LAN recognise the holder of the token, or the account that they added. */
  readonly linkKey: Uint8Array;
  /** Secrets to whose keys the space's read keys may be sealed. */
  readonly seeds: readonly Uint8Array[];
}

/**
 * Where an epoch of a space is kept on the network. Each epoch has a place of its own, derived from its read key. The last
 * record in a place is the one that begins the next epoch; the log goes on in the next place after it.
 */
export interface Place {
  /** Hex of the id of the epoch's read key. */
  readonly keyId: string;
  /** Undefined while the epoch's key is not open here. */
  readonly secret: Uint8Array | undefined;
  /** Position of the first record of the log that stands there. */
  readonly from: number;
  /** Position of the record with which the place ends; undefined for the present place. */
  readonly to: number | undefined;
  /** Hex of that record's id. */
  readonly ending: string | undefined;
}

/** The parts of a space that say where it is. */
interface PlaceSource {
  readonly id: SpaceId;
  readonly acl: Pick<AclLog, "state" | "records">;
  readonly keys: SpaceKeyRing;
}

/** Hex of the id of the present read key. */
export const presentKeyIdOf = ({ acl }: PlaceSource): string => bytesToHex(acl.state.epochs.at(-1)!.epoch.keyId);

const secretsBySpace = new WeakMap<PlaceSource, Map<string, Uint8Array>>();
/** Derived once, because there is one for each epoch that there ever was. */
function secretOf(space: PlaceSource, keyId: string, key: Uint8Array): Uint8Array {
  const secrets = secretsBySpace.get(space) ?? new Map<string, Uint8Array>();
  secretsBySpace.set(space, secrets);
  const secret = secrets.get(keyId) ?? transportSecretOf(space.id, key);
  secrets.set(keyId, secret);
  return secret;
}

/**
 * All places of a space, oldest first. `seed` is that of the token by which the space is joined; read keys are sealed to
 * its key too.
 */
export function placesOf(space: PlaceSource, seed?: Uint8Array): Place[] {
  const { epochs } = space.acl.state;
  // A record that begins two epochs leaves the first of them without a place.
  const begun = epochs.filter(({ pos }, index) => epochs[index + 1]?.pos !== pos);
  return begun.map((entry, index): Place => {
    const keyId = bytesToHex(entry.epoch.keyId);
    const to = begun[index + 1]?.pos;
    const key = space.keys.byId(entry.epoch.keyId) ?? (seed && openEpochKey(space.id, entry, seed).key);
    return {
      keyId,
      secret: key && secretOf(space, keyId, key),
      from: index === 0 ? 0 : entry.pos + 1,
      to,
      ending: to === undefined ? undefined : bytesToHex(space.acl.records()[to]!.id),
    };
  });
}

/** The secret of the present place, as an offered log gives it to the holder of one of the seeds. */
export async function secretAfter(
  spaceId: SpaceId,
  records: readonly Uint8Array[],
  seeds: readonly Uint8Array[],
): Promise<Uint8Array | undefined> {
  const offered = await judgeOfferedAcl(spaceId, records);
  const entry = offered && currentEpoch(offered.state);
  for (const seed of entry ? seeds : []) {
    const { key } = openEpochKey(spaceId, entry!, seed);
    if (key) return transportSecretOf(spaceId, key);
  }
  return undefined;
}
