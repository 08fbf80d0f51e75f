import { SYNC_BOUNDS } from "../session/bounds.ts";
import type { NetworkStore } from "./network-store.ts";

const FIND_MS = 10_000;
const FIND_STEP_MS = 20;

/**
 * The records on the ACL log of a space that is not held here, as they stand there, unjudged; undefined when there are none.
 * Of the space's content nothing is read.
 */
export async function findAcl(
  store: Pick<NetworkStore, "openChannel">,
  transportSecret: Uint8Array,
  isClosed: () => boolean,
): Promise<Uint8Array[] | undefined> {
  const records: Uint8Array[] = [];
  let size = 0;
  const read = Promise.withResolvers<void>();
  await using channel = store.openChannel({
    transportSecret,
    port: {
      outgoing: async () => ({ items: [], exact: false }),
      // The content is not for us yet: nothing of it is taken in, and reading on is not waited for.
      deliverItems: () => read.promise,
      resetItems: async () => {},
      async deliverAcl(delivered) {
        for (const { bytes } of delivered) {
          // Anybody who knows the place can fill it: what comes behind so much is not read.
          if (size > SYNC_BOUNDS.aclBytes) return;
          size += bytes.length + SYNC_BOUNDS.aclRecordCost;
          records.push(new Uint8Array(bytes));
        }
      },
      resetAcl: async () => void records.splice(0),
      changed: () => {},
    },
  });
  const deadline = performance.now() + FIND_MS;
  while (!isClosed() && performance.now() < deadline && !channel.state().acl.atTail) await Bun.sleep(FIND_STEP_MS);
  read.resolve();
  return records.length > 0 ? records : undefined;
}
