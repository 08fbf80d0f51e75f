import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { createLoopLag } from "../../base/loop-lag.ts";
import type { Service } from "../../base/service.ts";
import type { Content } from "../../files/content.ts";
import { CHUNK_BYTES } from "../../files/content-seal.ts";
import type { ContentStore } from "../../files/content-store.ts";
import { FILE_DURABLE, FILE_INFLIGHT, FILE_LIMITED } from "../../protocol/file-state.ts";
import type { NetworkStore } from "../network/network-store.ts";
import type { BackupContent, BackupSpace } from "./backup-space.ts";
import { createContentUpload, type UploadEnd } from "./content-upload.ts";
import { proveWithoutBytes } from "./proof-of-backup.ts";
import { createStoreMark } from "./store-mark.ts";

export interface FileBackupDeps {
  readonly store: Pick<NetworkStore, "state" | "onState" | "chunks">;
  readonly contents: ContentStore;
  readonly clock: Clock;
  readonly log: Log;
  activeIds(): readonly SpaceId[];
  /** Runs over a space that stays open meanwhile; undefined for one that is not active here. */
  use<R>(spaceId: SpaceId, run: (own: BackupSpace) => Promise<R>): Promise<R | undefined>;
  /** Called with spaces in which there is news. Answers how to stop. */
  onWork(listener: (spaceId: SpaceId) => void): () => void;
  /** Shows long work as a process. */
  showWork(content: BackupContent): { progress(done: number, total: number): void; end(error?: unknown): void };
}

/**
 * How many contents are backed up at once. One slot is for small contents alone, so that they never wait for a large one.
 */
const SLOTS = 3;
const SMALL_BYTES = CHUNK_BYTES;
const PAGE = 50;
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 5 * 60_000;
/** How long a network without room is left alone before it is asked again. */
const LIMITED_RETRY_MS = 10 * 60_000;
/** How often content that is not here is looked for on the network, until it is there. */
const ELSEWHERE_RETRY_MS = 30_000;
const TICK_MS = 1_000;
/** How long a durable content's place on the network is believed before it is looked at again. */
const AUDIT_AFTER_MS = 6 * 60 * 60_000;
const AUDIT_EVERY_MS = 60_000;
/**
 * How soon a space with something that is not durable is looked at again; more and more rarely while nothing happens there.
 */
const AGAIN_FIRST_MS = 1_000;
const AGAIN_MAX_MS = 30_000;

/** Backs up the contents of files to the network, and notices when the network loses them. */
export function createFileBackup(deps: FileBackupDeps): Service {
  const { store, contents, clock, log } = deps;
  const lag = createLoopLag();
  /** When spaces are to be looked at, by a monotonic clock. */
  const dueMs = new Map<SpaceId, number>();
  /** How long it waited last with nothing to do. */
  const patienceMs = new Map<SpaceId, number>();
  const running = new Map<string, Promise<void>>();
  let large = 0;
  let stopped = false;
  let looking: Promise<void> | undefined;
  let tick: ReturnType<typeof setInterval> | undefined;
  let audits = 0;
  let auditedMs = performance.now();
  const unfollow: (() => void)[] = [];
  const mark = createStoreMark(store.chunks);

  const isOnline = (): boolean => store.state().phase === "online" && !stopped;
  const failed = (error: unknown): void => log.warn("backing up files failed", { err: error });

  const upload = createContentUpload({
    chunks: store.chunks,
    contents,
    lag,
    keepMark: (own, stored) => mark.keep(own.replica, stored),
    isStopped: () => !isOnline(),
  });

  /** Nothing can be done for it now; it is looked at again, but not at once. */
  const later = (own: BackupSpace, row: BackupContent): Promise<void> =>
    own.setStates(row.root, row.state, { ...row, nextMs: clock.nowMs() + ELSEWHERE_RETRY_MS });

  const backUp = async (own: BackupSpace, row: BackupContent, connection: number | undefined): Promise<void> => {
    let content: Content | undefined;
    try {
      content = own.contentOfRoot(row.root);
    } catch (error) {
      log.debug("files: one cannot be backed up yet", { err: error, spaceId: own.replica.id });
    }
    if (!content) return later(own, row);
    if (!(await contents.whole(content)) || row.hash === null) return proveElsewhere(own, row, content);
    log.debug("files: a backup begins", { spaceId: own.replica.id, rootCid: row.root, bytes: row.size });
    const work = deps.showWork(row);
    let end: UploadEnd;
    try {
      end = await upload(own, row, content, connection, (done, total) => work.progress(done, total));
      work.end();
    } catch (error) {
      work.end(error);
      if (!isOnline()) return; // begins again with the next connection, where it stopped
      const attempts = row.attempts + 1;
      const lastErr = error instanceof Error ? error.message : String(error);
      const nextMs = clock.nowMs() + Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** Math.min(attempts, 16));
      const state = own.content(row.root)?.state ?? FILE_INFLIGHT;
      await own.setStates(row.root, state, { attempts, lastErr, nextMs });
      return;
    }
    log.debug("files: a backup ended", { spaceId: own.replica.id, rootCid: row.root, outcome: end.kind });
    await noteEnd(own, row, end);
  };

  const noteEnd = async (own: BackupSpace, row: BackupContent, end: UploadEnd): Promise<void> => {
    switch (end.kind) {
      case "durable":
        await mark.keep(own.replica, end.stored);
        await own.noteSent(row.root, null);
        return own.setStates(row.root, FILE_DURABLE, { attempts: 0, lastErr: "", nextMs: 0 });
      case "full":
        return own.setStates(row.root, FILE_LIMITED, {
          attempts: row.attempts + 1,
          lastErr: "The network has no room for it",
          nextMs: clock.nowMs() + LIMITED_RETRY_MS,
        });
      case "stopped":
        return;
    }
  };

  /** A device that does not have the bytes checks by itself whether the network has them all. */
  const proveElsewhere = async (own: BackupSpace, row: BackupContent, content: Content): Promise<void> => {
    try {
      const stored = await proveWithoutBytes(store.chunks, content);
      if (stored) return noteEnd(own, row, { kind: "durable", stored });
    } catch (error) {
      if (isOnline()) log.debug("files: the network could not be asked for a file", { err: error });
    }
    await later(own, row);
  };

  const begin = (spaceId: SpaceId, row: BackupContent, connection: number | undefined): void => {
    const name = `${spaceId}/${row.root}`;
    const isLarge = row.size > SMALL_BYTES;
    if (isLarge) large++;
    const done = deps
      .use(spaceId, (own) => backUp(own, row, connection))
      .catch(failed)
      .then(() => {
        running.delete(name);
        if (isLarge) large--;
        lookSoon(spaceId);
      });
    running.set(name, done);
  };

  const hasSlot = (row: BackupContent): boolean =>
    running.size < SLOTS && (row.size <= SMALL_BYTES || large < SLOTS - 1);

  /** Begins what can be begun in a space; answers how soon it is to be looked at again, or undefined when all is durable. */
  const lookAt = async (spaceId: SpaceId, own: BackupSpace): Promise<number | undefined> => {
    const connection = store.chunks.connection();
    if (await mark.isLost(own.replica)) {
      log.warn("files: the network's store lost something or is another one; files are backed up again from here", {
        spaceId,
      });
      await own.doubtAll();
      await mark.forget(own.replica);
    }
    await own.doubtInline();
    await own.confirmInline();
    for (const state of [FILE_INFLIGHT, FILE_LIMITED] as const) {
      let after = "";
      for (let isMore = true; isMore && running.size < SLOTS; ) {
        const page = own.due(state, clock.nowMs(), after, PAGE);
        for (const row of page) {
          after = row.root;
          if (!running.has(`${spaceId}/${row.root}`) && hasSlot(row)) begin(spaceId, row, connection);
        }
        isMore = page.length === PAGE;
      }
    }
    if (own.isAllDurable()) return undefined;
    return nextPatience(spaceId);
  };
  const nextPatience = (spaceId: SpaceId): number =>
    Math.min(AGAIN_MAX_MS, 2 * (patienceMs.get(spaceId) ?? AGAIN_FIRST_MS / 2));

  const look = async (): Promise<void> => {
    const nowMs = performance.now();
    for (const [spaceId, atMs] of [...dueMs]) {
      if (!isOnline() || running.size >= SLOTS) return;
      if (atMs > nowMs) continue;
      dueMs.delete(spaceId);
      const again = await deps
        .use(spaceId, (own) => lookAt(spaceId, own))
        .catch((error: unknown) => {
          if (isOnline()) failed(error);
          return nextPatience(spaceId);
        });
      if (again === undefined) {
        patienceMs.delete(spaceId);
        continue;
      }
      patienceMs.set(spaceId, again);
      if (!dueMs.has(spaceId)) dueMs.set(spaceId, performance.now() + again);
    }
  };

  /** Looks at one durable content, of one space, whose place was not looked at for long. */
  const audit = async (): Promise<void> => {
    const spaceIds = deps.activeIds();
    const spaceId = spaceIds[audits++ % Math.max(1, spaceIds.length)];
    if (spaceId === undefined) return;
    await deps.use(spaceId, async (own) => {
      const row = own.oldestChecked(clock.nowMs() - AUDIT_AFTER_MS);
      const content = row && own.contentOfRoot(row.root);
      if (!row || !content) return;
      if (!(await proveWithoutBytes(store.chunks, content))) {
        await own.doubt(row.root);
        lookSoon(spaceId);
      }
      await own.noteChecked(row.root, clock.nowMs());
    });
  };

  const lookNow = (): void => {
    if (!isOnline()) return;
    looking ??= look()
      .then(async () => {
        if (performance.now() - auditedMs < AUDIT_EVERY_MS || !isOnline()) return;
        auditedMs = performance.now();
        await audit();
      })
      .catch((error: unknown) => {
        if (isOnline()) failed(error);
      })
      .finally(() => {
        looking = undefined;
      });
  };
  function lookSoon(spaceId: SpaceId): void {
    patienceMs.delete(spaceId);
    dueMs.set(spaceId, 0);
    lookNow();
  }
  const everything = (): void => {
    for (const spaceId of deps.activeIds()) dueMs.set(spaceId, 0);
    lookNow();
  };

  return {
    name: "file backup",
    start() {
      lag.start();
      unfollow.push(deps.onWork(lookSoon));
      unfollow.push(
        store.onState(({ phase }) => {
          if (phase !== "online") return;
          mark.doubt();
          everything();
        }),
      );
      tick = setInterval(lookNow, TICK_MS);
      tick.unref?.();
    },
    async stop() {
      stopped = true;
      clearInterval(tick);
      for (const stop of unfollow) stop();
      lag.stop();
      await looking;
      await Promise.all(running.values());
    },
  };
}
