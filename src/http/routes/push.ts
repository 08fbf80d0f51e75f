import { Type } from "@sinclair/typebox";
import type { Engine } from "../../engine/boot/engine.ts";
import { svcError } from "../../protocol/errors.ts";
import { PLATFORMS, PUSH_BOUNDS } from "../../protocol/push-node.ts";
import { named, oneOf, strict } from "../../protocol/schema.ts";
import { type Route, route } from "../route.ts";

const Platform = named("Platform", oneOf(PLATFORMS));

export const pushRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/push/token",
    id: "setPushToken",
    tag: "Push",
    summary: "Register this device's push token",
    description:
      "Replaces the one before. It is kept in `push-token.json` beside the account's data and told to the push node now, at every start, and whenever the node has lost it.",
    body: strict({
      platform: Platform,
      token: Type.String({
        description: `As the platform gave it to the app, at most ${PUSH_BOUNDS.tokenChars} characters`,
      }),
    }),
    example: { platform: "ios", token: "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad" },
    responses: { 204: { description: "Kept; the node hears of it in the background" } },
    errors: ["push.disabled"],
    handler: async ({ engine, body }) => {
      const fault = faultOf(body.token);
      if (fault) throw svcError("request.invalid_field", { field: "token", reason: fault }, `token ${fault}`);
      await pushOf(engine).setToken(body.platform, body.token);
    },
  }),
  route({
    method: "GET",
    path: "/v1/push/token",
    id: "getPushToken",
    tag: "Push",
    summary: "Whether this device has a push token",
    responses: {
      200: {
        description: "`platform` is there when one is registered",
        schema: strict({ registered: Type.Boolean(), platform: Type.Optional(Platform) }),
      },
    },
    errors: ["push.disabled"],
    handler: ({ engine }) => pushOf(engine).tokenStatus(),
  }),
  route({
    method: "DELETE",
    path: "/v1/push/token",
    id: "revokePushToken",
    tag: "Push",
    summary: "Forget this device's push token",
    description: "Here at once, on the push node as soon as it can be reached. Nothing is wrong if there is none.",
    responses: { 204: { description: "Forgotten" } },
    errors: ["push.disabled"],
    handler: ({ engine }) => pushOf(engine).revokeToken(),
  }),
  route({
    method: "GET",
    path: "/v1/push/subscriptions",
    id: "listPushSubscriptions",
    tag: "Push",
    summary: "The topics that this account watches",
    description:
      "They follow the account's spaces, the `notifyMode` of each and of its chats: docs/push.md says how. `spaceKey` is the base58 public half of the row's `push.spaceKey`.",
    responses: {
      200: {
        description: "What the push node is told",
        schema: strict({
          subscriptions: Type.Array(strict({ spaceKey: Type.String(), topic: Type.String() })),
        }),
      },
    },
    errors: ["push.disabled"],
    handler: async ({ engine }) => ({ subscriptions: await pushOf(engine).subscriptions() }),
  }),
];

function pushOf({ push }: Engine): NonNullable<Engine["push"]> {
  if (!push)
    throw svcError("push.disabled", undefined, "No push node is configured; set push.url to one and start again");
  return push;
}

function faultOf(token: string): string | undefined {
  if (token === "") return "must not be empty";
  if (token.length > PUSH_BOUNDS.tokenChars) return `has at most ${PUSH_BOUNDS.tokenChars} characters`;
  return /^[!-~]+$/.test(token) ? undefined : "is printable ASCII without spaces, as the platform gave it";
}
