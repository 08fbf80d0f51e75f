import { bytesToHex } from "../../base/bytes.ts";
import { isRootOf, type SpacePlace, secretAfter } from "../../space/port/places.ts";
import { SYNC_BOUNDS } from "../session/bounds.ts";
import { secretInLink } from "./acl-append.ts";
import type { NetworkStore } from "./network-store.ts";

const FIND_MS = 10_000;
/** Places that are looked into for one space. */
const PLACES_MAX = 4096;
/** How many links of one place are followed: anybody who knows the place can have put false ones there. */
const LINKS_MAX = 4;

/**
 * How many parts of one place are read: anybody who ever knew it can have filled it behind its end. If the space turns out
 * to be ours, following it reads the rest.
 */
const PARTS_MAX = 2;

interface Found {
  readonly records: Uint8Array[];
  readonly links: Uint8Array[];
}

/**
 * The records of the ACL log of a space that is not held here, from the root on and otherwise unjudged; undefined when
 * there are none. From the given place it goes back to the first place, by the links, and forward as far as the log gives
 * the holder of one of the seeds the next read key. Nothing of the space's content is read.
 */
export async function findAcl(
  store: Pick<NetworkStore, "openChannel">,
  place: Pick<SpacePlace, "spaceId" | "transportSecret" | "seeds">,
  isClosed: () => boolean,
): Promise<Uint8Array[] | undefined> {
  const { spaceId, transportSecret, seeds } = place;
  if (!transportSecret) return undefined;
  const seen = new Set<string>();
  const lookInto = async (secret: Uint8Array): Promise<Found> => {
    const name = bytesToHex(secret);
    if (seen.has(name) || seen.size >= PLACES_MAX) return { records: [], links: [] };
    seen.add(name);
    return readPlace(store, secret, isClosed);
  };
  const backFrom = async (secret: Uint8Array): Promise<Uint8Array[] | undefined> => {
    const { records, links } = await lookInto(secret);
    const root = records.findIndex((bytes) => isRootOf(spaceId, bytes));
    if (root >= 0) return records.slice(root);
    for (const link of links) {
      const earlier = await backFrom(link);
      if (earlier) return [...earlier, ...records];
    }
    return undefined;
  };
  const records = await backFrom(transportSecret);
  for (;;) {
    const next = records && (await secretAfter(spaceId, records, seeds));
    const more = next && (await lookInto(next)).records;
    if (!more || more.length === 0) return records;
    records.push(...more);
  }
}

async function readPlace(
  store: Pick<NetworkStore, "openChannel">,
  transportSecret: Uint8Array,
  isClosed: () => boolean,
): Promise<Found> {
  const records: Uint8Array[] = [];
  const links: Uint8Array[] = [];
  let size = 0;
  let parts = 0;
  const read = Promise.withResolvers<void>();
  const full = Promise.withResolvers<void>();
  await using channel = store.openChannel({
    transportSecret,
    port: {
      outgoing: async () => ({ items: [], exact: false }),
      // The content is not for us yet: nothing of it is taken in, and the reader does not wait for it.
      deliverItems: () => read.promise,
      resetItems: async () => {},
      async deliverAcl(delivered) {
        for (const { bytes } of delivered) {
          const link = secretInLink(bytes);
          if (link && links.length < LINKS_MAX) links.push(link);
          // Anybody who knows the place can fill it, so nothing beyond this much is read.
          if (link || size > SYNC_BOUNDS.aclBytes) continue;
          size += bytes.length + SYNC_BOUNDS.aclRecordCost;
          records.push(new Uint8Array(bytes));
        }
        if (++parts === PARTS_MAX) full.resolve();
      },
      resetAcl: async () => {
        records.splice(0);
        links.splice(0);
      },
      changed: () => {},
    },
  });
  if (!isClosed()) {
    const unread = () => undefined; // then what was read until now is all there is
    await Promise.race([channel.readAcl().catch(unread), full.promise, Bun.sleep(FIND_MS)]);
  }
  read.resolve();
  return { records, links };
}
