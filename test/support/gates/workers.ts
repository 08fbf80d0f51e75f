/**
 * What runs in the background answers a `Service` (src/base/service.ts), so that boot starts and stops it in one line. An interval,
 * or a timer that calls again the function that sets it, is set in a file that makes a service, or by one of those below, which end
 * with something else. `stop` belongs to a service, which has `start` as well: what is in use from when it is made until it ends has
 * `close`.
 */
import { join } from "node:path";

/** Files that make no service, and with what ends that which they begin. */
const ENDED_WITH: Readonly<Record<string, string>> = {
  "src/domain/bundle/bundle-service.ts": "its space",
  "src/domain/process/long-work.ts": "the work that it shows",
  "src/engine/runtime/run-processes.ts": "the run that it shows",
  "src/http/stream/event-connection.ts": "its reader",
  "src/http/multiplex.ts": "its reader",
  "src/http/stream/space-stream.ts": "its reader",
  "src/http/sse.ts": "its reader",
  "src/http/stream/stream-registry.ts": "the last stream",
  "src/http/stream/stream-source.ts": "its reader",
  "src/http/stream/subscription.ts": "its reader",
  "src/http/routes/streams.ts": "its reader",
  "src/push-node/push-node.ts": "the program",
  "src/search/index/index-child.ts": "the process that it runs in",
  "src/serve.ts": "the program",
  "src/store/commit/waiting-writes.ts": "the last write that waits",
  "src/sync/lan/discovery.ts": "the LAN's links",
  "src/sync/lan/link-manager.ts": "the transports",
  "src/sync/lan/message-channel.ts": "its socket",
  "src/sync/network/log-follower.ts": "the connection",
  "src/sync/network/stream-watch.ts": "the network's store",
};

const INTERVAL = /\bsetInterval\(/;
/** The first line of a function with a name, and how far it is indented. */
const FUNCTION = /^( *)(?:export )?(?:(?:async )?function (\w+)\b|const (\w+)\b.* = (?:async )?\([^=]*\)(?:: .+)? =>)/;
/** A method `stop()`, or its declaration; not a call. */
const STOPS = /^\s+(?:async )?stop(?:\(\)(?:: [^;{]+)? \{|\(\): [^;{]+;|: (?:async )?\(\))/m;
const SERVICE = /\bService\b/;
/** A service whose type is read off what is returned. */
const NAMED = /^ {4}name: "/m;
const STARTS = /^ {4}(?:async )?start(?:\(\)|: )/m;

/** One line for each file below `src` of the project at `root` that runs something in the background in a way of its own. */
export async function findHandMade(root: string): Promise<string[]> {
  const found: string[] = [];
  const used = new Set<string>();
  for await (const name of new Bun.Glob("src/**/*.ts").scan({ cwd: root })) {
    if (name.endsWith(".test.ts")) continue;
    const text = await Bun.file(join(root, name)).text();
    const breach = INTERVAL.test(text)
      ? "sets an interval and makes no service"
      : goesOnByTimers(text)
        ? "has a timer that sets itself again and makes no service"
        : STOPS.test(text)
          ? "has a stop and no start: what only ends has close"
          : undefined;
    if (!breach || SERVICE.test(text) || (NAMED.test(text) && STARTS.test(text))) continue;
    if (name in ENDED_WITH) used.add(name);
    else found.push(`${name} ${breach}`);
  }
  for (const name of Object.keys(ENDED_WITH))
    if (!used.has(name)) found.push(`${name} begins nothing: its entry in the gate's list goes`);
  return found.sort();
}

/** Whether a function sets a timer that calls it again. A function ends with the first line that is indented no further. */
function goesOnByTimers(text: string): boolean {
  const lines = text.split("\n");
  return lines.some((line, at) => {
    const [, indent = "", declared, assigned] = FUNCTION.exec(line) ?? [];
    const name = declared ?? assigned;
    if (name === undefined) return false;
    const rest = line.endsWith(";") ? [] : lines.slice(at + 1);
    const length = rest.findIndex((each) => each !== "" && !each.startsWith(`${indent} `));
    const body = [line.slice(line.indexOf("=>") + 1), ...rest.slice(0, Math.max(0, length))].join("\n");
    const again = new RegExp(
      `\\bsetTimeout\\(\\s*(?:${name},|\\(\\) => (?:void )?${name}\\(|\\(\\) => \\{[\\s\\S]*\\b${name}\\()`,
    );
    return again.test(body);
  });
}
