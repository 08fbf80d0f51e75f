import { expect, test } from "bun:test";
import { readProgramSpec } from "./program-store.ts";

test("[AGENT-9] a program is named with its exact version, and in another space with that space's id", () => {
  const spaceId = "bafyreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";
  expect(readProgramSpec("digest@v1")).toEqual({ name: "digest", version: 1 });
  expect(readProgramSpec(`${spaceId}:daily.digest-2@v12`)).toEqual({ spaceId, name: "daily.digest-2", version: 12 });
  for (const spec of ["digest", "digest@1", "digest@v", "digest@v1.2", "@v1", "a b@v1", ":digest@v1", "x:digest@v1"])
    expect([spec, readProgramSpec(spec)]).toEqual([spec, undefined]);
});
