/** More one-to-one requests than are shown: none that is genuine is lost among them. */
import { expect } from "bun:test";
import { rule } from "../support/rule.ts";
import { type SpaceInfo, until } from "../support/server/client.ts";
import { startServer } from "../support/server/server.ts";
import { createAccount } from "../support/worlds/acl-world.ts";

const SHOWN = 256;

rule(
  "[SPACE-4] what was asked before hundreds of throwaway requests stays shown, what is asked after them is, and the rest as room is made",
  async () => {
    await using server = await startServer();
    const { client } = server;
    const ask = async (name: string): Promise<string> => {
      const peerIdentity = createAccount().id;
      await client.post("/v1/spaces/one-to-one/register-incoming", { peerIdentity, displayHint: { name } }, 204);
      return peerIdentity;
    };
    const shown = () => client.get<SpaceInfo[]>("/v1/spaces?status=one_to_one_pending");
    const names = async () => (await shown()).map(({ name }) => name);

    await ask("before");
    for (let count = 0; count < 150; count++) await ask(`throwaway ${count}`);
    await ask("between");
    for (let count = 150; count < 300; count++) await ask(`throwaway ${count}`);
    await ask("after");
    expect(await names()).toHaveLength(SHOWN);
    expect(await names()).toEqual(expect.arrayContaining(["before", "after"]));
    expect(await names()).not.toContain("between");

    const isThrowaway = ({ name }: SpaceInfo) => name?.startsWith("throwaway") === true;
    for (const { id } of (await shown()).filter(isThrowaway).slice(0, 50)) await client.del(`/v1/spaces/${id}`, 204);
    await until(async () => (await names()).includes("between"), "the one between to be shown", 5_000);
    expect(await names()).toEqual(expect.arrayContaining(["before", "between", "after"]));
  },
  120_000,
);
