import { bytesToHex } from "../../base/bytes.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { LostPlace, Replica } from "../../space/port/replica.ts";
import { secretInLink } from "./acl-append.ts";
import type { NetworkStore } from "./network-store.ts";

const ATTEMPTS = 16;

/**
 * Tells those who stand at the place of an epoch whose branch of the log lost how the log goes on instead: its records
 * from where the two parted are put there, once a run. Whoever comes by there may have gone on, and begun another epoch: what
 * stands there is taken in, and where it leads to is told in turn.
 */
export function createLostPlaces(store: Pick<NetworkStore, "openChannel">) {
  const notified = new Set<string>();

  const notify = async (replica: Replica, { secret, records }: LostPlace): Promise<boolean> => {
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
          const gone = delivered.filter(({ bytes }) => !secretInLink(bytes));
          await replica.acl.takeEach(gone.map(({ bytes }) => new Uint8Array(bytes)));
        },
        resetAcl: async () => standing.clear(),
        changed: () => {},
      },
    });
    try {
      await channel.readAcl();
      const lacking = () => records.find((bytes) => !standing.has(bytesToHex(sha256(bytes))));
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

  const nameOf = ({ secret, records }: LostPlace): string => `${bytesToHex(secret)} ${records.length}`;
  return async (replica: Replica): Promise<void> => {
    for (let goesOn = true; goesOn; ) {
      goesOn = false;
      for (const place of replica.lostPlaces()) {
        if (notified.has(nameOf(place)) || !(await notify(replica, place))) continue;
        notified.add(nameOf(place));
        goesOn = true; // what was met there may lead further
      }
    }
  };
}
