import { expect, test } from "bun:test";
import { join } from "node:path";
import { scratchDir } from "../../../test/support/scratch.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { openSpaceStore } from "../space-store.ts";

test("[ACL-17] requests that came early are kept once each and in their order, the newest of all spaces, after a restart too", () => {
  using dir = scratchDir("svc-store");
  const path = join(dir.path, "space.db");
  const ids = Array.from({ length: 20 }, () => randomBytes(32));
  const spaceOf = (at: number): string => (at % 2 === 0 ? "one" : "other");
  const first = openSpaceStore(path);
  for (const [at, id] of ids.entries()) first.earlyRequests.put(id, spaceOf(at), id, 8);
  first.earlyRequests.put(ids[13]!, "other", ids[13]!, 8);
  first.earlyRequests.drop(ids[15]!);
  first.close();
  const again = openSpaceStore(path);
  const kept = (space: string) => again.earlyRequests.of(space).map(bytesToHex);
  expect(kept("one")).toEqual([12, 14, 16, 18].map((at) => bytesToHex(ids[at]!)));
  expect(kept("other")).toEqual([13, 17, 19].map((at) => bytesToHex(ids[at]!)));
  again.close();
});
