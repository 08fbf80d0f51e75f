/** Adds, moves and lists tasks: `bun tasks.ts add Buy milk`, `bun tasks.ts move <id> done`, `bun tasks.ts`. */
import { connect, SERVER } from "./api.ts";
import { addTask, COLUMNS, findBoard, listTasks, makeBoard, moveTask } from "./board.ts";

const api = connect(process.env["SVC_URL"] ?? SERVER);
const board = (await findBoard(api)) ?? (await makeBoard(api));
const [command = "list", ...words] = process.argv.slice(2);

if (command === "add") {
  console.log(await addTask(api, board, words.join(" ")));
} else if (command === "move") {
  const [id = "", to] = words;
  const column = COLUMNS.find((name) => name === to);
  if (!column) throw new Error(`there are the columns ${COLUMNS.join(", ")}`);
  if (!(await moveTask(api, board, id, column))) throw new Error(`there is no task ${id}`);
} else if (command === "list") {
  for (const { id, column, title } of await listTasks(api, board)) console.log(id, column, title);
} else throw new Error(`${command} is none of add, move, list`);
