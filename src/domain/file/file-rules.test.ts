import { describe, expect, test } from "bun:test";
import { encodeDerivedRoot } from "../../change/codec/change-codec.ts";
import type { ChangeEnvelope } from "../../change/codec/dataset-rules.ts";
import { cidFromDigest, digestOfCid } from "../../crypto/cid.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { FILE_RULES, FILES_TYPE } from "./file-rules.ts";

const cid = (seed: number): string => cidFromDigest(sha256(Uint8Array.of(seed)));
const spaceId = cid(1);
const owner = cid(2);
const child = cidFromDigest(
  encodeDerivedRoot({ space: digestOfCid(spaceId)!, type: FILES_TYPE, derivation: owner }).id,
);
const envelope = { spaceId, objectId: child } as unknown as ChangeEnvelope;
const create = (value: Json) => FILE_RULES.refuseCreate!("id", [{ type: "$set", path: "", value }], envelope);

const stored: JsonObject = {
  objectId: owner,
  size: 5000,
  rootCid: cid(3),
  hash: "ab".repeat(32),
  keyId: "cd".repeat(16),
};
const inline: JsonObject = { objectId: owner, size: 3, data: "AAEC" };

describe("what a file's row may be, whoever wrote it (FILE-1, FILE-10)", () => {
  test("the rows that attaching writes are taken", () => {
    expect(create(stored)).toBeUndefined();
    expect(create({ ...stored, name: "a\0b", mime: "image/png", variant: "thumb", variantOf: "x" })).toBeUndefined();
    expect(create(inline)).toBeUndefined();
  });

  const refused: [why: string, row: Json][] = [
    ["no fields", "text"],
    ["a file of another object", { ...stored, objectId: cid(9) }],
    ["an owner that is no id", { ...stored, objectId: "../x" }],
    ["a root that is no CID", { ...stored, rootCid: "../../etc/passwd" }],
    ["a hash of another length", { ...stored, hash: "ab" }],
    ["a key id that is none", { ...stored, keyId: "x".repeat(32) }],
    ["a size below zero", { ...stored, size: -1 }],
    ["a size that is no whole number", { ...stored, size: 5000.5 }],
    ["a size beyond what a file may have", { ...stored, size: 2 ** 43 + 1 }],
    ["a size beyond exact numbers", { ...stored, size: 2 ** 60 }],
    ["a short file that lies elsewhere", { ...stored, size: 10 }],
    ["a content without its hash", { objectId: owner, size: 5000, rootCid: cid(3), keyId: "cd".repeat(16) }],
    ["bytes in the row and elsewhere", { ...stored, data: "AAEC" }],
    ["data of another size", { ...inline, size: 4 }],
    ["data that is no base64", { ...inline, data: "?" }],
    ["more data than fits a row", { objectId: owner, size: 6000, data: "A".repeat(8000) }],
    ["a media type with a line break", { ...stored, mime: "text/html\r\nx: y" }],
    ["a media type with parameters", { ...stored, mime: "text/html; charset=utf-8" }],
    ["a name that is too long", { ...stored, name: "n".repeat(4097) }],
    ["a variant of nothing", { ...stored, variant: "thumb" }],
    ["a field that files do not have", { ...stored, path: "/etc" }],
    ["a local field", { ...stored, durable: true }],
  ];
  for (const [why, row] of refused) test(`refused: ${why}`, () => expect(create(row)?.code).toBeString());

  test("a row never changes", () => {
    expect(FILE_RULES.refuseOp!(stored, ["name"], { type: "$set", path: "name", value: "x" }, false, envelope)).toEqual(
      refusal("file.pinned"),
    );
  });
});
