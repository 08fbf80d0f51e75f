import type { SpaceId } from "../../base/ids.ts";
import type { Engine } from "../../engine/boot/engine.ts";
import type { StreamSource } from "./stream-source.ts";

/**
 * Ends a stream of a space's content with `closed{sdk_closed}` when the account loses the space: it was removed, left or
 * deleted, here or on another device.
 */
export function ofSpace(ctx: { engine: Engine; params: { spaceId: SpaceId } }, source: StreamSource): StreamSource {
  const { engine, params } = ctx;
  return {
    ...source,
    async start(sink) {
      const forget = engine.spaceEvents.on("over", (spaceId) => {
        if (spaceId === params.spaceId) sink.close("sdk_closed");
      });
      try {
        const feed = await source.start(sink);
        return {
          ...feed,
          stop() {
            forget();
            feed.stop();
          },
        };
      } catch (error) {
        forget();
        throw error;
      }
    },
  };
}
