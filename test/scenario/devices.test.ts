/** The registry of devices as one device shows it: its own row, claims, refusals (DEV-1, DEV-2). */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import type { JsonObject, Page } from "../support/server/client.ts";
import { uniqueName } from "../support/server/fixtures.ts";
import { runScenarios, type Scenario } from "../support/server/scenario.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";

interface Device {
  peerId: string;
  name?: string;
  os?: string;
  version?: string;
  apps?: Record<string, JsonObject>;
  activeClaims?: Record<string, { seq: number; at: number }>;
}
interface Devices {
  devices: Device[];
  active?: Record<string, string>;
  self: string;
}

/** A well-formed peer id of no device. */
const ABSENT = "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf";
const ME = "/v1/devices/me";
const ACTIVATE = "/v1/devices/activate";

let self: string;
let atBoot: Devices;
const shared = useServer({}, async ({ client }) => {
  atBoot = await client.get<Devices>("/v1/devices");
  self = atBoot.self;
});
const context = () => ({ client: shared.client, vars: { self } });
const devices = (): Promise<Devices> => shared.client.get<Devices>("/v1/devices");
const own = async (): Promise<Device> => (await devices()).devices.find(({ peerId }) => peerId === self)!;
const update = (body: JsonObject): Promise<void> => shared.client.put(ME, body, 204);
const activate = (app: string): Promise<void> => shared.client.post(ACTIVATE, { app }, 204);
const rows = async (body: JsonObject = {}): Promise<Page["records"]> =>
  (await shared.client.post<Page>("/v1/devices/query", body)).records;

describe("at boot", () => {
  rule("[DEV-1] the device has a row with name, os and version; nothing is active", () => {
    expect(atBoot.devices).toHaveLength(1);
    const [row] = atBoot.devices;
    expect(row).toEqual({
      peerId: self,
      name: expect.any(String),
      os: expect.stringMatching(/^(linux|darwin|windows|android|ios)$/),
      version: expect.any(String),
    });
    expect(atBoot).not.toHaveProperty("active");
  });

  rule("[DEV-1] a raw row has the peer id as its id", async () => {
    const [row, ...others] = await rows({ filter: { id: self } });
    expect(others).toEqual([]);
    expect(row).toMatchObject({ id: self, os: atBoot.devices[0]!.os! });
    expect(row).not.toHaveProperty("peerId");
    expect(await rows({ filter: { id: ABSENT } })).toEqual([]);
  });
});

rule("[DEV-1] what a person called the device stays over a restart; os and version are the server's", async () => {
  using root = scratchDir("svc-device-name");
  const row = async ({ client }: RunningServer) => (await client.get<Devices>("/v1/devices")).devices[0]!;
  let booted: Device;
  {
    await using server = await startServer({ dataDir: root.path });
    booted = await row(server);
    await server.client.put(ME, { name: "Kitchen" }, 204);
    await server.stop();
  }
  await using again = await startServer({ dataDir: root.path });
  expect(await row(again)).toEqual({ ...booted, name: "Kitchen" });
});

describe("PUT me", () => {
  rule("[DEV-1] a name is taken; an empty one means unchanged", async () => {
    await update({ name: "Kitchen" });
    await update({ name: "", apps: { [uniqueName("app")]: {} } });
    expect((await own()).name).toBe("Kitchen");
  });

  rule("[DEV-1] a name of 256 bytes is taken", async () => {
    const name = "é".repeat(128);
    await update({ name });
    expect((await own()).name).toBe(name);
  });

  rule("[DEV-1] apps merge slug by slug; a bag holds strings, numbers and booleans", async () => {
    const [first, second] = [uniqueName("app"), uniqueName("app")];
    const bag = { version: "1.2", build: 7, beta: true };
    await update({ apps: { [first]: bag } });
    await update({ apps: { [second]: {} } });
    expect((await own()).apps).toMatchObject({ [first]: bag, [second]: {} });
  });

  rule("[DEV-1] [DEV-2] null uninstalls an app and forfeits its claim; other apps stay", async () => {
    const [gone, kept] = [uniqueName("app"), uniqueName("app")];
    await activate(gone);
    await activate(kept);
    await update({ apps: { [gone]: null } });
    const row = await own();
    expect(row.apps).not.toHaveProperty(gone);
    expect(row.activeClaims).not.toHaveProperty(gone);
    const { active } = await devices();
    expect(active).not.toHaveProperty(gone);
    expect(active).toMatchObject({ [kept]: self });
  });

  const refused = (title: string, body: JsonObject, code: string, field?: string): Scenario => ({
    title: `[DEV-1] ${title}`,
    method: "PUT",
    path: ME,
    body,
    status: 400,
    code,
    ...(field === undefined ? {} : { details: { field } }),
  });
  const INVALID = "request.invalid_field";
  runScenarios(context, [
    refused("an empty update is refused", {}, "request.missing_field"),
    refused("an empty name alone is an empty update", { name: "" }, "request.missing_field"),
    refused("no apps alone is an empty update", { apps: {} }, "request.missing_field"),
    refused("an unknown key is refused", { os: "linux" }, "request.unknown_field"),
    refused("a name over 256 bytes is refused", { name: "é".repeat(129) }, INVALID, "name"),
    refused("an empty slug is refused", { apps: { "": {} } }, INVALID, "apps"),
    refused("a slug with a dot is refused", { apps: { "a.b": {} } }, INVALID, "apps"),
    refused("an app that is a text is refused", { apps: { a: "1.2" } }, INVALID, "apps.a"),
    refused("an app that is a list is refused", { apps: { a: [] } }, INVALID, "apps.a"),
    refused("an object in a bag is refused", { apps: { a: { v: {} } } }, INVALID, "apps.a.v"),
    refused("a list in a bag is refused", { apps: { a: { v: [1] } } }, INVALID, "apps.a.v"),
    refused("null in a bag is refused", { apps: { a: { v: null } } }, INVALID, "apps.a.v"),
  ]);

  rule("[DEV-1] a refused update changes nothing", async () => {
    const before = await devices();
    const apps = { good: { version: "1" }, bad: { v: null } };
    await shared.client.fails("PUT", ME, { name: "Never", apps }, 400, "request.invalid_field");
    expect(await devices()).toEqual(before);
  });
});

describe("activate", () => {
  rule("[DEV-2] a claim begins at 1, says the second, installs the app and wins", async () => {
    const app = uniqueName("app");
    await activate(app);
    const row = await own();
    expect(row.activeClaims![app]).toEqual({ seq: 1, at: expect.any(Number) });
    // Seconds, not milliseconds.
    expect(row.activeClaims![app]!.at).toBeLessThan(1e11);
    expect(row.apps).toHaveProperty(app);
    expect((await devices()).active).toMatchObject({ [app]: self });
  });

  rule("[DEV-2] another claim counts one up and keeps the app's bag", async () => {
    const app = uniqueName("app");
    await update({ apps: { [app]: { version: "2.0" } } });
    await activate(app);
    await activate(app);
    const row = await own();
    expect(row.activeClaims![app]!.seq).toBe(2);
    expect(row.apps![app]).toEqual({ version: "2.0" });
  });

  rule("[DEV-2] an installed app without a claim is not active", async () => {
    const app = uniqueName("app");
    await update({ apps: { [app]: {} } });
    expect((await devices()).active ?? {}).not.toHaveProperty(app);
  });

  runScenarios(context, [
    {
      title: "[DEV-2] a claim names its app",
      method: "POST",
      path: ACTIVATE,
      body: {},
      status: 400,
      code: "request.missing_field",
      details: { field: "app" },
    },
    {
      title: "[DEV-2] a claim's slug has no dot",
      method: "POST",
      path: ACTIVATE,
      body: { app: "a.b" },
      status: 400,
      code: "request.invalid_field",
      details: { field: "app" },
    },
  ]);
});

describe("remove and query", () => {
  runScenarios(context, [
    {
      title: "[DEV-1] a device cannot prune itself",
      method: "DELETE",
      path: "/v1/devices/{self}",
      status: 400,
      code: "device.self_delete",
    },
    {
      title: "[DEV-1] an unknown device is not found",
      method: "DELETE",
      path: `/v1/devices/${ABSENT}`,
      status: 404,
      code: "device.not_found",
    },
    {
      title: "[DEV-1] what is no peer id is not found",
      method: "DELETE",
      path: "/v1/devices/nobody",
      status: 404,
      code: "device.not_found",
    },
    {
      title: "[QUERY-7] a query names no object",
      method: "POST",
      path: "/v1/devices/query",
      body: { objectId: ABSENT },
      status: 400,
      code: "request.invalid_field",
      details: { field: "objectId" },
    },
    {
      title: "[QUERY-7] a query names no dataset",
      method: "POST",
      path: "/v1/devices/query",
      body: { dataset: "devices" },
      status: 400,
      code: "request.invalid_field",
      details: { field: "dataset" },
    },
  ]);

  rule("[LIVE-2] a subscription begins with the rows and follows a change", async () => {
    await using stream = await shared.client.stream("POST", "/v1/devices/query/subscribe", { filter: { id: self } });
    expect((await stream.snapshot()).records).toMatchObject([{ id: self }]);
    await update({ name: "Followed" });
    expect(await stream.changes()).toMatchObject([{ updated: [{ id: self, doc: { name: "Followed" } }] }]);
  });
});
