import { type Api, answered, type Schemas } from "./api.ts";

export const COLUMNS = ["todo", "doing", "done"] as const;
export type Column = (typeof COLUMNS)[number];

export interface Task {
  readonly id: string;
  readonly title: string;
  readonly column: Column;
  readonly pos: number;
}

/** The object whose dataset `tasks` holds the tasks. */
export interface Board {
  readonly spaceId: string;
  readonly objectId: string;
}

const NAME = "Board";
const TYPE = "example_board";
const DATASET = "tasks";

/** What a task is. Who adds one names it (`idRule: user`), so that adding it twice is adding it once. */
const TASKS = {
  name: DATASET,
  idRule: "user",
  fields: [
    { key: "title", kind: "string", mutableBy: "any" },
    { key: "column", kind: "string", mutableBy: "any" },
    { key: "pos", kind: "number", mutableBy: "any" },
    { key: "addedBy", stamp: "creator" },
  ],
} satisfies Schemas["DatasetDraftBody"];

/** What a page follows: the tasks as they are, and every change. */
export function tasksQuery({ objectId }: Board): Schemas["ObjectWindowBody"] {
  return { objectId, dataset: DATASET, sort: ["pos"], limit: 500 };
}

/** The board of this account, if `makeBoard` has made it. */
export async function findBoard(api: Api): Promise<Board | undefined> {
  const spaces = answered(await api.POST("/v1/spaces/query", { body: { filter: { name: NAME, status: "active" } } }));
  for (const { id: spaceId } of spaces.records) {
    const params = { path: { spaceId } };
    const { types } = answered(await api.GET("/v1/spaces/{spaceId}/types", { params }));
    const type = types.find(({ xKey }) => xKey === TYPE);
    if (!type) continue;
    const body = { filter: { "svc.types": type.id }, sort: ["createdAt"], limit: 1 };
    const objects = answered(await api.POST("/v1/spaces/{spaceId}/objects/query", { params, body }));
    const [board] = objects.records;
    if (board) return { spaceId, objectId: board.id };
  }
  return undefined;
}

/** A space with a type that declares the tasks, and the object that has them. */
export async function makeBoard(api: Api): Promise<Board> {
  const { id: spaceId } = answered(await api.POST("/v1/spaces", { body: { name: NAME } }));
  const path = { spaceId };
  const { typeId } = answered(
    await api.POST("/v1/spaces/{spaceId}/types", { params: { path }, body: { xKey: TYPE, name: NAME } }),
  );
  const declared = await api.POST("/v1/spaces/{spaceId}/types/{typeId}/datasets", {
    params: { path: { spaceId, typeId } },
    body: TASKS,
  });
  answered(declared);
  const body = { types: [typeId], initialProperties: { svc: { name: NAME } } };
  const { id: objectId } = answered(await api.POST("/v1/spaces/{spaceId}/objects", { params: { path }, body }));
  return { spaceId, objectId };
}

export async function addTask(api: Api, { spaceId, objectId }: Board, title: string): Promise<string> {
  const id = crypto.randomUUID();
  const records = [{ id, fields: { title, column: "todo", pos: Date.now() } }];
  const { rejections } = answered(
    await api.POST("/v1/spaces/{spaceId}/upsert", {
      params: { path: { spaceId } },
      body: { objectId, dataset: DATASET, records },
    }),
  );
  const [rejection] = rejections;
  if (rejection) throw new Error(rejection.reason);
  return id;
}

/** Says whether there is such a task. */
export async function moveTask(api: Api, { spaceId, objectId }: Board, id: string, column: Column): Promise<boolean> {
  const { changeId, rejections = [] } = answered(
    await api.POST("/v1/spaces/{spaceId}/modify", {
      params: { path: { spaceId } },
      body: { objectId, dataset: DATASET, records: [{ id, ops: [{ type: "$set", path: "column", value: column }] }] },
    }),
  );
  const [rejection] = rejections;
  if (rejection) throw new Error(rejection.reason);
  return changeId !== "";
}

export async function listTasks(api: Api, { spaceId, objectId }: Board): Promise<Task[]> {
  const body = { objectId, dataset: DATASET, sort: ["pos"] };
  const params = { path: { spaceId } };
  return answered(await api.POST("/v1/spaces/{spaceId}/query", { params, body })).records.map(toTask);
}

/** A record as the board shows it: the server checked kinds, the rest is looked at here. */
export function toTask({ id, title, column, pos }: Schemas["AnyRecord"]): Task {
  return {
    id,
    title: typeof title === "string" ? title : "",
    column: COLUMNS.find((name) => name === column) ?? "todo",
    pos: typeof pos === "number" ? pos : 0,
  };
}
