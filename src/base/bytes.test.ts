import { expect, test } from "bun:test";
import fc from "fast-check";
import { base32ToBytes, bytesToBase32 } from "./base32.ts";
import { base58ToBytes, bytesToBase58 } from "./base58.ts";
import {
  base64ToBytes,
  base64UrlToBytes,
  bytesToBase64,
  bytesToBase64Url,
  bytesToHex,
  bytesToUtf8,
  compareBytes,
  concatBytes,
  equalBytes,
  hexToBytes,
  readUint32,
  readUint64,
  utf8ToBytes,
  writeUint32,
  writeUint64,
} from "./bytes.ts";
import { fillRandom, randomBytes } from "./random.ts";

const CODECS = [
  { name: "hex", encode: bytesToHex, decode: hexToBytes },
  { name: "base64", encode: bytesToBase64, decode: base64ToBytes },
  { name: "base64url", encode: bytesToBase64Url, decode: base64UrlToBytes },
  { name: "base32", encode: bytesToBase32, decode: base32ToBytes },
  { name: "base58", encode: bytesToBase58, decode: base58ToBytes },
];

for (const { name, encode, decode } of CODECS) {
  test(`${name}: decoding gives back what was encoded, in memory of its own`, () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 256 }), (bytes) => {
        const decoded = decode(encode(bytes));
        expect(decoded).toEqual(bytes);
        expect(decoded?.constructor).toBe(Uint8Array);
        expect(decoded?.buffer.byteLength).toBe(bytes.length);
      }),
    );
  });

  test(`${name}: a text is refused or is the only spelling of its bytes`, () => {
    const alphabet = "abcdxyzABCDXYZ0123456789+/-_= \n\u00e9";
    const text = fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 12 });
    fc.assert(
      fc.property(text, (input) => {
        const decoded = decode(input);
        if (decoded) expect(encode(decoded)).toBe(input);
      }),
      { numRuns: 2000 },
    );
  });
}

test("hex, base64 and base32: the values of RFC 4648 § 10", () => {
  const rows: [text: string, hex: string, base64: string, base32: string][] = [
    ["", "", "", ""],
    ["f", "66", "Zg==", "my"],
    ["fo", "666f", "Zm8=", "mzxq"],
    ["foo", "666f6f", "Zm9v", "mzxw6"],
    ["foob", "666f6f62", "Zm9vYg==", "mzxw6yq"],
    ["fooba", "666f6f6261", "Zm9vYmE=", "mzxw6ytb"],
    ["foobar", "666f6f626172", "Zm9vYmFy", "mzxw6ytboi"],
  ];
  for (const [text, hex, base64, base32] of rows) {
    const bytes = utf8ToBytes(text);
    expect([bytesToHex(bytes), bytesToBase64(bytes), bytesToBase32(bytes)]).toEqual([hex, base64, base32]);
  }
});

test("base58: the values of draft-msporny-base58-03 § 5", () => {
  const rows: [bytes: Uint8Array, base58: string][] = [
    [utf8ToBytes("Hello World!"), "2NEpo7TZRRrLZSi2U"],
    [
      utf8ToBytes("The quick brown fox jumps over the lazy dog."),
      "USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z",
    ],
    [hexToBytes("0000287fb4cd")!, "11233QC4"],
  ];
  for (const [bytes, base58] of rows) expect(bytesToBase58(bytes)).toBe(base58);
});

test("base58: what would cost the square of its length is refused", () => {
  expect(base58ToBytes("2".repeat(100_000))).toBeUndefined();
  expect(base58ToBytes("1".repeat(257))).toBeUndefined();
  expect(() => bytesToBase58(new Uint8Array(257))).toThrow(RangeError);
});

test("base32: last bits that are not zero and impossible lengths are refused", () => {
  expect(base32ToBytes("mz")).toBeUndefined();
  expect(base32ToBytes("m")).toBeUndefined();
  expect(base32ToBytes("mzx")).toBeUndefined();
  expect(base32ToBytes("MY")).toBeUndefined();
});

test("UTF-8: bytes that are not are refused, a byte order mark is kept", () => {
  for (const hex of ["ff", "c080", "eda080", "f4908080", "e282"]) expect(bytesToUtf8(hexToBytes(hex)!)).toBeUndefined();
  expect(bytesToUtf8(hexToBytes("efbbbf61")!)).toBe("\ufeffa");
  fc.assert(fc.property(fc.string({ unit: "grapheme" }), (text) => expect(bytesToUtf8(utf8ToBytes(text))).toBe(text)));
});

test("bytes compare unsigned, a prefix first", () => {
  const sorted = ["", "00", "0000", "01", "7f", "80", "ff", "ff00"].map((hex) => hexToBytes(hex)!);
  const shuffled = sorted.toReversed().sort(compareBytes);
  expect(shuffled).toEqual(sorted);
  expect(equalBytes(hexToBytes("ab")!, hexToBytes("ab")!)).toBe(true);
  expect(equalBytes(hexToBytes("ab")!, hexToBytes("ab00")!)).toBe(false);
  expect(concatBytes(...sorted)).toEqual(hexToBytes("000000017f80ffff00")!);
});

test("unsigned integers are big-endian and whole", () => {
  const bytes = new Uint8Array(12);
  writeUint32(bytes, 1, 0xfedcba98);
  expect(bytes.subarray(0, 6)).toEqual(new Uint8Array([0, 0xfe, 0xdc, 0xba, 0x98, 0]));
  expect(readUint32(bytes, 1)).toBe(0xfedcba98);
  writeUint64(bytes, 3, 0xfedcba9876543210n);
  expect(readUint64(bytes, 3)).toBe(0xfedcba9876543210n);
});

test("random bytes fill small and large targets and do not repeat", () => {
  const seen = new Set<string>();
  for (let i = 0; i < 2000; i++) seen.add(bytesToHex(randomBytes(12)));
  expect(seen.size).toBe(2000);
  const large = randomBytes(200_000);
  for (const offset of [0, 65_536, 131_072, 199_000]) {
    expect(large.subarray(offset, offset + 1000).some((byte) => byte !== 0)).toBe(true);
  }
  const framed = new Uint8Array(20);
  fillRandom(framed.subarray(4, 16));
  expect(framed.subarray(0, 4)).toEqual(new Uint8Array(4));
  expect(framed.subarray(16)).toEqual(new Uint8Array(4));
  expect(framed.subarray(4, 16)).not.toEqual(new Uint8Array(12));
});
