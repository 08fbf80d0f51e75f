import { connect, type Schemas, SERVER } from "./api.ts";
import { addTask, COLUMNS, findBoard, moveTask, type Task, tasksQuery, toTask } from "./board.ts";
import type { Frame } from "./live.ts";
import { followTogether } from "./together.ts";

const server = new URLSearchParams(location.search).get("server") ?? SERVER;
const api = connect(server);
const status = element("status");
const tasks = new Map<string, Schemas["AnyRecord"]>();
let hasSnapshot = false;

const board = await findBoard(api).catch((error: unknown) => say(`No server at ${server} that lets us in: ${error}`));
if (board) {
  const subscription = {
    id: "tasks",
    method: "POST" as const,
    path: `/v1/spaces/${board.spaceId}/query/subscribe`,
    body: tasksQuery(board),
  };
  followTogether(server, [subscription], { take, lost: (reason) => say(`Reconnecting: ${reason}`), soFar });
  element("add").addEventListener("submit", (event) => {
    event.preventDefault();
    const title = element("title", HTMLInputElement);
    addTask(api, board, title.value).then(
      () => {
        title.value = "";
      },
      (error: unknown) => say(String(error)),
    );
  });
} else if (status.textContent === "") say("There is no board yet: bun tasks.ts add 'A first task'");

function take(frame: Frame): void {
  if (frame.event === "snapshot") {
    hasSnapshot = true;
    tasks.clear();
    for (const record of frame.data.records) tasks.set(record.id, record);
    say("Live");
  } else if (frame.event === "changes") {
    for (const { added = [], updated = [], removed = [] } of frame.data) {
      for (const { id } of removed) tasks.delete(id);
      for (const { id, doc } of [...added, ...updated]) tasks.set(id, doc);
    }
  }
  show();
}

function soFar(): Frame[] {
  return hasSnapshot ? [{ id: "tasks", event: "snapshot", data: { records: [...tasks.values()] } }] : [];
}

/** The window does not say where a record stands in it: its own sort does. */
function show(): void {
  const sorted = [...tasks.values()].map(toTask).sort((a, b) => a.pos - b.pos || (a.id < b.id ? -1 : 1));
  for (const column of COLUMNS) {
    element(column).replaceChildren(...sorted.filter((task) => task.column === column).map(card));
  }
}

function card(task: Task): HTMLElement {
  const item = document.createElement("li");
  item.append(task.title);
  for (const column of COLUMNS) {
    if (column === task.column) continue;
    const button = document.createElement("button");
    button.textContent = `→ ${column}`;
    button.onclick = () => {
      if (board) moveTask(api, board, task.id, column).catch((error: unknown) => say(String(error)));
    };
    item.append(" ", button);
  }
  return item;
}

function say(text: string): undefined {
  status.textContent = text;
}

function element(id: string): HTMLElement;
function element<T extends HTMLElement>(id: string, kind: new () => T): T;
function element(id: string, kind: new () => HTMLElement = HTMLElement): HTMLElement {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}
