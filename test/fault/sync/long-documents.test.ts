/** Documents of long blocks between real processes: two devices of an account, and a real nats-server. */
import { expect } from "bun:test";
import { foldLineEnds } from "../../../src/domain/editor/block-split.ts";
import { BODY_BYTES, LONG_BLOCKS, longBlock } from "../../support/long-documents.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { createRng, freshSeed } from "../../support/rng.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import { type Device, startDevice, untilStatus } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const seed = freshSeed("long documents on two devices");
const WAIT_MS = 60_000;

describeWithNats("long documents on two devices", () => {
  rule(
    "[EDIT-7] blocks as long as a request are the same bytes on another device, and after edits there",
    async () => {
      const rng = createRng(seed);
      await using nats = await startNats();
      await using one = await startDevice({ network: nats.url });
      await using other = await startDevice({ network: nats.url, mnemonic: one.mnemonic });
      const space = await createSpace(one.server.client, "Long");
      const pathOf = (id: string) => `/v1/spaces/${space.id}/objects/${id}/editor/markdown`;
      const read = async (device: Device, id: string) =>
        (await device.server.client.get<{ content: string }>(pathOf(id))).content;
      const contents = new Map<string, string>();
      for (const kind of rng.shuffle(LONG_BLOCKS).slice(0, 5)) {
        const { id } = await createObject(one.server.client, space.id);
        const block = longBlock(rng, kind, BODY_BYTES - 64);
        await one.server.client.put(pathOf(id), { content: `# before\n\n${block}` }, 200);
        contents.set(id, `# before\n\n${foldLineEnds(block)}`);
      }
      /** One after the other, because a server works long on each reading. */
      const untilShown = async (device: Device) => {
        for (const [id, content] of contents)
          await until(
            async () => (await read(device, id)) === content,
            `the documents at ${device.server.dataDir}`,
            WAIT_MS,
          );
      };
      await untilStatus(other, space.id, "active", WAIT_MS);
      await untilShown(other);

      for (const [id, content] of contents) {
        const edits = [{ oldText: "# before", newText: "# edited\n\nmore" }];
        await other.server.client.patch(pathOf(id), { edits }, 200);
        contents.set(id, content.replace("# before", "# edited\n\nmore"));
      }
      for (const [id, content] of contents) expect((await read(other, id)) === content).toBe(true);
      await untilShown(one);
    },
    240_000,
  );
});
