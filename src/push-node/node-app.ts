import type { Static, TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { bytesToUtf8 } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createRateLimit } from "../base/rate-limit.ts";
import {
  ChallengeBody,
  DeliveryBody,
  MessageBody,
  NodeTokenBody,
  PUSH_BOUNDS,
  PUSH_HEADERS,
  PUSH_PATHS,
  TokenDropBody,
  TopicsBody,
  TopicsListBody,
} from "../protocol/push-node.ts";
import { strict } from "../protocol/schema.ts";
import { storageFault } from "../protocol/storage-fault.ts";
import type { createAccountProof } from "./account-proof.ts";
import type { NodeLimits } from "./node-config.ts";
import { Refusal } from "./refusal.ts";
import type { PushService } from "./service.ts";

interface AppDeps {
  readonly service: PushService;
  readonly proof: ReturnType<typeof createAccountProof>;
  readonly limits: NodeLimits;
  readonly clock: Clock;
  readonly log: Log;
  /** Requests come through a proxy that appends the sender's address to X-Forwarded-For. */
  readonly behindProxy: boolean;
}

/** When to come again where another program has the node's file locked. */
const LOCKED_RETRY_MS = 1_000;

type Handler = (account: string, body: unknown, address: string) => Promise<unknown>;
interface NodeRoute {
  readonly schema: TypeCheck<TSchema>;
  readonly handler: Handler;
}

/**
 * The node's HTTP interface: it limits callers, limits and checks bodies, verifies signatures, and only then does
 * anything.
 */
export function createNodeApp(deps: AppDeps) {
  const { service, proof, limits, clock, log } = deps;
  const byAddress = createRateLimit(clock, {
    perSecond: limits.addressRequestsPerSecond,
    burst: limits.addressRequestBurst,
  });
  const byAccount = createRateLimit(clock, { perSecond: limits.requestsPerSecond, burst: limits.requestBurst });
  const routes = signedRoutes(service);
  const challengeBody = TypeCompiler.Compile(ChallengeBody);

  const admit = (limit: typeof byAddress, key: string): void => {
    const waitMs = limit.take(key);
    if (waitMs > 0) throw new Refusal("push.too_often", undefined, waitMs);
  };

  const answer = async (request: Request, address: string): Promise<Response> => {
    // Without a Host, or with one that is not a name, the request's URL is not absolute.
    const path = URL.parse(request.url, "http://node")?.pathname ?? "";
    if (path === PUSH_PATHS.health && request.method === "GET") return Response.json({ status: "ok" });
    const route = routes.get(path);
    if (request.method !== "POST" || (!route && path !== PUSH_PATHS.challenge)) throw new Refusal("push.not_found");
    const from = addressOf(request, address, deps.behindProxy);
    admit(byAddress, from);
    const bytes = await readBody(request);
    if (!route) {
      const { account } = parseBody(challengeBody, bytes) as { account: string };
      return Response.json({ challenge: proof.challengeFor(account) });
    }
    const account = await proof.accountOf(request, path, bytes, (proved) => admit(byAccount, proved));
    const response = await handle(route, account, bytes, from);
    response.headers.set(PUSH_HEADERS.challenge, proof.challengeFor(account));
    response.headers.set(PUSH_HEADERS.state, proof.stateTag);
    return response;
  };

  const handle = async (route: NodeRoute, account: string, bytes: Uint8Array, from: string): Promise<Response> => {
    try {
      const reply = await route.handler(account, parseBody(route.schema, bytes), from);
      return reply ? Response.json(reply) : new Response(null, { status: 204 });
    } catch (error) {
      if (error instanceof Refusal) return error.toResponse();
      throw error;
    }
  };

  return {
    /** Answers a request; never rejects. `address` is the address of the connection's peer. */
    async fetch(request: Request, address: string): Promise<Response> {
      try {
        return await answer(request, address);
      } catch (error) {
        if (error instanceof Refusal) return error.toResponse();
        if (storageFault(error)?.code === "server.unavailable") {
          log.warn("a request could not be done: another program has the node's file locked", { err: error });
          return new Refusal("push.unavailable", undefined, LOCKED_RETRY_MS).toResponse();
        }
        log.error("a request failed inside the node", { err: error });
        return new Refusal("push.internal").toResponse();
      }
    },
  };
}

function signedRoutes(service: PushService): ReadonlyMap<string, NodeRoute> {
  const signed = <T extends TSchema>(
    path: string,
    schema: T,
    handler: (account: string, body: Static<T>, address: string) => Promise<unknown>,
  ): [string, NodeRoute] => [
    path,
    { schema: TypeCompiler.Compile(schema) as unknown as TypeCheck<TSchema>, handler: handler as Handler },
  ];
  return new Map([
    signed(PUSH_PATHS.token, NodeTokenBody, service.setToken),
    signed(PUSH_PATHS.tokenDrop, TokenDropBody, (account, body) => service.dropToken(account, body.device)),
    signed(PUSH_PATHS.devices, strict({}), (account) => service.devices(account)),
    signed(PUSH_PATHS.topics, TopicsBody, (account, body) => service.changeTopics(account, body)),
    signed(PUSH_PATHS.topicsList, TopicsListBody, (account, body) => service.topics(account, body.after)),
    signed(PUSH_PATHS.messages, MessageBody, (account, body) => service.send(account, body)),
    signed(PUSH_PATHS.deliveries, DeliveryBody, (account, body) => service.deliver(account, body)),
  ]);
}

/** Reads the body, no further than its longest allowed length. */
async function readBody(request: Request): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.length;
    if (length > PUSH_BOUNDS.bodyBytes) throw new Refusal("push.too_large");
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

function parseBody(schema: TypeCheck<TSchema>, bytes: Uint8Array): unknown {
  let value: unknown;
  try {
    value = JSON.parse(bytesToUtf8(bytes) ?? "");
  } catch {
    throw new Refusal("push.bad_request", "The body is not JSON");
  }
  if (schema.Check(value)) return value;
  const fault = schema.Errors(value).First();
  throw new Refusal("push.bad_request", `The body is refused at ${fault?.path || "/"}: ${fault?.message ?? "schema"}`);
}

/** Our own proxy wrote the last address; anybody can invent those before it. */
function addressOf(request: Request, address: string, behindProxy: boolean): string {
  const forwarded = behindProxy ? request.headers.get("x-forwarded-for") : null;
  return forwarded?.split(",").at(-1)?.trim() || address;
}
