import { expect, test } from "bun:test";
import { createEvents } from "./events.ts";

interface Happenings {
  moved: [from: string, to: string];
  gone: [];
}

test("listeners are called in the order in which they were added, each for what it listens to", () => {
  const events = createEvents<Happenings>();
  const heard: string[] = [];
  events.on("moved", (from, to) => heard.push(`first ${from} ${to}`));
  events.on("gone", () => heard.push("gone"));
  events.on("moved", (_from, to) => heard.push(`second ${to}`));
  events.emit("moved", "a", "b");
  events.emit("gone");
  expect(heard).toEqual(["first a b", "second b", "gone"]);
});

test("what is relayed reaches those who listen here in its place, with what it is of before its arguments", () => {
  const one = createEvents<{ moved: [to: string]; gone: [] }>();
  const all = createEvents<{ moved: Happenings["moved"] }>();
  const heard: string[] = [];
  one.on("moved", (to) => heard.push(`before ${to}`));
  all.relay("moved", one, "a");
  one.on("moved", (to) => heard.push(`after ${to}`));
  all.on("moved", (from, to) => heard.push(`${from} ${to}`));
  one.emit("moved", "b");
  one.emit("gone");
  expect(heard).toEqual(["before b", "a b", "after b"]);
});

test("who stopped listening is not called any more, even when another listener stopped it just now", () => {
  const events = createEvents<Happenings>();
  const heard: string[] = [];
  events.on("gone", () => stopSecond());
  const stopSecond = events.on("gone", () => heard.push("second"));
  events.on("gone", () => heard.push("third"));
  events.emit("gone");
  events.emit("gone");
  expect(heard).toEqual(["third", "third"]);
});
