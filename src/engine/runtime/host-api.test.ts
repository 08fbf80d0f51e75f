import { expect, test } from "bun:test";
import type { JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { PROGRAM_LIMITS } from "../../sandbox/program-limits.ts";
import type { CallFailure } from "./call-error.ts";
import { createHostApi } from "./host-api.ts";
import type { LocalApi, LocalCall } from "./local-api.ts";

interface Asked {
  readonly path: string;
  readonly body: JsonObject | undefined;
  readonly call: LocalCall | undefined;
  answer(): void;
}

function createWorld() {
  const asked: Asked[] = [];
  const api: LocalApi = (_method, path, body, call) => {
    const { promise, resolve } = Promise.withResolvers<JsonObject>();
    asked.push({ path, body, call, answer: () => resolve({ records: [] }) });
    return promise;
  };
  const unused = () => Promise.reject(new Error("not called"));
  const over = new AbortController();
  const host = createHostApi({ api, llm: unused, http: unused, agentSpaceId: "home" });
  const context = { agentName: "test", dry: false, signal: over.signal, onMessage: () => {} };
  return {
    asked,
    over,
    call: (name: string, input: JsonObject, dry = false) => host(name, input, { ...context, dry }),
  };
}

test("[AGENT-9] a run's searches go one after the other, and none begins when it is over", async () => {
  const { asked, over, call } = createWorld();
  const [first, second, third] = [
    call("svc.query", {}),
    call("svc.aggregate", { pipeline: [] }),
    call("svc.search", {}),
  ];
  const refused = third.then(
    () => undefined,
    (error: CallFailure) => error.error.code,
  );
  await Bun.sleep(0);
  expect(asked.map(({ path }) => path)).toEqual(["/v1/spaces/home/objects/query"]);
  asked[0]!.answer();
  await first;
  await Bun.sleep(0);
  expect(asked).toHaveLength(2);
  over.abort();
  expect(asked[1]!.call?.signal?.aborted).toBe(true);
  asked[1]!.answer();
  await second;
  expect(await refused).toBe("host.run_over");
  expect(asked).toHaveLength(2);
});

test("[AGENT-9] a program gets no longer reply than it can take, and its pipelines hold no more than others' by default", async () => {
  const { asked, call } = createWorld();
  const most = LIMITS.memoryLimitBytesDefault;
  for (const [given, passed] of [
    [-1, most],
    [most + 1, most],
    [1_000, 1_000],
    ["much", "much"],
  ] as const) {
    const answered = call("svc.aggregate", { pipeline: [], memoryLimitBytes: given });
    await Bun.sleep(0);
    const { body, call: made, answer } = asked.pop()!;
    expect([body?.["memoryLimitBytes"], made?.mostChars]).toEqual([passed, PROGRAM_LIMITS.callBytes]);
    answer();
    await answered;
  }
});

for (const dry of [false, true])
  test(`[AGENT-9] what a ${dry ? "dry run would write" : "run writes"} is counted over all its calls, and refused beyond its bound; it goes on reading`, async () => {
    const { asked, call } = createWorld();
    const record = { id: "r", ops: [{ type: "$set", path: "text", value: "x".repeat((1 << 20) - 1_000) }] };
    const body = { objectId: "o", dataset: "d", records: [record] };
    const most = Math.floor(PROGRAM_LIMITS.writtenBytes / JSON.stringify(body).length);
    for (let n = 0; n < most; n++) {
      const written = call(n % 2 === 0 ? "svc.modify" : "svc.upsert", body, dry);
      asked.pop()?.answer();
      await written;
    }
    const refused = await call("svc.modify", body, dry).then(
      () => undefined,
      (error: CallFailure) => error.error,
    );
    expect(refused).toMatchObject({
      code: "host.written_too_much",
      details: { limitBytes: PROGRAM_LIMITS.writtenBytes },
    });
    expect(asked).toEqual([]);
    const read = call("svc.get", { objectId: "o" }, dry);
    asked.pop()!.answer();
    expect(await read).toEqual({ output: { records: [] } });
  });
