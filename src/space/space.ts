import { existsSync } from "node:fs";
import { createAclService } from "../acl/acl-service.ts";
import { createKeyRing } from "../acl/key-ring.ts";
import { type AclLog, openAclLog } from "../acl/log/acl-log.ts";
import { judgingAclLog, putSnapshot } from "../acl/log/stored-log.ts";
import { makeEpoch, READ_KEY_BYTES } from "../acl/record/epoch.ts";
import { decodeSpaceHeader, encodeSpaceHeader, SPACE_TYPE, type SpaceHeader } from "../acl/record/space-header.ts";
import { derivedReadKey } from "../acl/record/space-keys.ts";
import { bytesToUtf8, equalBytes, utf8ToBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import { randomBytes } from "../base/random.ts";
import { atOnce, inSlices } from "../base/slices.ts";
import type { OnRepair, RulesRegistry } from "../change/codec/ports.ts";
import type { ChangeChecker } from "../change/intake/change-checker.ts";
import type { ParkQuota } from "../change/intake/set-aside.ts";
import { type ChangeEngine, createChangeEngine, WRITER_KEY } from "../change/space-engine.ts";
import type { Account } from "../crypto/account.ts";
import { StoredFileError } from "../protocol/storage-fault.ts";
import { MistypedValueError } from "../store/database/column-types.ts";
import { IN_MEMORY, layDown } from "../store/database/database.ts";
import type { WalCopying } from "../store/database/wal-keeper.ts";
import { openSpaceStore, type SpaceStore } from "../store/space-store.ts";
import { makeGenesis, type SpaceGenesis } from "./genesis.ts";
import { createOneSpaceEvents, type OneSpaceEvents } from "./one-space-events.ts";
import { oneToOneGenesis } from "./one-to-one.ts";
import type { Replica } from "./port/replica.ts";
import { openReplica } from "./replica/open-replica.ts";
import type { ReplicaSource } from "./replica/source.ts";

export type { SpaceGenesis };

const HEADER_KEY = "header";

/** An open space: its ACL log, its keys and its engine. */
export interface Space extends ReplicaSource {
  readonly header: SpaceHeader;
  /** The header as it was signed; the space's id is its CID. */
  readonly headerBytes: Uint8Array;
  /** Where others listen to what happens in it. */
  readonly events: OneSpaceEvents;
  /** The space as sync sees it. */
  readonly replica: Replica;
  close(): Promise<void>;
}

/** A fresh space of this account: random seed, random first read key. */
export function createdSpaceGenesis(account: Account, clock: Clock): SpaceGenesis {
  const time = clock.nowMs();
  const encoded = encodeSpaceHeader(
    { kind: "created", spaceType: SPACE_TYPE, author: account.signer.publicKey, time, seed: randomBytes(16) },
    account.signer,
  );
  const epoch = makeEpoch(encoded.spaceId, randomBytes(READ_KEY_BYTES), [account.signer.publicKey], []);
  return makeGenesis(encoded, account.signer, time, epoch);
}

/** A space whose every byte follows from the account and a name. */
export function derivedSpaceGenesis(account: Account, name: string): SpaceGenesis {
  const encoded = encodeSpaceHeader(
    { kind: "derived", spaceType: SPACE_TYPE, author: account.signer.publicKey, name },
    account.signer,
  );
  return makeGenesis(encoded, account.signer, 0, makeEpoch(encoded.spaceId, derivedReadKey(account, name), [], []));
}

/**
 * Writes header and ACL root into a space's database if they are not there yet. Idempotent. After a crash no file under the
 * space's name holds less than the whole space: code that uses the name checks only that the file exists. The directory of a new
 * file is not synced.
 */
export function writeGenesis(path: string, genesis: SpaceGenesis): void {
  const isNew = !existsSync(path);
  const store = openSpaceStore(isNew ? IN_MEMORY : path);
  try {
    putGenesis(store, genesis);
    if (isNew) layDown(path, store.db.serialize());
  } finally {
    store.close();
  }
}

/** Does nothing where there is a header. */
function putGenesis(store: SpaceStore, { header, aclRoot }: SpaceGenesis): void {
  if (store.meta(HEADER_KEY)) return;
  store.db.transaction(() => {
    store.putMeta(HEADER_KEY, header);
    store.addAclRecord(0, aclRoot.id, aclRoot.bytes);
  })();
}

export interface OpenSpaceDeps<R extends RulesRegistry = RulesRegistry> {
  account: Account;
  clock: Clock;
  /** What a file without a header begins with, where it is known; otherwise such a file is damaged. */
  genesis?: SpaceGenesis | undefined;
  /** Whether its changes are listed for the history. Default true. */
  keepsHistory?: boolean;
  /** Rules of the datasets; may read the space's own definitions in its store. */
  registry(store: SpaceStore): R;
  checkpointEveryOps?: number;
  foldSliceMs?: number;
  /** Verifies large batches of changes of others on another thread. */
  checker?: ChangeChecker | undefined;
  /** Bounds on what is kept of others besides what counts. */
  quota?: ParkQuota;
  /** Copies the database's log on a thread beside the writer. Without it the writer does so itself. */
  walCopying?: WalCopying;
  onFailure?(error: unknown): void;
  /** Called when the disk changed something in the space's database. */
  onRepair?: OnRepair | undefined;
}

/** A space, and the rules that it folds by. */
type Opened<R> = Space & { readonly registry: R };

/** Opens a space whose genesis is written. Throws when the file is damaged or is not a space of this account. */
export const openSpace = <R extends RulesRegistry>(path: string, spaceId: SpaceId, deps: OpenSpaceDeps<R>): Opened<R> =>
  atOnce(opening(path, spaceId, deps));

/** Does the same in slices, so that other spaces go on while a long ACL log is judged. */
export const openSpaceInSlices = <R extends RulesRegistry>(
  path: string,
  spaceId: SpaceId,
  deps: OpenSpaceDeps<R>,
): Promise<Opened<R>> => inSlices(opening(path, spaceId, deps));

function* opening<R extends RulesRegistry>(
  path: string,
  spaceId: SpaceId,
  deps: OpenSpaceDeps<R>,
): Generator<void, Opened<R>> {
  try {
    return yield* openingAsStored(path, spaceId, deps);
  } catch (error) {
    if (!(error instanceof MistypedValueError)) throw error;
    giveTypesAgain(path, deps);
    return yield* openingAsStored(path, spaceId, deps);
  }
}

function* openingAsStored<R extends RulesRegistry>(
  path: string,
  spaceId: SpaceId,
  deps: OpenSpaceDeps<R>,
): Generator<void, Opened<R>> {
  const store = openSpaceStore(path, { copying: deps.walCopying });
  try {
    mendForOpening(store, deps);
    if (deps.genesis) putGenesis(store, deps.genesis);
    // A long ACL log whose snapshot is gone or damaged takes many steps.
    const snapshot = yield* judgingAclLog(store, headerOf(store, spaceId));
    if (snapshot) putSnapshot(store, snapshot);
    return assemble(store, spaceId, deps);
  } catch (error) {
    store.close();
    throw error;
  }
}

/** A value that the space cannot be opened without has another type than its column: all that have one are given theirs again. */
function giveTypesAgain(path: string, { walCopying, onRepair }: OpenSpaceDeps): void {
  const store = openSpaceStore(path, { copying: walCopying });
  try {
    const { kept, types } = store.db.transaction(() => store.mendTypes())();
    if (kept.length > 0) onRepair?.("space.copies", { tables: kept });
    if (Object.keys(types).length > 0) onRepair?.("space.types", { tables: types });
  } finally {
    store.close();
  }
}

function mendForOpening(store: SpaceStore, { onRepair }: OpenSpaceDeps): void {
  const tables = store.mendForOpening();
  if (tables.length > 0) onRepair?.("space.copies", { tables });
}

function headerOf(store: SpaceStore, spaceId: SpaceId): SpaceHeader {
  const headerBytes = store.meta(HEADER_KEY);
  const encoded = headerBytes && decodeSpaceHeader(headerBytes);
  if (encoded?.spaceId === spaceId) return encoded.header;
  throw new StoredFileError("damaged", `${store.path} is not the space ${spaceId}`);
}

function assemble<R extends RulesRegistry>(store: SpaceStore, spaceId: SpaceId, deps: OpenSpaceDeps<R>): Opened<R> {
  const header = headerOf(store, spaceId);
  const { account, clock } = deps;
  const acl = openAclLog(store, header, clock);
  bindWriter(store, account);
  if (header.kind === "onetoone") checkOneToOne(store.path, acl, header.pair, account);
  const keys = createKeyRing(spaceId, header, acl, store, account);
  const registry = deps.registry(store);
  const events = createOneSpaceEvents();
  const engine = createChangeEngine({
    spaceId,
    store,
    acl,
    keys,
    registry,
    signer: account.signer,
    clock,
    keepsHistory: deps.keepsHistory ?? true,
    checker: deps.checker,
    ...(deps.checkpointEveryOps ? { checkpointEveryOps: deps.checkpointEveryOps } : {}),
    ...(deps.foldSliceMs === undefined ? {} : { foldSliceMs: deps.foldSliceMs }),
    ...(deps.quota ? { quota: deps.quota } : {}),
    committed: (batch) => events.emit("committed", batch),
    onFailure(error) {
      acl.reload();
      keys.refresh();
      deps.onFailure?.(error);
    },
    onRepair: deps.onRepair,
  });
  if (acl.isSnapshotDue()) keepAclSnapshot(engine, acl, deps);
  const parts: ReplicaSource = {
    id: spaceId,
    acl,
    aclService: createAclService({
      spaceId,
      header,
      account,
      store,
      acl,
      keys,
      engine,
      clock,
      changed: () => events.emit("aclChanged"),
    }),
    keys,
    engine,
    store,
    accountKey: account.signer.publicKey,
    signer: account.signer,
    role: () => acl.permission(account.signer.publicKey),
  };
  return {
    ...parts,
    registry,
    header,
    headerBytes: store.meta(HEADER_KEY)!,
    events,
    replica: openReplica(parts),
    async close() {
      await engine.close();
      await store.idle();
      store.close();
    },
  };
}

/** This makes the next opening quick; the space is in use meanwhile. */
function keepAclSnapshot(engine: ChangeEngine, acl: AclLog, { onFailure }: OpenSpaceDeps): void {
  engine.changeAcl((scope) => ({ result: acl.keepSnapshot(scope) })).catch((error: unknown) => onFailure?.(error));
}

const WRITER_DEVICE_KEY = "writer-device";

/**
 * A writer belongs to a device key. A data root that got another device key, as a copy does, continues under a writer of
 * its own.
 */
function bindWriter(store: SpaceStore, { peerId }: Account): void {
  const known = store.meta(WRITER_DEVICE_KEY);
  if (known && bytesToUtf8(known) === peerId) return;
  store.db.transaction(() => {
    if (known) store.dropMeta(WRITER_KEY);
    store.putMeta(WRITER_DEVICE_KEY, utf8ToBytes(peerId));
  })();
}

/** Either of the two computes the root alone; any other root was made by somebody else. */
function checkOneToOne(path: string, acl: AclLog, pair: readonly [Uint8Array, Uint8Array], account: Account): void {
  const own = account.signer.publicKey;
  const other = equalBytes(pair[0], own) ? pair[1] : equalBytes(pair[1], own) ? pair[0] : undefined;
  const [root] = acl.records();
  if (!other || !root || !equalBytes(root.id, oneToOneGenesis(account, other).aclRoot.id))
    throw new StoredFileError("damaged", `${path} is not a one-to-one space of this account`);
}
