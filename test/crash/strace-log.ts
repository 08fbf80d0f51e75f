/** Reads what `strace -f -y` wrote and asks whether a response left before what it promises was synced. */

export interface SystemCall {
  name: string;
  /** Path of the first argument's descriptor, as `-y` shows it. */
  file?: string;
  /** Beginning of the data that was sent or received. */
  data?: string;
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
      if (begun) calls.push({ ...begun, ...(data === undefined ? {} : { data }), ended: true });
      openByThread.delete(`${resumed[1]} ${resumed[2]}`);
      continue;
    }
    const begun = /^(\d+)\s+(\w+)\((?:\d+<([^>]*)>)?(.*)$/.exec(line);
    if (!begun) continue;
    const [, thread, name, file, rest] = begun;
    const data = /"((?:[^"\\]|\\.)*)"/.exec(rest!)?.[1];
    const call: SystemCall = {
      name: name!,
      ...(file === undefined ? {} : { file }),
      ...(data === undefined ? {} : { data }),
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
  /^(POST|PUT|PATCH|DELETE) \S*(\/modify|\/upsert|\/delete-records|\/objects|\/settings|\/metadata|\/spaces|\/types|\/datasets|\/auth) /;

/**
 * Walks the calls: a write to a database file makes it dirty, a sync that has ended makes it clean. When a 2xx to a
 * write begins to leave, no file may be dirty that was written before it, and between the request and its answer at
 * least one sync must have ended.
 */
export function firstUnsyncedResponse(calls: readonly SystemCall[]): { responses: number; fault?: string } {
  const dirty = new Set<string>();
  const requestsBySocket = new Map<string, { line: string; syncsBefore: number }>();
  let syncs = 0;
  let responses = 0;
  for (const call of calls) {
    if (isDurableFile(call) && /^pwrite|^write/.test(call.name)) dirty.add(call.file!);
    else if (/^(fsync|fdatasync)$/.test(call.name) && call.ended) {
      if (call.file !== undefined) dirty.delete(call.file);
      syncs++;
    } else if (isSocket(call) && isReceive(call) && call.ended && WRITE.test(call.data ?? "")) {
      requestsBySocket.set(call.file!, { line: call.data!.split("\\r")[0]!, syncsBefore: syncs });
    } else if (isSocket(call) && isSend(call) && /^HTTP\/1\.1 2\d\d/.test(call.data ?? "")) {
      const request = requestsBySocket.get(call.file!);
      if (!request) continue;
      requestsBySocket.delete(call.file!);
      responses++;
      if (dirty.size > 0)
        return { responses, fault: `answered while ${[...dirty].join(", ")} was unsynced: ${request.line}` };
      if (syncs === request.syncsBefore) return { responses, fault: `answered without any sync: ${request.line}` };
    }
  }
  return { responses };
}
