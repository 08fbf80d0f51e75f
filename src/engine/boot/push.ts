import { join } from "node:path";
import { READ_FRONTIERS_DATASET } from "../../account/own-space/private-datasets.ts";
import { DEVICES_DATASET, SPACES_RULES } from "../../account/own-space/tech-datasets.ts";
import { bytesToBase58 } from "../../base/base58.ts";
import { base64ToBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { writerName } from "../../change/codec/version.ts";
import type { CommitBatch, TouchedRecord } from "../../change/fold/commit-batch.ts";
import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import type { Account } from "../../crypto/account.ts";
import { createSigner } from "../../crypto/sign.ts";
import { CHAT_DATASET } from "../../domain/chat/chat-rules.ts";
import type { PushSpace, PushSpaces, SpacePushKeys } from "../../domain/push/port.ts";
import { createPushService, type PushService } from "../../domain/push/push-service.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import { NOTIFY_MODES, type NotifyMode } from "../../protocol/notify-mode.ts";
import type { SpaceInfo } from "../../protocol/space.ts";
import type { Space } from "../../space/space.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { Config } from "../config/config.ts";
import type { SpaceServices } from "../space-services.ts";
import type { OpenAccount } from "./open-account.ts";

const MODE_PATH = "chat.notifyMode";

interface PushDeps {
  readonly config: Pick<Config, "push.url">;
  readonly accountDir: string;
  readonly opened: OpenAccount;
  readonly events: SpaceEvents;
  /** What push builds on an active space. */
  space(spaceId: string): Promise<Pick<SpaceServices, "queries">>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Push notifications over the account's spaces; undefined where no push node is configured. */
export function createPush(deps: PushDeps): PushService | undefined {
  const { events, accountDir } = deps;
  const { account, tech, devices, accountValues } = deps.opened;
  const url = deps.config["push.url"];
  if (url === undefined) return undefined;
  const push = createPushService({
    url,
    account,
    spaces: pushSpaces(deps),
    paths: { token: join(accountDir, "push-token.json"), store: join(accountDir, "push.db") },
    isPruned: () => !devices.list().devices.some(({ peerId }) => peerId === account.peerId),
    clock: deps.clock,
    log: deps.log.child({ component: "push" }),
  });
  const stops = [
    events.on("committed", (space, batch) => {
      try {
        if (space.id === tech.space.id) followAccount(push, space, batch);
        else followSpace(push, account, space, batch);
      } catch (error) {
        // On a full disk, for example: what was written is committed, and a notification that fails must not fail the
        // writer.
        deps.log.error("a notification could not be queued", { err: error, spaceId: space.id });
      }
    }),
    events.on("aclChanged", () => push.changed()),
    events.on("ended", (spaceId) => push.spaceEnded(spaceId)),
    accountValues.onChanged(() => push.changed()),
  ];
  return {
    ...push,
    stop() {
      for (const stop of stops) stop();
      return push.stop();
    },
  } satisfies Service;
}

/** The account's own space: rows and modes of spaces, how far chats were read, devices. */
function followAccount(push: PushService, space: Space, { touched }: CommitBatch): void {
  for (const record of touched) {
    if (record.dataset === SPACES_RULES.name) push.changed();
    else if (record.dataset === DEVICES_DATASET && record.before !== null && record.doc === null)
      push.devicePruned(record.recordId);
    else if (record.dataset === READ_FRONTIERS_DATASET && record.doc !== null && isWrittenHere(space, record)) {
      const { spaceId } = JSON.parse(record.doc) as JsonObject;
      if (typeof spaceId === "string") push.chatRead(spaceId, record.recordId);
    }
  }
}

/** A space: messages that this device wrote, and chats that come and go. */
function followSpace(push: PushService, account: Account, space: Space, batch: CommitBatch): void {
  const written: TouchedRecord[] = [];
  for (const record of batch.touched) {
    if (record.dataset === OBJECTS_DATASET && mayBeChat(record.before) !== mayBeChat(record.doc)) push.changed();
    if (record.dataset === CHAT_DATASET && record.synced && record.before === null && record.doc !== null)
      written.push(record);
  }
  if (written.length === 0 || batch.localChanges === 0) return;
  const isAllOwn = countChanges(batch.touched) === batch.localChanges && countChanges(written) === batch.localChanges;
  for (const record of written) {
    const message = JSON.parse(record.doc!) as JsonObject;
    const isInterim = isJsonObject(message["agent"]) && message["agent"]["done"] === false;
    if (message["creator"] !== account.id || isInterim || !(isAllOwn || isWrittenHere(space, record))) continue;
    push.messageWritten(space.id, record.object, record.recordId, mentionsOf(message));
  }
}

/**
 * If a batch holds only messages, and as many changes as this device made, none of them has to be checked for its author.
 */
const countChanges = (touched: readonly TouchedRecord[]): number =>
  new Set(touched.filter(({ synced }) => synced).map(({ versionId }) => versionId)).size;

/**
 * Whether an object's row names the type of chats. It looks without parsing, because rows are written often and chats are
 * made rarely.
 */
const mayBeChat = (doc: string | null): boolean => doc?.includes('"chat"') ?? false;

/** Whether this device's own change did it, and not one of another device of the account. */
function isWrittenHere({ engine, accountKey }: Space, record: TouchedRecord): boolean {
  const writer = record.synced ? engine.writerId() : undefined;
  if (!writer) return false;
  return engine.originOf(record.object, record.versionId)?.writer === writerName(accountKey, writer);
}

const mentionsOf = (message: JsonObject): string[] =>
  Array.isArray(message["mentions"]) ? message["mentions"].filter((one) => typeof one === "string") : [];

function pushSpaces({ opened, space }: PushDeps): PushSpaces {
  const { spaces, accountValues } = opened;
  const keysBySeed = new Map<string, SpacePushKeys>();
  const keysOf = ({ spaceKey, encKey, encKeyId }: NonNullable<SpaceInfo["push"]>): SpacePushKeys | undefined => {
    const known = keysBySeed.get(`${spaceKey} ${encKey}`);
    const [seed, key] = [base64ToBytes(spaceKey), base64ToBytes(encKey)];
    if (known || !seed || !key) return known;
    const signer = createSigner(seed);
    const keys = { publicKey: bytesToBase58(signer.publicKey), sign: signer.sign, encKey: key, encKeyId };
    keysBySeed.set(`${spaceKey} ${encKey}`, keys);
    return keys;
  };
  const toPushSpace = (info: SpaceInfo): PushSpace => {
    const spaceId = info.id as SpaceId;
    const modes = accountValues.objectsOf(spaceId).flatMap((objectId): [string, NotifyMode][] => {
      const mode = modeOf(accountValues.of(objectId)[MODE_PATH]);
      return mode ? [[objectId, mode]] : [];
    });
    return {
      spaceId,
      mode: modeOf(info.settings?.["notifyMode"]) ?? "all",
      modeByChat: new Map(modes),
      keys: info.push && info.ownRole !== "none" ? keysOf(info.push) : undefined,
    };
  };
  return {
    active: () => spaces.list(undefined).map(toPushSpace),
    of(spaceId) {
      const info = spaces.list(undefined).find(({ id }) => id === spaceId);
      return info && toPushSpace(info);
    },
    async chatsOf(spaceId) {
      const { queries } = await space(spaceId);
      const { records } = await queries.query(queries.objectsSource(), { filter: { "svc.types": "chat" } });
      return records.map((record) => (JSON.parse(record) as { id: string }).id);
    },
    async message(spaceId, chatId, messageId) {
      const info = spaces.list(undefined).find(({ id }) => id === spaceId);
      if (!info) return undefined;
      return spaces.use(info.id as SpaceId, async ({ engine }) => {
        const chat = engine.object(chatId);
        const message = chat && !chat.deleted ? engine.record(chat, CHAT_DATASET, messageId) : undefined;
        if (!message) return undefined;
        const text = typeof message["text"] === "string" ? message["text"] : "";
        return { sender: String(message["creator"]), text, mentions: mentionsOf(message) };
      });
    },
  };
}

const modeOf = (value: unknown): NotifyMode | undefined => NOTIFY_MODES.find((mode) => mode === value);
