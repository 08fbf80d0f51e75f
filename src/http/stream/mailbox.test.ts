import { expect, test } from "bun:test";
import { LIMITS } from "../../protocol/limits.ts";
import { createMailbox } from "./mailbox.ts";

const frame = (text: string) => new TextEncoder().encode(text);
const text = (bytes: Uint8Array | undefined) => (bytes === undefined ? undefined : new TextDecoder().decode(bytes));
const lagged = (total: number) => frame(`<lagged ${total}>`);

test("[LIVE-4] frames come out in order, joined up to the size asked for", () => {
  const box = createMailbox({ capacity: 10 });
  for (const word of ["a", "b", "c", "d"]) expect(box.push(frame(word))).toBe(true);
  expect(text(box.take(1))).toBe("a");
  expect(text(box.take(2))).toBe("bc");
  expect(text(box.take(100))).toBe("d");
  expect([box.take(100), box.isEmpty]).toEqual([undefined, true]);
});

test("[LIVE-4] a full one refuses; what is forced passes", () => {
  const box = createMailbox({ capacity: 2 });
  expect(["a", "b", "c"].map((word) => box.push(frame(word)))).toEqual([true, true, false]);
  box.force(frame("z"));
  expect(text(box.take(100))).toBe("abz");
  expect([box.dropped, box.push(frame("d"))]).toEqual([0, true]);
});

test("[LIVE-4] dropped frames are counted and told where they are missing, the total growing", () => {
  const box = createMailbox({ capacity: 2, lagged });
  for (const word of ["a", "b", "x", "x"]) box.push(frame(word));
  expect(text(box.take(1))).toBe("a");
  expect(box.push(frame("c"))).toBe(true);
  expect(box.push(frame("x"))).toBe(false);
  expect(box.dropped).toBe(3);
  // The first notice already counts the later loss, so the second has nothing to add.
  expect(text(box.take(100))).toBe("b<lagged 3>c");
  box.push(frame("d"));
  box.push(frame("e"));
  box.push(frame("x"));
  expect(text(box.take(100))).toBe("de<lagged 4>");
  expect(box.isEmpty).toBe(true);
});

test("[LIVE-4] the bytes held are bounded, but one frame of any size passes", () => {
  const box = createMailbox({ capacity: 100 });
  const half = new Uint8Array(LIMITS.mailboxBytes / 2 + 1);
  expect([box.push(half), box.push(half)]).toEqual([true, false]);
  expect(box.take(1)?.length).toBe(half.length);
  expect(box.push(new Uint8Array(LIMITS.mailboxBytes + 1))).toBe(true);
  box.clear();
  expect(box.isEmpty).toBe(true);
});

test("[LIVE-4] a long run keeps order and forgets what was taken", () => {
  const box = createMailbox({ capacity: 300 });
  let next = 0;
  for (let n = 0; n < 5000; n++) {
    box.push(frame(`${n},`));
    if (n % 3 === 0) continue;
    const taken = text(box.take(1));
    expect(taken).toBe(`${next++},`);
    if (n % 2 === 0 && !box.isEmpty) expect(text(box.take(1))).toBe(`${next++},`);
  }
});
