/** Reads what `strace -f -y` wrote and asks whether a response left before what it promises was synced. */
import { dirname } from "node:path";

/** Whether there is strace, and it may trace. */
export const straceRuns = (): boolean =>
  Bun.which("strace") !== null && Bun.spawnSync(["strace", "-f", "-o", "/dev/null", "true"]).exitCode === 0;

export interface SystemCall {
  name: string;
  /** Path of the first argument's descriptor, as `-y` shows it. */
  file?: string;
  /** Beginning of the data that was sent or received. */
  data?: string;
  /** The path that it makes or gives a name to: the last one of its arguments. */
  target?: string;
  /** What else it was told, and what it answered, as the line has it. */
  rest: string;
  /** False for a line that says a call has begun but not ended; its end follows as a call of its own. */
  ended: boolean;
}

/** Calls in the order in which they took effect: a send when it begins, a sync when it has ended. */
export function parseTrace(text: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const openByThread = new Map<string, SystemCall>();
  for (const line of text.split("\n")) {
    const resumed = /^(\d+)\s+<\.\.\. (\w+) resumed>(.*)$/.exec(line);
    if (resumed) {
      const begun = openByThread.get(`${resumed[1]} ${resumed[2]}`);
      const data = begun?.data ?? /"((?:[^"\\]|\\.)*)"/.exec(resumed[3]!)?.[1];
      if (begun)
        calls.push({
          ...begun,
          rest: begun.rest + resumed[3],
          ...(data === undefined ? {} : { data }),
          ended: true,
        });
      openByThread.delete(`${resumed[1]} ${resumed[2]}`);
      continue;
    }
    const begun = /^(\d+)\s+(\w+)\((?:\d+<([^>]*)>)?(.*)$/.exec(line);
    if (!begun) continue;
    const [, thread, name, file, rest] = begun;
    const texts = [...rest!.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text!);
    const [data, target] = [texts[0], texts.at(-1)];
    const call: SystemCall = {
      name: name!,
      rest: rest!,
      ...(file === undefined ? {} : { file }),
      ...(data === undefined ? {} : { data }),
      ...(target === undefined ? {} : { target }),
      ended: !rest!.includes("<unfinished ...>"),
    };
    calls.push(call);
    if (!call.ended) openByThread.set(`${thread} ${name}`, call);
  }
  return calls;
}

const isReceive = (call: SystemCall): boolean => /^(recv|read)/.test(call.name);
const isSend = (call: SystemCall): boolean => /^(send|write)/.test(call.name);
const isSocket = (call: SystemCall): boolean => /^(socket|TCP)/.test(call.file ?? "");
const isDurableFile = (call: SystemCall): boolean => /\/sdk\/.*\.db(-wal|-journal)?$/.test(call.file ?? "");

/** Requests whose 2xx promises that something is stored. */
const WRITE =
  /^(POST|PUT|PATCH|DELETE) \S*(\/modify|\/upsert|\/delete-records|\/objects|\/settings|\/metadata|\/spaces|\/types|\/datasets|\/auth|\/files) /;

interface Promised {
  /** Every call but those that belong to a request. */
  onCall(call: SystemCall): void;
  /** A write was asked for; what is given back is told when its 2xx begins to leave. */
  onRequest(): number;
  /** What is wrong with that. */
  onAnswer(atRequest: number): string | undefined;
}

/** Walks the calls up to the first 2xx to a write that promises too much. */
function firstFault(calls: readonly SystemCall[], { onCall, onRequest, onAnswer }: Promised) {
  const requestsBySocket = new Map<string, { line: string; atRequest: number }>();
  let responses = 0;
  for (const call of calls) {
    if (isSocket(call) && isReceive(call) && call.ended && WRITE.test(call.data ?? "")) {
      requestsBySocket.set(call.file!, { line: call.data!.split("\\r")[0]!, atRequest: onRequest() });
    } else if (isSocket(call) && isSend(call) && /^HTTP\/1\.1 2\d\d/.test(call.data ?? "")) {
      const request = requestsBySocket.get(call.file!);
      if (!request) continue;
      requestsBySocket.delete(call.file!);
      responses++;
      const fault = onAnswer(request.atRequest);
      if (fault !== undefined) return { responses, fault: `answered ${fault}: ${request.line}` };
    } else onCall(call);
  }
  return { responses };
}

const isSynced = ({ name, ended }: SystemCall): boolean => /^(fsync|fdatasync)$/.test(name) && ended;

/**
 * Walks the calls: a write to a database file makes it dirty, a sync that has ended makes it clean. When a 2xx to a
 * write begins to leave, no file may be dirty that was written before it, and between the request and its answer at
 * least one sync must have ended.
 */
export function firstUnsyncedResponse(calls: readonly SystemCall[]): { responses: number; fault?: string } {
  const dirty = new Set<string>();
  let syncs = 0;
  return firstFault(calls, {
    onCall(call) {
      if (isDurableFile(call) && /^pwrite|^write/.test(call.name)) dirty.add(call.file!);
      else if (isSynced(call)) {
        if (call.file !== undefined) dirty.delete(call.file);
        syncs++;
      }
    },
    onRequest: () => syncs,
    onAnswer(syncsBefore) {
      if (dirty.size > 0) return `while ${[...dirty].join(", ")} was unsynced`;
      return syncs === syncsBefore ? "without any sync" : undefined;
    },
  });
}

/** Calls by which a name comes to be: of a directory, of a file that is put in its place, of a database. */
const isNaming = ({ name, target = "", rest, ended }: SystemCall): boolean =>
  ended &&
  !/= -1 E/.test(rest) &&
  (/^(mkdir|mkdirat|link|linkat|rename|renameat|renameat2)$/.test(name) ||
    (name === "openat" && rest.includes("O_EXCL") && target.endsWith(".db")));

/** What can be made anew, or is of no worth to a later process. */
const isSpare = (path: string): boolean => /\/(index|models)(\/|$)|\.lock$/.test(path);

/**
 * The same for names: a new one makes its directory dirty, a sync of the directory makes it clean. No 2xx to a write may leave
 * while there is no way from `top` to what it promises that a power cut leaves.
 */
export function firstUnsyncedName(
  calls: readonly SystemCall[],
  top: string,
): { responses: number; names: string[]; fault?: string } {
  const names: string[] = [];
  const newIn = new Map<string, string>();
  const verdict = firstFault(calls, {
    onCall(call) {
      const { target, file } = call;
      if (isSynced(call) && file !== undefined) newIn.delete(file);
      else if (isNaming(call) && target?.startsWith(`${top}/`) && !isSpare(target)) {
        names.push(target);
        newIn.set(dirname(target), target);
      }
    },
    onRequest: () => 0,
    onAnswer: () => (newIn.size > 0 ? `while the name ${[...newIn.values()].join(", ")} was unsynced` : undefined),
  });
  return { ...verdict, names };
}
