/** The rooms of docs/architecture.md and who may import whom. `bun run check` runs this over the whole tree. */
import { join, normalize } from "node:path";
import { type ImportEdge, scanImports } from "./import-scan.ts";

/** What each room may import besides itself. Everything else is a breach. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  protocol: ["base"],
  crypto: ["base", "protocol"],
  sandbox: ["base", "protocol"],
  "push-link": ["base", "protocol", "crypto"],
  store: ["base", "protocol", "crypto"],
  search: ["base", "protocol", "crypto", "store"],
  query: ["base", "protocol", "crypto", "store"],
  change: ["base", "protocol", "crypto", "store", "query"],
  acl: ["base", "protocol", "crypto", "store", "query", "change"],
  space: ["base", "protocol", "crypto", "store", "query", "change", "acl"],
  account: ["base", "protocol", "crypto", "store", "query", "change", "acl", "space"],
  files: ["base", "protocol", "crypto"],
  domain: [
    "base",
    "protocol",
    "crypto",
    "push-link",
    "store",
    "search",
    "query",
    "change",
    "acl",
    "space",
    "account",
    "files",
  ],
  sync: ["base", "protocol", "crypto", "space", "files"],
  engine: [
    "base",
    "protocol",
    "crypto",
    "store",
    "query",
    "change",
    "acl",
    "space",
    "account",
    "files",
    "domain",
    "sync",
    "sandbox",
    "search",
  ],
  // A program of its own beside the server, in the same executable.
  "push-node": ["base", "protocol", "crypto", "push-link", "store"],
  http: ["base", "protocol", "engine"],
  serve: ["base", "protocol", "engine", "http"],
  cli: ["base", "protocol"],
  ui: ["protocol"],
};

/**
 * In which order the folders of a room stand: each may import those before it. `""` is what lies in none of them. Features
 * of the domain meet only through a port besides.
 */
export const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  account: ["own-space", "rows", "life", "joining"],
  acl: ["record", "reducer", "log", "compose", "pending", ""],
  change: ["codec", "graph", "fold", "intake", "check", "", "history"],
  cli: ["io", "parse", "commands", ""],
  domain: [
    ...["event", "process", "type", "record", "object"],
    ...["bundle", "device", "editor", "chat", "file", "identity", "live", "member", "push", "search", "trigger"],
  ],
  engine: ["", "config", "runtime", "boot", "account"],
  http: ["stream", "schema", "reply", "page", "", "openapi", "control", "routes"],
  query: ["value", "filter", "rows", "expression", "plan", "run", "aggregate", "readers"],
  search: ["", "text", "model", "index"],
  space: ["port", "replica", ""],
  store: ["database", "commit", "rows", "tables", "", "search"],
  sync: ["session", "", "lan", "network", "file", "inbox"],
  ui: [
    ...["api", "stream", "state", "parts"],
    ...["account", "chat", "document", "events", "record", "server"],
    ...["object", "space", ""],
  ],
};

/**
 * `svc run` and `svc init` work without a server, and `server-address.ts` reads where the configuration says that it
 * listens; the rest of the command line is an HTTP client.
 */
const LOCAL_COMMANDS = /^cli\/(commands\/(run|init)|io\/server-address)(-[a-z-]+)?\.ts$/;
const LOCAL_COMMAND_ROOMS = ["base", "protocol", "crypto", "engine", "serve"];
/** `svc push-node` starts the node, and knows nothing else. */
const NODE_COMMAND = "cli/commands/push-node.ts";
const NODE_COMMAND_ROOMS = ["push-node"];
/** The entry of the executable is also that of its child processes. */
const CHILD_ENTRY = "cli/main.ts";
const CHILD_ENTRY_ROOMS = ["sandbox", "search"];
/** All that sync may know of a space. */
const REPLICA_PORT = /^src\/space\/port\//;
const PORT_FILE = /(^|\/|-)port\.ts$/;
const TEST_FILE = /\.test\.tsx?$/;
/** Independent second opinions: they prove nothing if they share code with what they judge. */
const REFERENCE_FILE = /^test\/support\/oracle\/reference-[a-z-]+\.ts$/;

/** Sources by path from the project's root, with `/` between the segments. Returns one line a breach. */
export function findBreaches(sourcesByPath: ReadonlyMap<string, string>): string[] {
  const breaches: string[] = [];
  for (const [path, source] of sourcesByPath) {
    if (TEST_FILE.test(path) || (path.startsWith("test/") && !REFERENCE_FILE.test(path))) continue;
    for (const edge of scanImports(path, source)) {
      const fault = judge(path, edge);
      if (fault !== undefined) breaches.push(`${path}: ${fault}`);
    }
  }
  return breaches;
}

function judge(path: string, { specifier, typeOnly }: ImportEdge): string | undefined {
  if (specifier === undefined) return "imports a computed path, which nobody can check; write the path as a literal";
  if (!specifier.startsWith(".")) return undefined;
  const target = normalize(join(path, "..", specifier)).replaceAll("\\", "/");
  const [from, to] = [roomOf(path), roomOf(target)];
  if (to === undefined) return isAsset(target) ? undefined : `imports ${target}, which belongs to no room`;
  if (TEST_FILE.test(target)) return `imports the test ${target}`;
  if (from === undefined) return REFERENCE_FILE.test(path) ? `a reference imports ${target}` : undefined;
  if (from === to) return siblingFault(path, target);
  const allowed = roomsFor(path, from);
  if (!allowed.includes(to)) return `${from} may not import ${to} (${target})`;
  if (from === "sync" && to === "space" && !REPLICA_PORT.test(target))
    return `sync sees a space through its port alone (${target})`;
  if (from === "ui" && !typeOnly) return `ui takes only types from ${to} (${target}); write import type`;
  return undefined;
}

function roomsFor(path: string, room: string): readonly string[] {
  if (path === CHILD_ENTRY) return CHILD_ENTRY_ROOMS;
  if (path === NODE_COMMAND) return NODE_COMMAND_ROOMS;
  return LOCAL_COMMANDS.test(path) ? LOCAL_COMMAND_ROOMS : (ROOMS[room] ?? []);
}

/** A folder imports those before it, a feature of the domain only their ports. */
function siblingFault(path: string, target: string): string | undefined {
  const [from, to] = [folderOf(path), folderOf(target)];
  if (from === to) return undefined;
  const folders = FOLDERS[roomOf(path)!] ?? [];
  const unplaced = [from, to].find((folder) => !folders.includes(folder));
  if (unplaced !== undefined) return `${unplaced || "the root"} has no place in the order of folders (${target})`;
  if (folders.indexOf(to) > folders.indexOf(from))
    return `${from || "the root"} may not import ${to || "the root"} (${target})`;
  if (roomOf(path) !== "domain" || PORT_FILE.test(target)) return undefined;
  return `the feature ${from} may import ${to} only through its port (${target})`;
}

/** Below its room. */
function folderOf(path: string): string {
  const [top, ...rest] = path.split("/").slice(0, -1);
  return (top === "src" ? rest.slice(1) : rest).join("/");
}

/** Undefined for what no rule covers (build.ts, test/) and for what is no module of the tree. */
function roomOf(path: string): string | undefined {
  const [top, second = ""] = path.split("/");
  if (top === "cli" || top === "ui") return top;
  if (top !== "src") return undefined;
  return second === "serve.ts" ? "serve" : second;
}

function isAsset(target: string): boolean {
  return target === "package.json" || target.startsWith("node_modules/");
}

/** Reads every source of the project at `root`. */
export async function readSources(root: string): Promise<Map<string, string>> {
  const glob = new Bun.Glob("{src,cli,ui,test}/**/*.{ts,tsx}");
  const paths = (await Array.fromAsync(glob.scan({ cwd: root }))).map((path) => path.replaceAll("\\", "/")).sort();
  const entries = paths.map(async (path) => [path, await Bun.file(join(root, path)).text()] as const);
  return new Map(await Promise.all(entries));
}
