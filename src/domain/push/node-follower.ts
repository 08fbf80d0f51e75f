import { bytesToBase64Url } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { AccountId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import {
  DevicesReply,
  type NodeTokenBody,
  NoReply,
  PUSH_BOUNDS,
  PUSH_PATHS,
  type TopicsBody,
  TopicsPage,
} from "../../protocol/push-node.ts";
import { type NodeCalls, NodeFault } from "../../push-link/node-calls.ts";
import { topicsStatement } from "../../push-link/statements.ts";
import type { PushOutboxStore } from "../../store/push-outbox-store.ts";
import { retryDelayMs } from "./retry-delay.ts";
import type { PlannedSpace, SubscriptionPlan } from "./subscription-plan.ts";
import type { TokenFile, TokenState } from "./token-file.ts";

/** Changes that come within this time are sent in one go. */
const DEBOUNCE_MS = 250;
/** How often the node is checked: it may have lost something, or another device of the account may have sent something else. */
const LOOK_MS = 5 * 60_000;

interface FollowerDeps {
  readonly calls: NodeCalls;
  readonly accountId: AccountId;
  readonly tokenFile: TokenFile;
  readonly plan: SubscriptionPlan;
  readonly store: Pick<PushOutboxStore, "pruned" | "dropPruned" | "noteKeys" | "isKnownKey">;
  /** Whether this device itself was pruned: it then sends nothing to the node. */
  isPruned(): boolean;
  /** What the account calls a device of its own. */
  tagOf(peerId: string): string;
  readonly ownTag: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** What was last sent to the node, as texts, and when. */
interface SentState {
  readonly token: string;
  readonly plan: string;
  readonly atMs: number;
}

/** Keeps the node in step with this device's token and with the topics of which the account is notified. */
export interface NodeFollower extends Service {
  /** Must be called when something may have changed. */
  kick(): void;
}

export function createNodeFollower(deps: FollowerDeps): NodeFollower {
  const { calls, tokenFile, store, clock, log } = deps;
  /** Undefined while it is not known what the node has. */
  let sent: SentState | undefined;
  /** How often the node was found to have lost what was sent to it. */
  let losses = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  let begun = false;
  let stopped = false;
  /** Failures in a row; while there are some, nothing shortens the pause. */
  let failures = 0;

  const wakeIn = (ms: number): void => {
    clearTimeout(timer);
    if (begun && !stopped) timer = setTimeout(run, ms);
  };

  const run = (): void => {
    if (running) return;
    again = false;
    running = follow()
      .then(() => {
        failures = 0;
        wakeIn(again ? DEBOUNCE_MS : LOOK_MS);
      })
      .catch((error: unknown) => {
        sent = undefined;
        if (stopped) return;
        const delayMs = (error instanceof NodeFault ? error.retryAfterMs : undefined) ?? retryDelayMs(failures);
        failures++;
        const level = failures === 1 ? "warn" : "debug"; // once an outage
        log[level]("the push node was not told what it should know; it is tried again", { err: error, delayMs });
        wakeIn(delayMs);
      })
      .finally(() => {
        running = undefined;
      });
  };

  const follow = async (): Promise<void> => {
    if (deps.isPruned()) return;
    await sendPruned();
    const token = await tokenFile.read();
    const planned = await deps.plan.plan();
    const now: SentState = {
      token: JSON.stringify(token),
      plan: JSON.stringify(planned.map(({ keys, topics }) => [keys.publicKey, topics])),
      atMs: clock.nowMs(),
    };
    const isFresh = sent !== undefined && now.atMs - sent.atMs < LOOK_MS / 2;
    if (isFresh && sent?.token === now.token && sent.plan === now.plan) return;
    const state = losses;
    if (await sendToken(token, sent?.token === now.token)) await sendTopics(planned);
    sent = state === losses ? now : undefined;
  };

  /** Devices that were pruned lose their tokens. */
  const sendPruned = async (): Promise<void> => {
    for (const peerId of store.pruned()) {
      await calls.post(PUSH_PATHS.tokenDrop, NoReply, { device: deps.tagOf(peerId) });
      store.dropPruned(peerId);
    }
  };

  /** Sends the token. Returns whether the account has a device to wake: without one there is nothing to watch. */
  const sendToken = async (state: TokenState, isKnown: boolean): Promise<boolean> => {
    if (state.kind === "revoked") {
      await calls.post(PUSH_PATHS.tokenDrop, NoReply, { device: deps.ownTag });
      await tokenFile.forgetRevoked();
    }
    const { devices } = await calls.post(PUSH_PATHS.devices, DevicesReply, {});
    if (state.kind !== "set") return devices.length > 0;
    // The node may have lost its state, or dropped the token because its provider called it dead.
    if (isKnown && devices.some(({ device }) => device === deps.ownTag)) return true;
    const { platform, token, registeredMs } = state;
    await calls.post(PUSH_PATHS.token, NoReply, {
      platform,
      token,
      registeredMs,
      device: deps.ownTag,
    } satisfies NodeTokenBody);
    return true;
  };

  const sendTopics = async (planned: readonly PlannedSpace[]): Promise<void> => {
    await store.noteKeys(planned.map(({ keys }) => keys.publicKey));
    const { add, drop } = differences(planned, await listTopics(), store.isKnownKey);
    for (const part of slicesOf(drop))
      await calls.post(PUSH_PATHS.topics, NoReply, { drop: grouped(part) } satisfies TopicsBody);
    const keysByName = new Map(planned.map(({ keys }) => [keys.publicKey, keys]));
    for (const part of slicesOf(add)) {
      const spaces = grouped(part).map(({ spaceKey, topics }) => {
        const statement = topicsStatement(calls.audience, spaceKey, deps.accountId, topics);
        const signature = bytesToBase64Url(keysByName.get(spaceKey)!.sign("push-topics", statement));
        return { spaceKey, topics, signature };
      });
      await calls.post(PUSH_PATHS.topics, NoReply, { add: spaces } satisfies TopicsBody);
    }
  };

  const listTopics = async (): Promise<SpaceTopic[]> => {
    const held: SpaceTopic[] = [];
    for (;;) {
      const after = held.at(-1);
      const page = await calls.post(PUSH_PATHS.topicsList, TopicsPage, after ? { after } : {});
      held.push(...page.topics);
      // A page that is not full is the last one, whatever it says.
      if (!page.more || page.topics.length < PUSH_BOUNDS.requestTopics) return held;
      if (held.length >= PUSH_BOUNDS.listedTopics) throw new NodeFault("the push node lists topics without end", 0);
    }
  };

  const kick = (): void => {
    again = true;
    if (!running && failures === 0) wakeIn(DEBOUNCE_MS);
  };

  calls.onOtherState(() => {
    losses++;
    sent = undefined;
    kick();
  });

  return {
    name: "push node",
    kick,
    start() {
      begun = true;
      run();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

interface SpaceTopic {
  readonly spaceKey: string;
  readonly topic: string;
}

/** Returns what the node lacks of the plan, and what it holds that is no longer wanted. */
function differences(
  planned: readonly PlannedSpace[],
  held: readonly SpaceTopic[],
  isKnownKey: (spaceKey: string) => boolean,
): { add: SpaceTopic[]; drop: SpaceTopic[] } {
  const nameOf = ({ spaceKey, topic }: SpaceTopic) => `${spaceKey} ${topic}`;
  const wanted = planned.flatMap(({ keys, topics }) => topics.map((topic) => ({ spaceKey: keys.publicKey, topic })));
  const wantedNames = new Set(wanted.map(nameOf));
  const heldNames = new Set(held.map(nameOf));
  return {
    add: wanted.filter((one) => !heldNames.has(nameOf(one))),
    // A key that was never seen here belongs to an epoch that another device of the account already knows.
    drop: held.filter((one) => !wantedNames.has(nameOf(one)) && isKnownKey(one.spaceKey)),
  };
}

/** As much as one request takes, of no more spaces than it takes. */
function slicesOf(topics: readonly SpaceTopic[]): SpaceTopic[][] {
  const sorted = [...topics].sort((a, b) => (a.spaceKey < b.spaceKey ? -1 : a.spaceKey > b.spaceKey ? 1 : 0));
  const slices: SpaceTopic[][] = [];
  let spaces = new Set<string>();
  for (const one of sorted) {
    const last = slices.at(-1);
    spaces.add(one.spaceKey);
    if (last && last.length < PUSH_BOUNDS.requestTopics && spaces.size <= PUSH_BOUNDS.requestSpaces) last.push(one);
    else {
      slices.push([one]);
      spaces = new Set([one.spaceKey]);
    }
  }
  return slices;
}

function grouped(topics: readonly SpaceTopic[]): { spaceKey: string; topics: string[] }[] {
  const topicsByKey = new Map<string, string[]>();
  for (const { spaceKey, topic } of topics) {
    const known = topicsByKey.get(spaceKey);
    if (known) known.push(topic);
    else topicsByKey.set(spaceKey, [topic]);
  }
  return [...topicsByKey].map(([spaceKey, names]) => ({ spaceKey, topics: names }));
}
