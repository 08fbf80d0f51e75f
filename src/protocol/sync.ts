import { type Static, Type } from "@sinclair/typebox";
import { DeviceCopied } from "./meta.ts";
import { named, oneOf, strict } from "./schema.ts";

const SyncState = named(
  "SyncState",
  oneOf(["unknown", "offline", "syncing", "synced", "error"], {
    description:
      "unknown until the first round since the start has ended; synced when every local change is kept by the network or a peer and nothing known is missing",
  }),
);
export type SyncState = Static<typeof SyncState>;

const P2pState = named(
  "P2pState",
  oneOf(["unknown", "notpossible", "notconnected", "connected", "restricted"], {
    description: "Whether this device can meet others on the LAN, and does",
  }),
);
export type P2pState = Static<typeof P2pState>;

const Time = Type.Union([Type.String({ format: "date-time" }), Type.Null()]);

export const SpaceSyncStatus = named(
  "SpaceSyncStatus",
  strict({
    spaceId: Type.String(),
    state: SyncState,
    synced: Type.Integer({ description: "Objects of which every change is kept elsewhere" }),
    total: Type.Integer({ description: "Objects; those of the system do not count" }),
    networkPeers: Type.Integer({ description: "1 while the network is reached" }),
    localPeers: Type.Integer({ description: "Devices on the LAN with which the space is shared" }),
    p2p: P2pState,
    lastSyncedAt: Time,
  }),
);
export type SpaceSyncStatus = Static<typeof SpaceSyncStatus>;

export const ObjectSyncStatus = named(
  "ObjectSyncStatus",
  strict({ objectId: Type.String(), state: SyncState, lastSyncAt: Time }),
);
export type ObjectSyncStatus = Static<typeof ObjectSyncStatus>;

const PeerCounters = named(
  "PeerCounters",
  strict({
    peerId: Type.String({ description: "`network` for the network" }),
    lastSyncAt: Time,
    new: Type.Integer({ description: "Changes of objects that were not here before, since the start" }),
    changed: Type.Integer({ description: "Other changes taken in, since the start" }),
    lastErr: Type.String({ description: "Empty when the last round went well" }),
  }),
);
export type PeerCounters = Static<typeof PeerCounters>;

const CutChanges = named(
  "CutChanges",
  strict({
    identity: Type.String({ description: "Whose they are" }),
    self: Type.Boolean(),
    count: Type.Integer(),
    changes: Type.Array(strict({ id: Type.String(), objectId: Type.String() }), { description: "The newest 50" }),
  }),
);
export type CutChanges = Static<typeof CutChanges>;

const Repair = named(
  "Repair",
  strict({
    at: Type.String({ format: "date-time" }),
    what: Type.String({ description: "What was damaged, and what became of it" }),
    facts: Type.Record(Type.String(), Type.String(), {
      description: "Of what it was: names of tables, records, changes; lists and numbers as JSON texts",
    }),
  }),
);
export type Repair = Static<typeof Repair>;

const SpaceRepairs = named(
  "SpaceRepairs",
  strict({
    count: Type.Integer({ description: "How often something was found that the disk had changed" }),
    latest: Type.Array(Repair, { description: "The latest 100, newest first" }),
  }),
);
export type SpaceRepairs = Static<typeof SpaceRepairs>;

export const SpaceDebug = named(
  "SpaceDebug",
  strict({
    spaceId: Type.String(),
    peers: Type.Array(PeerCounters),
    parked: Type.Integer({ description: "Changes received that wait for something" }),
    quarantined: Type.Array(strict({ id: Type.String(), code: Type.String(), reason: Type.String() }), {
      description: "Changes that will never count, newest first",
    }),
    unconfirmed: Type.Integer({ description: "Changes that nobody else is known to keep" }),
    unconfirmedRights: Type.Integer({
      description: "ACL records, and proposals made here, that nobody else is known to have",
    }),
    alarms: Type.Array(strict({ kind: oneOf(["split", "rolled_back", "key"]), record: Type.String() }), {
      description: "What is wrong with the ACL log: somebody shows different people different things, or an older one",
    }),
    cut: Type.Array(CutChanges, {
      description: "What does not count: written by somebody who, unknown to it, had lost the right to write",
    }),
    proposals: Type.Integer({ description: "What waits for a device of the space's owner" }),
    networkResets: Type.Integer({
      description: "How often, since the start, the network's store turned out to lack what had been read from it",
    }),
    writersReplaced: Type.Integer({ description: "How often this device's own writer was met elsewhere" }),
    repairs: SpaceRepairs,
  }),
);
export type SpaceDebug = Static<typeof SpaceDebug>;

export const ObjectDebug = named(
  "ObjectDebug",
  strict({
    objectId: Type.String(),
    syncState: SyncState,
    pending: Type.Integer({ description: "Changes that nobody else is known to keep" }),
    lastSyncAt: Time,
    heads: Type.Array(Type.String()),
    headsCount: Type.Integer(),
    branchCount: Type.Integer(),
    treeLen: Type.Integer(),
    snapshots: Type.Integer(),
    latestVersionId: Type.String({ description: "Local; empty for an object of a root alone" }),
    maxAddSeq: Type.Integer({ description: "Local: number of the newest change in the order of arrival" }),
  }),
);
export type ObjectDebug = Static<typeof ObjectDebug>;

export const P2pDebug = named(
  "P2pDebug",
  strict({
    peerId: Type.String(),
    enabled: Type.Boolean(),
    listenerStarted: Type.Boolean(),
    port: Type.Integer(),
    possibility: oneOf(["possible", "notpossible", "restricted"]),
    state: P2pState,
    peers: Type.Array(
      strict({ peerId: Type.String(), spaceIds: Type.Array(Type.String()), connected: Type.Boolean() }),
    ),
    deviceCopied: Type.Optional(DeviceCopied),
  }),
);
export type P2pDebug = Static<typeof P2pDebug>;
