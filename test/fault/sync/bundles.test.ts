/** Bundles that are installed apart by members who do not reach each other: who may, who has to wait, and who wins. */
import { describe, expect } from "bun:test";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { type SpaceInfo, until } from "../../support/server/client.ts";
import { type Device, spacesOf, startDevice } from "../../support/server/devices.ts";
import { createSpace } from "../../support/server/fixtures.ts";

const LONG_MS = 120_000;
const WAIT_MS = 40_000;

interface Bundle {
  id: string;
  rootId: string;
  roots?: string[];
  losers?: string[];
}

describe("bundles of a shared space", () => {
  rule(
    "[BUNDLE-1] out of reach of the others a member waits for them, the owner installs; installs apart end with one winner",
    async () => {
      using ownerRoot = scratchDir("svc-owner");
      using memberRoot = scratchDir("svc-member");
      using secondRoot = scratchDir("svc-second");
      let spaceId = "";
      let mnemonic = "";
      const base = () => `/v1/spaces/${spaceId}`;
      const ensure = (device: Device, body: object) =>
        device.server.client.request("POST", `${base()}/bundles`, { body, timeoutMs: WAIT_MS });
      const hasSpace = async (device: Device) => (await spacesOf(device)).some(({ ownRole }) => ownRole !== "none");
      {
        await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
        await using member = await startDevice({ lan: true, dataDir: memberRoot.path });
        mnemonic = owner.mnemonic;
        await using second = await startDevice({ lan: true, dataDir: secondRoot.path, mnemonic });
        spaceId = (await createSpace(owner.server.client, "Shared")).id;
        const open = { mode: "open", permission: "writer" };
        const path = `${base()}/invites`;
        const { inviteToken } = await owner.server.client.post<{ inviteToken: string }>(path, open, 201);
        await member.server.client.post<SpaceInfo>("/v1/spaces/join", { inviteToken }, 202);
        for (const device of [member, second]) await until(() => hasSpace(device), "the space", WAIT_MS);
      }
      const app = { id: "app/v1", name: "App" };
      for (const lan of [true, false]) {
        // Whether it may look for them or not: it is not the only one who may install.
        await using member = await startDevice({ lan, dataDir: memberRoot.path });
        const refused = await ensure(member, app);
        expect([refused.status, refused.json]).toMatchObject([409, { error: { code: "bundle.not_ready" } }]);
        expect((await ensure(member, { id: "derived/v1", derived: true })).status).toBe(200);
      }
      for (const { path } of [ownerRoot, secondRoot]) {
        await using device = await startDevice({ dataDir: path });
        expect((await ensure(device, app)).json).toMatchObject({ installed: true });
      }

      await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
      await using member = await startDevice({ lan: true, dataDir: memberRoot.path });
      await using second = await startDevice({ lan: true, dataDir: secondRoot.path });
      const devices = [owner, member, second];
      const bundleAt = async ({ server }: Device): Promise<Bundle | undefined> => {
        const { bundles } = await server.client.get<{ bundles: Bundle[] }>(`${base()}/bundles`);
        return bundles.find(({ id }) => id === app.id);
      };
      let bundles: (Bundle | undefined)[] = [];
      const converged = async () => {
        bundles = await Promise.all(devices.map(bundleAt));
        return bundles.every((one) => one?.losers?.length === 1 && JSON.stringify(one) === JSON.stringify(bundles[0]));
      };
      await until(converged, "one winner and one loser everywhere", WAIT_MS);
      const [{ rootId, losers }] = bundles as [Bundle];
      expect((await ensure(member, app)).json).toMatchObject({ installed: false, bundle: { rootId } });

      const resolve = `${base()}/bundles/${encodeURIComponent(app.id)}/resolve`;
      const early = { loserRootId: losers![0]! };
      await member.server.client.fails("POST", resolve, early, 409, "bundle.loser_not_ready");
      await member.server.client.fails("POST", resolve, { loserRootId: rootId }, 409, "bundle.not_loser");
      await owner.server.client.del(`${base()}/objects/${losers![0]}`);
      const resolved = async () => (await bundleAt(member))?.losers === undefined;
      await until(resolved, "the loser to be gone at the member", WAIT_MS);
      await member.server.client.post(resolve, early, 204);
    },
    LONG_MS,
  );
});
