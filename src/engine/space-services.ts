import type { AccountValues } from "../account/own-space/account-values.ts";
import type { AclSecrets } from "../account/own-space/acl-secrets.ts";
import type { ReadFrontiers } from "../account/own-space/read-frontiers.ts";
import type { AclBuild } from "../acl/compose/compose.ts";
import type { MemberMetadata } from "../acl/record/epoch.ts";
import { equalBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { closePart } from "../base/service.ts";
import { createHistory, type History } from "../change/history/history.ts";
import type { HistoryMemory } from "../change/history/memory.ts";
import type { Account } from "../crypto/account.ts";
import {
  type BundleService,
  bundleChildren,
  type Convergence,
  createBundleService,
} from "../domain/bundle/bundle-service.ts";
import { type ChatService, createChatService } from "../domain/chat/chat-service.ts";
import { createUnread } from "../domain/chat/unread.ts";
import { createEditorService, type EditorService } from "../domain/editor/editor-service.ts";
import type { FileContents } from "../domain/file/file-contents.ts";
import { createFileService, type FileService, filesObjectIn } from "../domain/file/file-service.ts";
import { createLiveQueries, type LiveQueries } from "../domain/live/live-queries.ts";
import { createMemberService, type MemberService } from "../domain/member/member-service.ts";
import { createAccountMirror } from "../domain/object/account-mirror.ts";
import { createObjectService, type ObjectService } from "../domain/object/object-service.ts";
import type { StartLongWork } from "../domain/process/port.ts";
import { createIndexAdvisor } from "../domain/record/index-advisor.ts";
import { createIndexBuilder } from "../domain/record/index-builder.ts";
import { createRecordAggregates, type RecordAggregates } from "../domain/record/record-aggregate.ts";
import { createRecordQueries, type RecordQueries } from "../domain/record/record-query.ts";
import { createRecordService, type RecordService } from "../domain/record/record-service.ts";
import { createUpsertService } from "../domain/record/upsert-service.ts";
import { createDatasetService, type DatasetService } from "../domain/type/dataset-service.ts";
import { createPropertyService, type PropertyService } from "../domain/type/property-service.ts";
import type { Schema } from "../domain/type/schema.ts";
import { createTypeService, type TypeService } from "../domain/type/type-service.ts";
import type { ContentStore } from "../files/content-store.ts";
import { svcError } from "../protocol/errors.ts";
import type { ReaderPool } from "../query/readers/reader-pool.ts";
import type { Space } from "../space/space.ts";

/** Everything that is built upon one open space. */
export interface SpaceServices {
  readonly space: Space;
  readonly schema: Schema;
  readonly types: TypeService;
  readonly properties: PropertyService;
  readonly datasets: DatasetService;
  readonly objects: ObjectService;
  readonly records: RecordService;
  readonly queries: RecordQueries;
  readonly aggregates: RecordAggregates;
  readonly chat: ChatService;
  readonly live: LiveQueries;
  readonly editor: EditorService;
  readonly bundles: BundleService;
  readonly upserts: ReturnType<typeof createUpsertService>;
  readonly history: History;
  readonly members: MemberService;
  readonly files: FileService;
  /** What this device has of the files' bytes. */
  readonly fileContents: FileContents;
  busy(): boolean;
  /** Stops using the space, which stays open. */
  close(): Promise<void>;
}

export function createSpaceServices(deps: {
  space: Space;
  schema: Schema;
  account: Account;
  secrets: AclSecrets;
  changeAcl(build: AclBuild): Promise<unknown>;
  announce(identities: readonly string[]): Promise<void>;
  refuse(identity: string, requestId: Uint8Array): Promise<void>;
  profile(): MemberMetadata | undefined;
  readers: ReaderPool;
  startLongWork: StartLongWork;
  frontiers: ReadFrontiers;
  accountValues: AccountValues;
  historyMemory: HistoryMemory;
  contents: ContentStore;
  fileContents: FileContents;
  convergence: Convergence;
  clock: Clock;
  log: Log;
}): SpaceServices {
  const { space, schema, account, clock } = deps;
  const { engine, events, store } = space;
  const requireWriter = () => {
    const role = space.role();
    if (role !== "owner" && role !== "admin" && role !== "writer")
      throw svcError("space.read_only", { spaceId: space.id, role });
  };
  const requireReader = () => {
    // After a guest key was revoked, what the guest has already read stays readable.
    const asGuest = !equalBytes(space.accountKey, account.signer.publicKey);
    if (space.role() === "none" && !asGuest) throw svcError("space.not_joined", { spaceId: space.id });
  };
  const onBackgroundError = (error: unknown) =>
    deps.log.error("work behind a request failed", { err: error, spaceId: space.id });
  const parts = new AsyncDisposableStack();
  const { contents, fileContents } = deps;
  parts.adopt(fileContents, closePart);
  const mirror = parts.adopt(createAccountMirror({ engine, values: deps.accountValues, onBackgroundError }), closePart);
  mirror.mirrorAll().catch(onBackgroundError);
  const { secrets, changeAcl, announce, refuse, profile, frontiers } = deps;
  const roster = createMemberService({ space, account, secrets, changeAcl, announce, refuse, profile });
  const members = parts.adopt(roster, closePart);
  const history = parts.adopt(createHistory({ engine, store, requireReader, memory: deps.historyMemory }), closePart);
  const unread = parts.adopt(
    createUnread({ engine, history, accountId: account.id, frontiers, onBackgroundError }),
    closePart,
  );
  const records = createRecordService({
    engine,
    schema,
    accountId: account.id,
    requireWriter,
    followLocal: unread.followLocal,
  });
  const objects = createObjectService({
    engine,
    schema,
    requireWriter,
    requireReader,
    setAccountValues: async (objectId, values) => {
      await deps.accountValues.set(space.id, objectId, values);
      await mirror.mirror(objectId, Object.keys(values));
    },
    childrenOf: (root) => [...bundleChildren(engine, root), ...filesObjectIn(engine, root.idText)],
  });
  const installs = createBundleService({
    engine,
    objects,
    clock,
    convergence: deps.convergence,
    isOwner: () => space.role() === "owner",
    requireWriter,
    onBackgroundError,
  });
  const bundles = parts.adopt(installs, closePart);
  const files = createFileService({ space, contents, own: fileContents, requireWriter });
  const { attachType } = objects;
  const editor = parts.adopt(
    createEditorService({ engine, events, requireWriter, attachType, random: Math.random }),
    closePart,
  );
  const { startLongWork, readers, log } = deps;
  const { declaredKind } = schema;
  const live = parts.adopt(createLiveQueries({ engine, events, tables: store, readers, log, declaredKind }), closePart);
  const builder = createIndexBuilder({
    engine,
    tables: store,
    readers,
    startLongWork,
    log: log.child({ spaceId: space.id }),
  });
  const indexes = parts.adopt(builder, closePart);
  const advisor = createIndexAdvisor({ tables: store, builder: indexes, clock, isDeclared: schema.isDeclared });
  indexes.resume();
  return {
    space,
    schema,
    types: createTypeService({
      engine,
      schema,
      requireWriter,
      createRow: objects.writeNew,
      fillRow: objects.fillDerived,
      linksTo: store.schema.linksTo,
    }),
    properties: createPropertyService({ engine, schema, requireWriter }),
    datasets: createDatasetService({ engine, schema, requireWriter }),
    objects,
    chat: createChatService({ engine, accountId: account.id, unread, requireWriter, attachType }),
    records,
    queries: createRecordQueries({ engine, tables: store, schema, readers, log, advisor }),
    aggregates: createRecordAggregates({ tables: store, schema, readers, log, advisor }),
    bundles,
    editor,
    upserts: createUpsertService({ engine, records, accountId: account.id, clock, requireWriter }),
    live,
    history,
    members,
    files,
    fileContents,
    busy: () => files.busy() || live.size > 0 || members.watched() || history.busy() || indexes.busy(),
    close: () => parts.disposeAsync(),
  };
}
