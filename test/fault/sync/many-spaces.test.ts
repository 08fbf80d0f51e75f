/** An account with many spaces: what its devices have to do for each must not wait for the next regular round. */
import { expect, test } from "bun:test";
import { until } from "../../support/server/client.ts";
import { spacesOf, startDevice, statusOf } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const SPACES = 50;
/** No regular round comes while the test runs. */
const NEVER = "1h";

test("[rounds] many spaces written at once are synced on another device of the LAN without a regular round", async () => {
  await using first = await startDevice({ lan: true, env: { SVC_SYNC_INTERVAL: NEVER } });
  await using second = await startDevice({ lan: true, mnemonic: first.mnemonic, env: { SVC_SYNC_INTERVAL: NEVER } });
  await Promise.all(
    Array.from({ length: SPACES }, async (_, n) => {
      const { id } = await createSpace(first.server.client, `space ${n}`);
      await createObject(first.server.client, id);
    }),
  );
  await until(async () => (await spacesOf(second)).length === SPACES, "all spaces", 60_000);
  for (const { id } of await spacesOf(second)) {
    const stateOf = async (): Promise<string | undefined> => {
      const reply = await second.server.client.request("GET", `/v1/spaces/${id}/sync-status`);
      return (reply.json as { state?: string }).state; // before its root has come there is none
    };
    await until(async () => (await stateOf()) === "synced", `${id} synced`, 60_000);
    expect((await statusOf(second, id)).total).toBe(1);
  }

  // No more than a peer serves at once, however many are asked for by name.
  const ids = (await spacesOf(second)).map(({ id }) => id);
  const rounds = [first, second].flatMap(({ server }) =>
    ids.map((id) => server.client.post(`/v1/spaces/${id}/sync`, {}, 204)),
  );
  await Promise.all(rounds);
  for (const id of ids) expect((await statusOf(second, id)).state).toBe("synced");
});
