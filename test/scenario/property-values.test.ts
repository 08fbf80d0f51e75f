/** Values of properties: formats, scopes, raw writes, backlinks, datetime filters, and what the server keeps. */
import { describe, expect } from "bun:test";
import { rule } from "../support/rule.ts";
import type { JsonObject, Page, WriteResult } from "../support/server/client.ts";
import { type CreatedType, createObject, createType } from "../support/server/fixtures.ts";
import { useTypedSpace } from "../support/worlds/typed-space.ts";

const { shared, spaceId, typeId, S, T, add, holder, set, row } = useTypedSpace();

describe("values", () => {
  rule("[TYPE-7] details name property, format and reason; nothing is written", async () => {
    const links = await add({ name: "Links", format: { type: "links" } });
    const day = await add({ name: "Day", format: { type: "date" } });
    const objectId = await holder();
    for (const [prop, format, value] of [
      [links, "links", ["nope"]],
      [day, "date", { $date: "2026-01-31T09:30:00Z" }],
    ] as const) {
      const reply = await set(objectId, { [day.id]: null, [prop.id]: value as never });
      expect(reply.status).toBe(400);
      expect(reply.json).toMatchObject({
        error: { code: "property.format_violation", details: { propId: prop.id, format, reason: expect.any(String) } },
      });
    }
    expect(await row(objectId)).not.toHaveProperty(typeId());
    const created = { types: [typeId()], initialProperties: { [typeId()]: { [links.id]: ["nope"] } } };
    await shared.client.fails("POST", `${S()}/objects`, created, 400, "property.format_violation");
  });

  rule("[TYPE-7] details name property, kind and reason; a raw write is held to the kind as well", async () => {
    const prop = await add({ name: "Count", kind: "number" });
    const list = await add({ name: "List", kind: "array", items: { kind: "string" } });
    const objectId = await holder();
    const reply = await set(objectId, { [prop.id]: "five" });
    expect(reply.json).toMatchObject({
      error: {
        code: "property.kind_mismatch",
        details: { propId: prop.id, kind: "number", reason: expect.any(String) },
      },
    });
    const raw = (ops: JsonObject[]) => ({ objectId, dataset: "objects", records: [{ id: objectId, ops }] });
    const at = (propId: string) => `${typeId()}.${propId}`;
    for (const op of [
      { type: "$set", path: at(prop.id), value: "five" },
      { type: "$set", value: { [at(prop.id)]: "five" } },
      { type: "$inc", path: at(list.id), value: 1 },
      { type: "$addToSet", path: at(prop.id), value: 1 },
      { type: "$addToSet", path: at(list.id), value: 1 },
      { type: "$set", path: `${at(prop.id)}.x`, value: 1 },
      { type: "$set", path: "nav.type", value: "item" },
    ])
      await shared.client.fails("POST", `${S()}/modify`, raw([op]), 400, "property.kind_mismatch");
    await shared.client.post<WriteResult>(
      `${S()}/modify`,
      raw([
        { type: "$inc", path: at(prop.id), value: 2 },
        { type: "$addToSet", path: at(list.id), value: "x" },
      ]),
    );
    expect(await row(objectId)).toMatchObject({ [typeId()]: { [prop.id]: 2, [list.id]: ["x"] } });
  });

  rule("[TYPE-7] a raw synced write to what is not synced is dataset.validation", async () => {
    const local = await add({ name: "Here", kind: "string", scope: "local" });
    const objectId = await holder();
    for (const path of [`${typeId()}.${local.id}`, "chat.unreadCount", "chat.notifyMode", "svc.types"]) {
      const body = {
        objectId,
        dataset: "objects",
        records: [{ id: objectId, ops: [{ type: "$set", path, value: "x" }] }],
      };
      await shared.client.fails("POST", `${S()}/modify`, body, 400, "dataset.validation");
    }
  });

  rule("[TYPE-7] raw values stand under types of the space that the object carries", async () => {
    const prop = await add({ name: "Raw", kind: "string" });
    const [carrying, bare] = [await holder(), (await createObject(shared.client, spaceId())).id];
    const raw = (objectId: string, op: JsonObject) => ({
      objectId,
      dataset: "objects",
      records: [{ id: objectId, ops: [op] }],
    });
    const setOp = (path: string): JsonObject => ({ type: "$set", path, value: "x" });
    for (const op of [setOp("nowhere.x"), setOp("task.x"), { type: "$set", path: "", value: { "nowhere.x": 1 } }]) {
      const error = await shared.client.fails("POST", `${S()}/modify`, raw(carrying, op), 400, "type.not_found");
      expect(["nowhere", "task"]).toContain(error.details!["typeId"] as string);
    }
    for (const path of [`${typeId()}.${prop.id}`, "spaceIndex.name", "type.xkey"]) {
      const error = await shared.client.fails(
        "POST",
        `${S()}/modify`,
        raw(bare, setOp(path)),
        400,
        "dataset.validation",
      );
      expect(error.details).toMatchObject({ dataset: "objects", path });
    }
    await shared.client.post<WriteResult>(`${S()}/modify`, raw(carrying, setOp(`${typeId()}.${prop.id}`)));
    await shared.client.post<WriteResult>(`${S()}/modify`, raw(bare, setOp("svc.name")));
    expect(await row(carrying)).toMatchObject({ [typeId()]: { [prop.id]: "x" } });
    expect(await row(bare)).toMatchObject({ svc: { name: "x" } });
    expect(await row(bare)).not.toHaveProperty("spaceIndex");
  });

  rule("[TYPE-7] chat.notifyMode is all, mentions or none", async () => {
    const chat = (await createObject(shared.client, spaceId(), { types: ["chat"] })).id;
    const path = `${S()}/properties/${chat}/set/chat`;
    const modeOf = async () => ((await row(chat))["chat"] as JsonObject | undefined)?.["notifyMode"];
    for (const notifyMode of ["loud", "", "ALL"]) {
      const error = await shared.client.fails("POST", path, { patch: { notifyMode } }, 400, "request.invalid_field");
      expect(error.details).toMatchObject({ field: "notifyMode" });
      const create = { types: ["chat"], initialProperties: { chat: { notifyMode } } };
      await shared.client.fails("POST", `${S()}/objects`, create, 400, "request.invalid_field");
    }
    for (const notifyMode of ["all", "mentions", "none"]) {
      await shared.client.post<WriteResult>(path, { patch: { notifyMode } });
      expect(await modeOf()).toBe(notifyMode);
    }
    await shared.client.post<WriteResult>(path, { patch: { notifyMode: null } });
    expect(await modeOf()).toBeUndefined();
  });

  rule("[API-7] instants come back in UTC with milliseconds, in whatever form they were given", async () => {
    const prop = await add({ name: "When", kind: "datetime" });
    for (const given of ["2026-01-31T10:30:00+01:00", Date.UTC(2026, 0, 31, 9, 30)]) {
      const objectId = await holder();
      await set(objectId, { [prop.id]: { $date: given } });
      expect(await row(objectId)).toMatchObject({
        [typeId()]: { [prop.id]: { $date: "2026-01-31T09:30:00.000Z" } },
      });
    }
    const body = { filter: { [`${typeId()}.${prop.id}`]: { $gte: { $date: "2026-01-31T09:30:00Z" } } } };
    expect((await shared.client.post<Page>(`${S()}/objects/query`, body)).records).toHaveLength(2);
  });

  rule("[QUERY-6] a declared datetime is compared with a $date only; the message says how", async () => {
    const prop = await add({ name: "Due", kind: "datetime" });
    const nested = await add({
      name: "Log",
      kind: "array",
      items: { kind: "object", properties: { at: { kind: "datetime" } } },
    });
    for (const path of [`${typeId()}.${prop.id}`, `${typeId()}.${nested.id}.at`, "createdAt", "modifiedAt"]) {
      for (const value of [5, "2026-01-31"]) {
        const body = { filter: { [path]: { $gt: value } } };
        const error = await shared.client.fails("POST", `${S()}/objects/query`, body, 400, "filter.invalid");
        expect(error.message).toContain("$date");
      }
    }
    const undeclared = { filter: { [`${typeId()}.nope`]: { $gt: 5 }, "svc.name": "x" } };
    expect((await shared.client.post<Page>(`${S()}/objects/query`, undeclared)).records).toEqual([]);
  });
});

describe("objects and types", () => {
  rule("[TYPE-1] svc, spaceIndex and type are attached to no object; create names types by id or xKey", async () => {
    for (const name of ["svc", "spaceIndex", "type", "nope"]) {
      const error = await shared.client.fails("POST", `${S()}/objects`, { types: [name] }, 400, "type.not_found");
      expect(error.details).toEqual({ typeId: name });
    }
    const object = await createObject(shared.client, spaceId(), { types: ["task", "page"] });
    expect(await row(object.id)).toMatchObject({ svc: { types: [typeId(), "page", "nav"] } });
  });

  rule("[OBJ-1] [API-19] types are attached and detached at create only", async () => {
    const objectId = await holder();
    for (const verb of ["attach", "detach"])
      await shared.client.fails(
        "POST",
        `${S()}/properties/${objectId}/${verb}/page`,
        undefined,
        501,
        "sdk.not_implemented",
      );
  });

  rule("[TYPE-1] a type's name is its object's: renaming it shows in the list", async () => {
    const made = await createType(shared.client, spaceId());
    await shared.client.post(`${S()}/properties/${made.typeId}/set/svc`, {
      patch: { name: "Renamed", icon: "bafyicon" },
    });
    expect(await shared.client.get(`${S()}/types/${made.typeId}`)).toMatchObject({
      name: "Renamed",
      iconCid: "bafyicon",
    });
  });

  rule("[OBJ-2] one entry per object and property, of links properties of types still carried", async () => {
    const links = await add({ name: "Refs", format: { type: "links" } });
    const plain = await add({ name: "Not links", kind: "array" });
    const target = await holder();
    const [one, two] = [await holder(), await holder()];
    const url = `svc://${target}`;
    await set(one, { [links.id]: [url, url], [plain.id]: [url] });
    await set(two, { [links.id]: [`svc://${one}`, url] });
    const backlinks = async (id: string) =>
      (await shared.client.get<{ backlinks: JsonObject[] }>(`${S()}/objects/${id}/backlinks`)).backlinks;
    const entry = (objectId: string) => ({ objectId, typeId: typeId(), propId: links.id });
    const sorted = [one, two].toSorted().map(entry);
    expect(await backlinks(target)).toEqual(sorted);
    expect(await backlinks(one)).toEqual([entry(two)]);
    expect(await backlinks("bafyunknown")).toEqual([]);
    await set(two, { [links.id]: [`svc://${one}`] });
    expect(await backlinks(target)).toEqual([entry(one)]);
    await shared.client.del(`${S()}/objects/${one}`);
    expect(await backlinks(target)).toEqual([]);
    await set(two, { [links.id]: [url] });
    expect(await backlinks(target)).toEqual([entry(two)]);
    await shared.client.del(`${T()}/properties/${links.id}`);
    expect(await backlinks(target)).toEqual([]);
  });
});

describe("values given when an object is created", () => {
  rule("[TYPE-7] each goes where its scope says: none of a private one is in the object's changes", async () => {
    const [synced, local, account] = await Promise.all([
      add({ name: "n", kind: "number" }),
      add({ name: "on this device", kind: "number", scope: "local" }),
      add({ name: "of this account", kind: "number", scope: "account" }),
    ]);
    const values = { [synced!.id]: 1, [local!.id]: 2, [account!.id]: 3 };
    const body = { types: [typeId()], initialProperties: { task: values } };
    const { id } = await createObject(shared.client, spaceId(), body);
    expect((await row(id))[typeId()]).toEqual(values);
    const { changes } = await shared.client.get<{ changes: JsonObject[] }>(`${S()}/objects/${id}/history`);
    const text = JSON.stringify(changes);
    expect([synced, local, account].map((property) => text.includes(property!.id))).toEqual([true, false, false]);
  });

  rule("[TYPE-7] a bundle's root is everybody's: private values are refused", async () => {
    const local = await add({ name: "on this device", kind: "number", scope: "local" });
    const answer = await shared.client.request("POST", `${S()}/bundles`, {
      body: { id: "private/v1", rootTypes: [typeId()], rootProperties: { task: { [local.id]: 2 } } },
    });
    expect([answer.status, (answer.json as { error: JsonObject }).error["code"]]).toEqual([
      400,
      "request.invalid_field",
    ]);
  });
});

describe("what the server keeps", () => {
  rule("[OBJ-4] counters of a chat are not written, neither later nor when it is created", async () => {
    const { id } = await createObject(shared.client, spaceId(), { types: ["chat"] });
    const patch = { unreadCount: 9 };
    for (const [path, body] of [
      [`${S()}/properties/${id}/set/chat`, { patch }],
      [`${S()}/objects`, { types: ["chat"], initialProperties: { chat: patch } }],
    ] as const)
      await shared.client.fails("POST", path, body, 400, "request.invalid_field");
    expect((await row(id))["chat"]).toBeUndefined();
  });

  rule("[TYPE-1] a raw write gives no type another's xKey", async () => {
    const [first, second] = [await createType(shared.client, spaceId()), await createType(shared.client, spaceId())];
    const ops = [{ type: "$set", path: "type.xkey", value: first.xKey }];
    const body = { objectId: second.id, dataset: "objects", records: [{ id: second.id, ops }] };
    await shared.client.fails("POST", `${S()}/modify`, body, 400, "dataset.validation");
    const read = await shared.client.get<CreatedType>(`${S()}/types/${second.id}`);
    expect(read.xKey).toBe(second.xKey);
  });
});
