import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { EventFilter } from "./event-filter.ts";

/**
 * How events are addressed on the network (EVENT-2). A topic is `ev/<type, dots as slashes>/<target or ->`. Types that
 * a device publishes about its own account are self-owned: `acc/ev/<type>/<target or ->/<account>`, so that nobody can
 * speak in another's name. Patterns end in `*` (one segment) or `>` (one or more).
 */
const MAX_TOPIC_BYTES = 256;
const MAX_TOPIC_SEGMENTS = 16;
const NO_TARGET = "-";
/** Matches text that looks like an account id, whether valid or misspelt. */
const ACCOUNT_LIKE = /^A[1-9A-HJ-NP-Za-km-z]{40,60}$/;
const SELF_OWNED_TYPES: ReadonlySet<string> = new Set(["editor.cursor"]);

/** The topic of an event that `account` publishes. */
export function topicOf(type: string, target: string | undefined, account: string): string {
  const topic = `ev/${type.replaceAll(".", "/")}/${target ?? NO_TARGET}`;
  return SELF_OWNED_TYPES.has(type) ? `acc/${topic}/${account}` : topic;
}

/** Returns why type and target do not make a topic: together they are too long. */
export function topicFault(type: string, target: string | undefined): Refusal | undefined {
  const topic = topicOf(type, target, "");
  if (topic.length > MAX_TOPIC_BYTES) return refusal("event.topic_bytes", { limit: MAX_TOPIC_BYTES });
  if (topic.split("/").length > MAX_TOPIC_SEGMENTS) {
    return refusal("event.topic_segments", { limit: MAX_TOPIC_SEGMENTS });
  }
  return undefined;
}

/** What a topic from the network says; `owner` is set for self-owned types. The parts still have to be checked. */
export interface ParsedTopic {
  readonly type: string;
  readonly target: string | undefined;
  readonly owner: string | undefined;
}

/** Parses a topic. Returns undefined for text that is no topic, or not the topic of its type. */
export function parseTopic(topic: string): ParsedTopic | undefined {
  if (topic.length > MAX_TOPIC_BYTES + 64) return undefined;
  const segments = topic.split("/");
  const owned = segments[0] === "acc";
  const owner = owned ? segments.pop() : undefined;
  if (owned) segments.shift();
  if (segments.shift() !== "ev" || segments.length < 2) return undefined;
  const target = segments.pop()!;
  const type = segments.join(".");
  if (SELF_OWNED_TYPES.has(type) !== owned) return undefined;
  return { type, target: target === NO_TARGET ? undefined : target, owner };
}

/** Whether an event of a self-owned type names another account in its target, whose topic it would then be. */
export function namesForeignTopic(type: string, target: string | undefined, account: string): boolean {
  if (!SELF_OWNED_TYPES.has(type) || target === undefined) return false;
  return target.split(".").some((part) => part !== account && ACCOUNT_LIKE.test(part));
}

/** The pattern of every event whose type is below a prefix. */
export const belowPattern = (prefix: string): string => `ev/${prefix.replaceAll(".", "/")}/>`;

/**
 * Returns the patterns that a stream needs from an audience: those of everything that its filter can match, or with `byTarget` only
 * those of the targets it names. What else the patterns let through is filtered here.
 */
export function patternsOf(filter: EventFilter, byTarget: boolean): string[] {
  const { types, prefixes } = filter;
  if (types.size + prefixes.size === 0) return ["ev/>", "acc/ev/>"];
  const targets = byTarget && filter.targets.size > 0 ? [...filter.targets] : ["*"];
  const patterns = new Set<string>();
  for (const type of types) {
    const path = `ev/${type.replaceAll(".", "/")}`;
    for (const target of targets)
      patterns.add(SELF_OWNED_TYPES.has(type) ? `acc/${path}/${target}/*` : `${path}/${target}`);
  }
  for (const prefix of prefixes) {
    patterns.add(belowPattern(prefix));
    for (const type of SELF_OWNED_TYPES) {
      if (type === prefix || type.startsWith(`${prefix}.`)) patterns.add(`acc/ev/${type.replaceAll(".", "/")}/>`);
    }
  }
  return [...patterns];
}

/** Returns the patterns of a set that no other one covers: those to subscribe to. */
export function coverOf(patterns: ReadonlyMap<string, number> | ReadonlySet<string>): string[] {
  const cover: string[] = [];
  for (const pattern of patterns.keys()) if (!isCovered(pattern, patterns)) cover.push(pattern);
  return cover;
}

function isCovered(pattern: string, by: ReadonlyMap<string, number> | ReadonlySet<string>): boolean {
  const segments = pattern.split("/");
  // `a/b/>` covers every pattern below `a/b`.
  for (let length = segments.length - 1; length > 0; length--) {
    const wide = `${segments.slice(0, length).join("/")}/>`;
    if (wide !== pattern && by.has(wide)) return true;
  }
  const last = segments.length - (segments[0] === "acc" ? 2 : 1);
  const anyTarget = segments.with(last, "*").join("/");
  return anyTarget !== pattern && segments.at(-1) !== ">" && by.has(anyTarget);
}
