import { type DeliveryBody, DeliveryReply, PUSH_PATHS } from "../protocol/push-node.ts";
import type { NodeCalls } from "../push-link/node-calls.ts";
import { type Notification, type Outcome, type Provider, reasonOf } from "./provider.ts";

/**
 * Delivers through another node, which has the credentials of the app's publisher. That node gets what a provider would
 * get: the token and the sealed bytes, but no account and no topic.
 */
export function createUpstream(calls: NodeCalls): Provider {
  return {
    name: "upstream",
    async send({ delivery, device }: Notification): Promise<Outcome> {
      const { id, kind, chat, spaceKey, keyId, sealed } = delivery;
      const { platform, token, registeredMs } = device;
      const body: DeliveryBody = { id, kind, platform, token, registeredMs, chat, spaceKey, keyId, sealed };
      try {
        return await calls.post(PUSH_PATHS.deliveries, DeliveryReply, body);
      } catch (error) {
        const { retryAfterMs, status } = error as { retryAfterMs?: number; status?: number };
        return {
          kind: "later",
          everyone: retryAfterMs !== undefined,
          ...(status === 0 ? { unreachable: true as const } : {}),
          reason: reasonOf(error),
          ...(retryAfterMs === undefined ? {} : { delayMs: retryAfterMs }),
        };
      }
    },
    async close() {},
  };
}
