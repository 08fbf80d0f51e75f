import { expect, test } from "bun:test";
import { eventStreamPath, readEventFilter } from "./event-filter.ts";

const pathOf = (query: string) => eventStreamPath(readEventFilter(new URLSearchParams(query)));

test("what the form says becomes the stream's query", () => {
  expect(pathOf("")).toBe("/v1/events/subscribe");
  expect(pathOf("type=process.*, ui.open&target=a")).toBe("/v1/events/subscribe?type=process.*&type=ui.open&target=a");
  expect(pathOf("scope=space&spaceId=s1")).toBe("/v1/events/subscribe?scope=space&spaceId=s1");
});

test("a space goes with the scope space alone, and unknown scopes are none", () => {
  expect(pathOf("scope=device&spaceId=s1")).toBe("/v1/events/subscribe?scope=device");
  expect(pathOf("scope=nonsense")).toBe("/v1/events/subscribe");
});
