/** Writes down what every endpoint says of a space's and its objects' sync state, for as long as it runs. */
import { type Device, statusOf } from "../server/devices.ts";
import type { SseStream } from "../server/sse-stream.ts";

export interface RecordedState {
  readonly endpoint: string;
  readonly state: string;
}

export interface StateRecorder {
  /** Everything that was said so far. */
  readonly said: readonly RecordedState[];
  /** How often every endpoint was asked. */
  rounds(): number;
  /** Ends it, with what the streams said last. */
  stop(): Promise<readonly RecordedState[]>;
}

const POLL_MS = 40;

/** Streams begin with the state they find, so that what they say was never true before this call. */
export async function recordStates(
  device: Device,
  spaceId: string,
  objectIds: readonly string[],
): Promise<StateRecorder> {
  const { client } = device.server;
  const said: RecordedState[] = [];
  const say = (endpoint: string, state: string) => void said.push({ endpoint, state });
  const base = `/v1/spaces/${spaceId}`;
  const spaces = await client.stream("GET", "/v1/sync-status/subscribe");
  const objects = await Promise.all(
    objectIds.map((id) => client.stream("GET", `${base}/sync-status/objects/${id}/subscribe`)),
  );
  let rounds = 0;
  let running = true;
  const polled = (async () => {
    while (running) {
      const status = await statusOf(device, spaceId);
      say("sync-status", status.state);
      // The count of objects that are safe elsewhere is a statement, too.
      if (status.total > 0 && status.synced === status.total) say("sync-status", "all objects synced");
      for (const id of objectIds) {
        say("sync-status/objects", (await client.get<{ state: string }>(`${base}/sync-status/objects/${id}`)).state);
        say("debug/objects", (await client.get<{ syncState: string }>(`${base}/debug/objects/${id}`)).syncState);
      }
      rounds++;
      await Bun.sleep(POLL_MS);
    }
  })();
  const stateFrames = (stream: SseStream, of: (frame: { spaceId?: string; state: string }) => boolean): string[] =>
    [...stream.rawText().matchAll(/^event: status\ndata: (.*)$/gm)]
      .map(([, text]) => JSON.parse(text!) as { spaceId?: string; state: string })
      .filter(of)
      .map(({ state }) => state);
  return {
    said,
    rounds: () => rounds,
    stop: async () => {
      running = false;
      await polled;
      for (const state of stateFrames(spaces, (frame) => frame.spaceId === spaceId))
        say("sync-status/subscribe", state);
      for (const stream of objects)
        for (const state of stateFrames(stream, () => true)) say("sync-status/objects/subscribe", state);
      await Promise.all([spaces, ...objects].map((stream) => stream.close()));
      return said;
    },
  };
}

/** What was said, each state once, by endpoint. */
export function statesByEndpoint(said: readonly RecordedState[]): Record<string, string[]> {
  const states: Record<string, string[]> = {};
  for (const { endpoint, state } of said) {
    const known = states[endpoint] ?? [];
    states[endpoint] = known;
    if (!known.includes(state)) known.push(state);
  }
  return states;
}
