/**
 * A trigger that fires once fires at most once, wherever its server is killed; no run is both ok and interrupted; what the
 * breaker counted survives. A crash may lose the shot, never fire it twice.
 */
import { expect } from "bun:test";
import { pace } from "../support/pace.ts";
import { createRng, type Rng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { agentOf, RUNTIME_ENV } from "../support/server/agent.ts";
import { type JsonObject, until } from "../support/server/client.ts";
import { startServer } from "../support/server/server.ts";

const ROUNDS = 30;
/** Data roots that are killed side by side: most of a round is waiting. */
const LANES = 3;
/** The record is written, the trigger taken up, its program started and its message sent within about this, at first. */
const WINDOW_MS = 600;
/** Whoever fired is killed sooner the next time, and whoever did not later: a busy machine takes longer. */
const [SOONER, LATER] = [0.8, 1.25];

/** Rounds of a data root of its own. Answers how many of its triggers fired. */
async function killInRounds(rng: Rng, rounds: number): Promise<number> {
  using root = scratchDir("svc-once");
  const start = () => startServer({ dataDir: root.path, env: RUNTIME_ENV });
  {
    await using server = await start();
    const agent = await agentOf(server);
    const code = "await svc.chat.send({ objectId: args.chat, text: args.shot }); return args.shot";
    await agent.putProgram("shot", code);
  }
  let fired = 0;
  let windowMs = WINDOW_MS;
  for (let round = 0; round < rounds; round++) {
    const id = `shot-${round}`;
    await using server = await start();
    const agent = await agentOf(server);
    const args = { chat: agent.chatId, shot: id };
    // Not awaited: the server may be killed while it is still writing the record.
    const putting = agent
      .putTrigger(id, { kind: "once", spec: { at: 1 }, program: "shot@v1", args })
      .catch(() => undefined);
    await pace(rng.next() * windowMs);
    await server.kill();
    await putting;

    await using next = await start();
    const after = await agentOf(next);
    // What is looked at in every second was looked at twice.
    for (const mark of [`mark-${round}`, `next-${round}`]) {
      const program = await after.putProgram("mark", "return 1");
      await after.putTrigger(mark, { kind: "once", spec: { at: 1 }, program });
      await until(async () => (await after.runs(mark))[0]?.["status"] === "ok", "a tick", 20_000);
    }
    const statuses = async () => (await after.runs(id)).map(({ status }) => status);
    const isThere = (await next.control.request("GET", `/triggers/${id}`)).status !== 404; // else it was killed before
    // A shot that came only now may still be under way.
    if (isThere) await until(async () => !(await statuses()).includes("running"), "its run to end");
    const runs = isThere ? await statuses() : [];
    const said = (await after.messages()).filter(({ text }) => text === id).length;
    expect([id, said <= 1]).toEqual([id, true]);
    fired += said;
    windowMs *= said > 0 ? SOONER : LATER;
    if (!isThere) continue;
    const { enabled, lastRunAt, lastStatus } = await next.control.get<JsonObject>(`/triggers/${id}`);
    expect([id, runs.length <= 1, runs.includes("running"), enabled, lastRunAt !== undefined]).toEqual([
      id,
      true,
      false,
      false,
      true,
    ]);
    // Row and record end in one transaction: a run is never ok in one place and interrupted in the other.
    if (runs.length > 0) expect([id, lastStatus]).toEqual([id, runs[0]]);
    if (runs[0] === "ok") expect([id, said]).toEqual([id, 1]);
  }
  return fired;
}

rule(
  "[AGENT-3] once fires at most once under kill -9 at every step",
  async () => {
    const rng = createRng(20_260_101);
    const lanes = Array.from({ length: LANES }, (_, lane) => killInRounds(rng.fork(`lane ${lane}`), ROUNDS / LANES));
    const fired = (await Promise.all(lanes)).reduce((sum, each) => sum + each, 0);
    // Servers that never fired, or were always killed too late, would pass all of the above.
    expect([fired > 2, fired < ROUNDS]).toEqual([true, true]);
  },
  10 * 60_000,
);

rule(
  "[AGENT-6] what the breaker counted survives a restart",
  async () => {
    using root = scratchDir("svc-breaker");
    const start = () => startServer({ dataDir: root.path, env: RUNTIME_ENV });
    for (const expected of [1, 2, 3]) {
      await using server = await start();
      const agent = await agentOf(server);
      if (expected === 1)
        await agent.putTrigger("t", { program: await agent.putProgram("bad", "throw new Error('no')") });
      await agent.run("t");
      const record = await agent.trigger("t");
      expect([record["consecutiveFailures"], record["enabled"]]).toEqual([expected, expected < 3]);
      await server.kill();
    }
  },
  60_000,
);
