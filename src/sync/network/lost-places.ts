import { bytesToHex } from "../../base/bytes.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { LostPlace, Replica } from "../../space/replica.ts";
import type { NetworkStore } from "./network-store.ts";

const ATTEMPTS = 16;

/**
 * Tells those who stand at the place of an epoch whose branch of the chain lost how the chain goes on instead: its records
 * from where the two parted are put there, once a run.
 */
export function createLostPlaces(store: Pick<NetworkStore, "openChannel">) {
  const told = new Set<string>();

  const tell = async ({ secret, records }: LostPlace): Promise<boolean> => {
    const standing = new Set<string>();
    const never = Promise.withResolvers<void>();
    await using channel = store.openChannel({
      transportSecret: secret,
      port: {
        outgoing: async () => ({ items: [], exact: false }),
        deliverItems: () => never.promise,
        resetItems: async () => {},
        deliverAcl: async (delivered) => {
          for (const { bytes } of delivered) standing.add(bytesToHex(sha256(bytes)));
        },
        resetAcl: async () => standing.clear(),
        changed: () => {},
      },
    });
    try {
      await channel.readAcl();
      const lacking = () => records.find((bytes) => !standing.has(bytesToHex(sha256(bytes))));
      // Nobody ever stood there: nobody is to be told.
      if (standing.size === 0) return true;
      for (let attempt = 0; attempt < ATTEMPTS + records.length; attempt++) {
        const next = lacking();
        if (!next) return true;
        await channel.appendAcl(next);
      }
      return false;
    } finally {
      never.resolve();
    }
  };

  /** What the log of each was at when it was looked into last. */
  const lookedAt = new WeakMap<Replica, string>();
  return async (replica: Replica): Promise<void> => {
    const now = bytesToHex(replica.acl.head()) + bytesToHex(replica.acl.pendingDigest());
    if (lookedAt.get(replica) === now) return;
    for (const place of replica.lostPlaces()) {
      const name = `${bytesToHex(place.secret)} ${place.records.length}`;
      if (!told.has(name) && (await tell(place))) told.add(name);
    }
    lookedAt.set(replica, now);
  };
}
