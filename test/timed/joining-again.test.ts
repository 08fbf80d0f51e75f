/** Accounts that are removed and join again, over a network, with the interval that people have. */
import { describe, expect } from "bun:test";
import { describeWithNats, startNats } from "../support/network/nats.ts";
import { pace } from "../support/pace.ts";
import { rule } from "../support/rule.ts";
import { until } from "../support/server/client.ts";
import { type Device, mintInvite, startDevice, untilStatus, warnings } from "../support/server/devices.ts";
import { createSpace } from "../support/server/fixtures.ts";

const LONG_MS = 120_000;
const SPACES = 4;
const TIMES_IN_EACH = 13;
const SEEN_MS = 2_000;
/** How long who was removed waits before it joins again; at once, before it can have heard of it, first. */
const PAUSES_MS = [0, 0, 150, 400, 700];

interface Request {
  requestRecordId: string;
  identity: string;
}

/** One account joins a space of the other's by a request, is let in and removed, again and again. Answers what was slow. */
async function joinAgainAndAgain(owner: Device, joiner: Device, times: number): Promise<string[]> {
  const slow: string[] = [];
  const space = await createSpace(owner.server.client, "Door");
  const base = `/v1/spaces/${space.id}`;
  for (let time = 0; time < times; time++) {
    const inviteToken = await mintInvite(owner, space.id);
    const pauseMs = PAUSES_MS[time % PAUSES_MS.length]!;
    await pace(pauseMs);
    const beganMs = performance.now();
    await joiner.server.client.post("/v1/spaces/join", { inviteToken }, 202);
    const requests = async () =>
      (await owner.server.client.get<{ requests: Request[] }>(`${base}/members/requests`)).requests;
    await until(async () => (await requests()).length > 0, `request ${time}`, 45_000);
    const tookMs = performance.now() - beganMs;
    if (tookMs > SEEN_MS) slow.push(`join ${time} after ${pauseMs} ms was seen after ${Math.round(tookMs)} ms`);
    const { requestRecordId } = (await requests())[0]!;
    const acceptedMs = performance.now();
    await owner.server.client.post(`${base}/acl/accept`, { requestRecordId, permission: "writer" }, 204);
    await untilStatus(joiner, space.id, "active");
    const inMs = performance.now() - acceptedMs;
    if (inMs > SEEN_MS) slow.push(`join ${time} was let in, and is so after ${Math.round(inMs)} ms`);
    await owner.server.client.post(`${base}/acl/remove`, { identities: [joiner.accountId] }, 204);
  }
  return slow;
}

describeWithNats("joining again", () => {
  rule(
    "[ACL-17] removed and invited anew fifty-two times, at once and after pauses, in four spaces: every request is seen, and who is let in is in, in 2 s",
    async () => {
      await using nats = await startNats();
      const start = () => startDevice({ network: nats.url, env: { SVC_SYNC_INTERVAL: "30s" } });
      await using devices = new AsyncDisposableStack();
      const pairs: [owner: Device, joiner: Device][] = [];
      for (let space = 0; space < SPACES; space++) pairs.push([devices.use(await start()), devices.use(await start())]);
      const slow = await Promise.all(pairs.map(([owner, joiner]) => joinAgainAndAgain(owner, joiner, TIMES_IN_EACH)));
      expect(slow.flat()).toEqual([]);
      const logged = pairs.flat().flatMap(warnings);
      expect(logged.filter((line) => /network:|sync:|join/.test(line))).toEqual([]);
    },
    LONG_MS,
  );
});

describe("joining again on a LAN", () => {
  rule(
    "[ACL-17] after it was taken back, after it was declined, and by an open invite while a request waits: each is answered in 2 s",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using joiner = await startDevice({ lan: true });
      const { client } = owner.server;
      const slow: string[] = [];
      const space = await createSpace(client, "Door");
      const base = `/v1/spaces/${space.id}`;
      const join = async (why: string, inviteToken: string): Promise<void> => {
        const beganMs = performance.now();
        await joiner.server.client.post("/v1/spaces/join", { inviteToken }, 202);
        const tookMs = performance.now() - beganMs;
        if (tookMs > SEEN_MS) slow.push(`${why} took ${Math.round(tookMs)} ms`);
      };
      const known = new Set<string>();
      /** Until a request waits that has not been seen before. */
      const untilRequest = () =>
        until(
          async () => {
            const { requests } = await client.get<{ requests: Request[] }>(`${base}/members/requests`);
            const [found] = requests.filter(({ requestRecordId }) => !known.has(requestRecordId));
            if (found) known.add(found.requestRecordId);
            return found !== undefined;
          },
          "the request",
          45_000,
        );

      const inviteToken = await mintInvite(owner, space.id);
      await join("the first", inviteToken);
      await untilRequest();
      await joiner.server.client.post(`${base}/acl/cancel-join`, {}, 204);
      await join("again after it was taken back", inviteToken);
      await untilRequest();
      await client.post(`${base}/acl/decline`, { identity: joiner.accountId }, 204);
      await untilStatus(joiner, space.id, "deleted");
      await join("again after it was declined", inviteToken);
      await untilRequest();
      await join("by an open invite", await mintInvite(owner, space.id, { mode: "open", permission: "writer" }));
      await untilStatus(joiner, space.id, "active");
      expect(slow).toEqual([]);
    },
    LONG_MS,
  );
});
