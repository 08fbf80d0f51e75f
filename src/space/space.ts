import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import { randomBytes } from "../base/random.ts";
import { type ChangeEngine, createChangeEngine } from "../change/change-engine.ts";
import type { RulesRegistry } from "../change/ports.ts";
import { sealTo } from "../crypto/box.ts";
import { keyIdOf } from "../crypto/seal.ts";
import { openSpaceStore, type SpaceStore } from "../store/space-store.ts";
import type { Account } from "./account.ts";
import { type AclLog, openAclLog } from "./acl-log.ts";
import { encodeAclRecord, type Permission } from "./acl-record.ts";
import { createKeyRing, derivedReadKey, readKeyContext, type SpaceKeyRing } from "./key-ring.ts";
import {
  decodeSpaceHeader,
  type EncodedHeader,
  encodeSpaceHeader,
  SPACE_TYPE,
  type SpaceHeader,
} from "./space-header.ts";

const HEADER_KEY = "header";

/** An open space: its chain of rights, its keys and its engine. */
export interface Space {
  readonly id: SpaceId;
  readonly header: SpaceHeader;
  /** The header as it was signed: what the id is the CID of. */
  readonly headerBytes: Uint8Array;
  readonly acl: AclLog;
  readonly keys: SpaceKeyRing;
  readonly engine: ChangeEngine;
  /** Public key of the account that opened it. */
  readonly accountKey: Uint8Array;
  /** This account's permission now. */
  role(): Permission;
  close(): Promise<void>;
}

/** What makes a space, complete: writing it out twice gives the same space. */
export interface SpaceSeed {
  spaceId: SpaceId;
  header: Uint8Array;
  aclRoot: { id: Uint8Array; bytes: Uint8Array };
}

/** A fresh space of this account: random seed, random first read key. */
export function seedCreatedSpace(account: Account, clock: Clock): SpaceSeed {
  const time = clock.nowMs();
  const encoded = encodeSpaceHeader(
    { kind: "created", spaceType: SPACE_TYPE, author: account.signer.publicKey, time, seed: randomBytes(16) },
    account.signer,
  );
  const readKey = randomBytes(32);
  const box = sealTo(account.signer.publicKey, readKey, readKeyContext(encoded.spaceId));
  return withRoot(encoded, account, time, { keyId: keyIdOf(readKey), sealed: [{ to: account.signer.publicKey, box }] });
}

/** A space that is a pure function of the account and a name, down to its bytes. */
export function seedDerivedSpace(account: Account, name: string): SpaceSeed {
  const encoded = encodeSpaceHeader(
    { kind: "derived", spaceType: SPACE_TYPE, author: account.signer.publicKey, name },
    account.signer,
  );
  return withRoot(encoded, account, 0, { keyId: keyIdOf(derivedReadKey(account, name)), sealed: [] });
}

function withRoot(
  encoded: EncodedHeader,
  account: Account,
  time: number,
  epoch: { keyId: Uint8Array; sealed: { to: Uint8Array; box: Uint8Array }[] },
): SpaceSeed {
  const aclRoot = encodeAclRecord(
    { space: encoded.digest, prev: null, time, clock: 0, ops: [{ op: "root", epoch }] },
    account.signer,
  );
  return { spaceId: encoded.spaceId, header: encoded.bytes, aclRoot };
}

/** Writes header and ACL root into a space's database if they are not there yet. One transaction; idempotent. */
export function plantSpace(path: string, seed: SpaceSeed): void {
  const store = openSpaceStore(path);
  try {
    store.db.transaction(() => {
      if (store.meta(HEADER_KEY)) return;
      store.putMeta(HEADER_KEY, seed.header);
      store.addAclRecord(0, seed.aclRoot.id, seed.aclRoot.bytes);
    })();
  } finally {
    store.close();
  }
}

export interface OpenSpaceDeps {
  account: Account;
  clock: Clock;
  /** Rules of the datasets; may read the space's own definitions. */
  registry(engine: () => ChangeEngine): RulesRegistry;
  onFailure?(error: unknown): void;
}

/** Opens a planted space. Throws when the file is damaged or not a space of ours. */
export function openSpace(path: string, spaceId: SpaceId, deps: OpenSpaceDeps): Space {
  const store = openSpaceStore(path);
  try {
    return assemble(store, spaceId, deps);
  } catch (error) {
    store.close();
    throw error;
  }
}

function assemble(store: SpaceStore, spaceId: SpaceId, deps: OpenSpaceDeps): Space {
  const headerBytes = store.meta(HEADER_KEY);
  const encoded = headerBytes && decodeSpaceHeader(headerBytes);
  if (!encoded || encoded.spaceId !== spaceId) throw new Error(`${store.path} is not the space ${spaceId}`);
  const { account, clock } = deps;
  const acl = openAclLog(store, encoded.header);
  const keys = createKeyRing(spaceId, encoded.header, acl, account);
  let engine: ChangeEngine | undefined;
  const registry = deps.registry(() => engine!);
  engine = createChangeEngine({
    spaceId,
    store,
    acl,
    keys,
    registry,
    signer: account.signer,
    clock,
    ...(deps.onFailure ? { onFailure: deps.onFailure } : {}),
  });
  const opened = engine;
  return {
    id: spaceId,
    header: encoded.header,
    headerBytes,
    acl,
    keys,
    engine: opened,
    accountKey: account.signer.publicKey,
    role: () => acl.permission(account.signer.publicKey),
    close: () => opened.close(),
  };
}
