import { expect, test } from "bun:test";
import type { Log } from "./log.ts";
import { createServices, type Service, startPart } from "./service.ts";

const errors: string[] = [];
const log = { error: (message: string) => void errors.push(message) } as unknown as Log;

function recorded(name: string, events: string[], faulty?: "start" | "stop"): Service {
  const step = (what: "start" | "stop") => {
    events.push(`${what} ${name}`);
    if (faulty === what) throw new Error(name);
  };
  return { name, start: async () => step("start"), stop: async () => step("stop") };
}

test("services start in order and stop in reverse, whatever one of them does", async () => {
  const events: string[] = [];
  const services = createServices(log);
  services.add(recorded("a", events));
  services.add(recorded("b", events, "start"));
  services.add(recorded("c", events, "stop"));
  await services.startAll();
  await services.stopAll();
  expect(events).toEqual(["start a", "start b", "start c", "stop c", "stop b", "stop a"]);
  expect(errors).toHaveLength(2);
});

test("stopping again stops nothing twice", async () => {
  const events: string[] = [];
  const services = createServices(log);
  services.add(recorded("a", events));
  await services.stopAll();
  await services.stopAll();
  await services.startAll();
  expect(events).toEqual(["stop a"]);
});

test("a service that another adds when it starts is started after all, and stopped before them", async () => {
  const events: string[] = [];
  const services = createServices(log);
  const adding = recorded("a", events);
  services.add({
    ...adding,
    async start() {
      await adding.start();
      services.add(recorded("c", events));
    },
  });
  services.add(recorded("b", events));
  await services.startAll();
  await services.stopAll();
  expect(events).toEqual(["start a", "start b", "start c", "stop c", "stop b", "stop a"]);
});

test("what is part of a service is stopped with it, also if it failed to start", async () => {
  const events: string[] = [];
  const begun = new AsyncDisposableStack();
  await startPart(begun, recorded("a", events));
  await expect(startPart(begun, recorded("b", events, "start"))).rejects.toThrow("b");
  await begun.disposeAsync();
  expect(events).toEqual(["start a", "start b", "stop b", "stop a"]);
});
