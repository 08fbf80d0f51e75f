import { expect, test } from "bun:test";
import { highlighted } from "./highlights.ts";

test("what meets the query is marked by code points", () => {
  const pieces = highlighted({
    data: "😀 oat milk, milk",
    highlights: [
      [6, 10],
      [12, 16],
    ],
  });
  expect(pieces).toEqual([
    { text: "😀 oat ", marked: false },
    { text: "milk", marked: true },
    { text: ", ", marked: false },
    { text: "milk", marked: true },
  ]);
  expect(highlighted({ data: "none", highlights: [] })).toEqual([{ text: "none", marked: false }]);
});
