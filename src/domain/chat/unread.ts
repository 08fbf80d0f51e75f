import type { ChangeOrigin, ReadFrontiers } from "../../account/own-space/read-frontiers.ts";
import type { AccountId, ObjectId } from "../../base/ids.ts";
import type { TouchedRecord } from "../../change/fold/commit-batch.ts";
import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { History } from "../../change/history/history.ts";
import type { ChangeEngine, Reaction, WriteTx } from "../../change/space-engine.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { CHAT_DATASET } from "./chat-rules.ts";

/** The counters on the chat object's row, by the flag of a message that each one counts. */
const COUNTERS = {
  unread: "chat.unreadCount",
  unreadMention: "chat.unreadMentions",
  unreadReactions: "chat.unreadReactionsCount",
} as const;
type Flag = keyof typeof COUNTERS;
const FLAGS = Object.keys(COUNTERS) as Flag[];

interface UnreadDeps {
  engine: ChangeEngine;
  history: Pick<History, "causalPast">;
  accountId: AccountId;
  frontiers: ReadFrontiers;
  /** Called with the error when taking over what another device has read fails. */
  onBackgroundError(error: unknown): void;
}

/** Tracks what this account has not read in a chat: flags on messages and counters on the chat, both private to the account. */
export type Unread = ReturnType<typeof createUnread>;

export function createUnread(deps: UnreadDeps) {
  const { engine, accountId, frontiers } = deps;

  const originOf = (objectId: string, version: Json | undefined): ChangeOrigin | undefined =>
    typeof version === "string" ? engine.originOf(objectId, version) : undefined;
  const isRead = (objectId: string, version: Json | undefined): boolean => {
    const origin = originOf(objectId, version);
    return origin !== undefined && frontiers.covers(objectId as ObjectId, origin);
  };

  /** Versions of the reactions that others left on a message. */
  const foreignReactions = (doc: JsonObject): { key: string; version: Json }[] => {
    const reactions = isJsonObject(doc["reactions"]) ? doc["reactions"] : {};
    const found: { key: string; version: Json }[] = [];
    for (const [emoji, slots] of Object.entries(reactions)) {
      for (const account of Object.keys(isJsonObject(slots) ? slots : {})) {
        if (account !== accountId)
          found.push({ key: `${emoji}.${account}`, version: versionAt(doc, ["reactions", emoji, account]) });
      }
    }
    return found;
  };

  /** Returns the flags that a message should have after it was folded, given its former state. */
  const flagsOf = (
    touched: TouchedRecord,
    before: JsonObject | undefined,
    after: JsonObject,
  ): Partial<Record<Flag, true>> => {
    const flags: Partial<Record<Flag, true>> = {};
    if (after["creator"] === accountId) {
      const known = new Set(before ? foreignReactions(before).map(({ key }) => key) : []);
      const fresh = foreignReactions(after).some(
        ({ key, version }) => !known.has(key) && !isRead(touched.object, version),
      );
      const left = foreignReactions(after).length > 0;
      if (fresh || (left && before?.["unreadReactions"] === true)) flags.unreadReactions = true;
      return flags;
    }
    const unread = before ? before["unread"] === true : !isRead(touched.object, versionAt(after, ["id"]));
    if (!unread) return flags;
    flags.unread = true;
    if (Array.isArray(after["mentions"]) && after["mentions"].includes(accountId)) flags.unreadMention = true;
    return flags;
  };

  const react: Reaction = (touched, local) => {
    const deltas = new Map<string, Record<Flag, number>>();
    for (const record of lastStates(touched)) {
      const object = local.object(record.object);
      if (!object) continue;
      const before = record.before === null ? undefined : (JSON.parse(record.before) as JsonObject);
      const after = record.doc === null ? undefined : (JSON.parse(record.doc) as JsonObject);
      const flags = after ? flagsOf(record, before, after) : {};
      const delta = deltas.get(record.object) ?? { unread: 0, unreadMention: 0, unreadReactions: 0 };
      deltas.set(record.object, delta);
      const fields: Record<string, Json | undefined> = {};
      for (const flag of FLAGS) {
        const was = before?.[flag] === true;
        const is = flags[flag] === true;
        if (is !== was) delta[flag] += is ? 1 : -1;
        if (after && is !== (after[flag] === true)) fields[flag] = is ? true : undefined;
      }
      if (Object.keys(fields).length > 0) local.setLocal(object, CHAT_DATASET, record.recordId, fields);
    }
    for (const [objectId, delta] of deltas) addToCounters(local, objectId, delta);
  };

  const addToCounters = (local: Parameters<Reaction>[1], objectId: string, delta: Record<Flag, number>): void => {
    const object = local.object(objectId);
    const row = object && local.record(object, OBJECTS_DATASET, objectId);
    if (!object || !row) return;
    const counters = isJsonObject(row["chat"]) ? row["chat"] : {};
    const fields: Record<string, Json | undefined> = {};
    for (const flag of FLAGS) {
      if (delta[flag] === 0) continue;
      const path = COUNTERS[flag];
      const before = counters[path.slice("chat.".length)];
      const count = Math.max(0, (typeof before === "number" ? before : 0) + delta[flag]);
      fields[path] = count === 0 ? undefined : count;
    }
    if (Object.keys(fields).length > 0) local.setLocal(object, OBJECTS_DATASET, objectId, fields);
  };

  /** Removes the flags from everything that the frontier covers by now. */
  const dropCovered = (objectId: ObjectId): Promise<void> =>
    engine.write((tx) => {
      const object = tx.object(objectId);
      if (!object) return;
      const delta: Record<Flag, number> = { unread: 0, unreadMention: 0, unreadReactions: 0 };
      for (const doc of engine.recordsWithLocal(object, CHAT_DATASET)) {
        const readMessage = doc["unread"] === true && isRead(objectId, versionAt(doc, ["id"]));
        const readReactions =
          doc["unreadReactions"] === true && foreignReactions(doc).every(({ version }) => isRead(objectId, version));
        const gone = FLAGS.filter(
          (flag) => doc[flag] === true && (flag === "unreadReactions" ? readReactions : readMessage),
        );
        if (gone.length === 0) continue;
        for (const flag of gone) delta[flag]--;
        tx.setLocal(
          object,
          CHAT_DATASET,
          doc["id"] as string,
          Object.fromEntries(gone.map((flag) => [flag, undefined])),
        );
      }
      addToCounters(tx, objectId, delta);
    });

  engine.reactTo(CHAT_DATASET, react);
  const stop = frontiers.onChanged((objectId) => {
    // This engine does not have the objects of other spaces.
    if (engine.object(objectId)) dropCovered(objectId).catch(deps.onBackgroundError);
  });

  return {
    /** Marks a message and everything before it in the chat's order as read. */
    async readUpTo(objectId: ObjectId, message: JsonObject): Promise<void> {
      const upTo = versionAt(message, ["id"]) as string;
      await readWhere(objectId, (version) => version <= upTo, [originOf(objectId, upTo)]);
    },
    readAll: (objectId: ObjectId): Promise<void> => readWhere(objectId, () => true, []),
    /** Marks the reactions on a message as read, and every message that their authors knew when they reacted. */
    async readReactions(objectId: ObjectId, message: JsonObject): Promise<void> {
      const versions = foreignReactions(message).flatMap(({ version }) => (typeof version === "string" ? version : []));
      const known = [...versions, ...(await unreadBefore(objectId, versions))];
      await advance(
        objectId,
        known.map((version) => originOf(objectId, version)),
      );
    },
    dropCovered,
    /** Updates the chat's counters after a caller set or removed flags of a message directly. */
    followLocal(tx: WriteTx, object: ObjectEntry, dataset: string, before: JsonObject, after: JsonObject): void {
      if (dataset !== CHAT_DATASET) return;
      const delta: Record<Flag, number> = { unread: 0, unreadMention: 0, unreadReactions: 0 };
      for (const flag of FLAGS) delta[flag] = Number(after[flag] === true) - Number(before[flag] === true);
      addToCounters(tx, object.idText, delta);
    },
    close: stop,
  };

  /** Returns the unread messages that the authors of these versions knew when they wrote. */
  async function unreadBefore(objectId: ObjectId, versions: readonly string[]): Promise<string[]> {
    const object = engine.object(objectId);
    const unread = object ? unreadIn(object).sort() : [];
    const [oldest] = unread;
    if (!object || oldest === undefined || versions.length === 0) return [];
    return unread.filter(await deps.history.causalPast(object, versions, oldest));
  }

  /** The versions with which the unread messages of a chat came. */
  function unreadIn(object: ObjectEntry): string[] {
    return engine
      .recordsWithLocal(object, CHAT_DATASET)
      .flatMap((doc) => (doc["unread"] === true ? (versionAt(doc, ["id"]) as string) : []));
  }

  async function readWhere(
    objectId: ObjectId,
    wanted: (version: string) => boolean,
    also: (ChangeOrigin | undefined)[],
  ): Promise<void> {
    const object = engine.object(objectId);
    if (!object) return;
    const read = unreadIn(object).filter(wanted);
    await advance(objectId, [...also, ...read.map((version) => originOf(objectId, version))]);
  }

  async function advance(objectId: ObjectId, origins: readonly (ChangeOrigin | undefined)[]): Promise<void> {
    await frontiers.advance(
      engine.spaceId,
      objectId,
      origins.filter((origin) => origin !== undefined),
    );
    await dropCovered(objectId);
  }
}

/** Returns one entry per record: its state before the batch and after it, whatever happened in between. */
function lastStates(touched: readonly TouchedRecord[]): Iterable<TouchedRecord> {
  const byRecord = new Map<string, TouchedRecord>();
  for (const record of touched) {
    const key = `${record.object} ${record.recordId}`;
    const first = byRecord.get(key);
    byRecord.set(key, first ? { ...record, before: first.before } : record);
  }
  return byRecord.values();
}

/** Returns the version that last wrote a path of a record, as `_ver` holds it. */
function versionAt(doc: JsonObject, path: readonly string[]): Json {
  let node: Json = doc["_ver"] ?? null;
  for (const segment of path) {
    if (typeof node === "string") return node;
    if (!isJsonObject(node)) return null;
    node = (Object.hasOwn(node, segment) ? node[segment] : node["*"]) ?? null;
  }
  return isJsonObject(node) ? (node["*"] ?? null) : node;
}
