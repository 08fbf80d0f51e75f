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
