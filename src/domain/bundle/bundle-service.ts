import type { Clock } from "../../base/clock.ts";
import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { ChangeEngine, WriteTx } from "../../change/space-engine.ts";
import { svcError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { SPACE_INDEX_TYPE } from "../../space/space-index.ts";
import type { ObjectWriterPort } from "../object/port.ts";
import { checkEnsureBundle, checkSeed, type EnsureBundleRequest } from "./bundle-checks.ts";
import {
  BUNDLE_CHILD_TYPE,
  BUNDLE_CHILDREN_DATASET,
  BUNDLE_CHILDREN_RULES,
  BUNDLE_ROOT_TYPE,
  BUNDLE_RULES,
  BUNDLES_DATASET,
} from "./bundle-rules.ts";

/** A bundle as callers see it. */
export interface Bundle {
  id: string;
  name?: string;
  rootId: string;
  roots?: string[];
  /** Installs that lost to the winner and are not resolved yet. */
  losers?: string[];
  derived?: true;
}

/** What sync knows of a space: needed to tell "not installed" from "not arrived". */
export interface Convergence {
  /** Resolves true once the registry has converged, false when waiting is over (BUNDLE-1). At once with no peer. */
  waitConverged(): Promise<boolean>;
  /** Whether everything of an object has arrived and is stored elsewhere. */
  isSynced(objectId: string): boolean;
}

interface BundleServiceDeps {
  engine: ChangeEngine;
  objects: ObjectWriterPort;
  clock: Clock;
  convergence: Convergence;
  isOwner(): boolean;
  requireWriter(): void;
  onBackgroundError(error: unknown): void;
}

/** A root counts as a loser for this long, seen from here, before it may be resolved. */
const LOSER_GRACE_MS = 5 * 60_000;
const RETRY_MS = 30_000;

/** Installs of apps in a space: one winner each, however many devices installed apart. */
export type BundleService = ReturnType<typeof createBundleService>;

export function createBundleService(deps: BundleServiceDeps) {
  const { engine, clock, convergence } = deps;
  /** Since when a root is seen as a loser, by bundle and root. */
  const loserSinceMs = new Map<string, number>();
  const retries = new Map<string, ReturnType<typeof setTimeout>>();

  const index = () => engine.object(engine.derivedId(SPACE_INDEX_TYPE, ""));
  const isLive = (rootId: string): boolean => {
    const object = engine.object(rootId);
    return object !== undefined && !object.deleted;
  };
  const isDeleted = (rootId: string): boolean => engine.object(rootId)?.deleted === true;

  /** The bundle of a row, or undefined when its winner was deleted: uninstalled. */
  const toBundle = (row: JsonObject): Bundle | undefined => {
    const id = row["id"] as string;
    const roots = Array.isArray(row["roots"]) ? (row["roots"] as string[]) : [];
    const canonical = engine.derivedId(BUNDLE_ROOT_TYPE, id);
    const rootId = roots.includes(canonical) ? canonical : (row["rootId"] as string | undefined);
    if (rootId === undefined || isDeleted(rootId)) return undefined;
    const losers = roots.filter((root) => root !== rootId && !isDeleted(root));
    for (const loser of losers) {
      const key = `${id}\0${loser}`;
      if (!loserSinceMs.has(key)) loserSinceMs.set(key, clock.nowMs());
    }
    return {
      id,
      ...(typeof row["name"] === "string" && row["name"] !== "" ? { name: row["name"] } : {}),
      rootId,
      ...(roots.length > 0 ? { roots } : {}),
      ...(losers.length > 0 ? { losers } : {}),
      ...(rootId === canonical ? { derived: true as const } : {}),
    };
  };

  const find = (id: string): Bundle | undefined => {
    const holder = index();
    const row = holder && engine.record(holder, BUNDLES_DATASET, id);
    return row ? toBundle(row) : undefined;
  };

  const get = (id: string): Bundle => {
    const bundle = find(id);
    if (!bundle) throw svcError("bundle.not_found", { bundleId: id });
    return bundle;
  };

  /** Root, its first content and the registry's row, in one durable step. */
  const install = (tx: WriteTx, request: EnsureBundleRequest): void => {
    const { id, name } = request;
    const properties = {
      ...request.rootProperties,
      ...(name ? { svc: { ...request.rootProperties?.["svc"], name } } : {}),
    };
    const fields = deps.objects.planShared({ types: request.rootTypes ?? [], initialProperties: properties });
    const rootId = request.derived
      ? deps.objects.fillDerived(tx, tx.ensureDerived(BUNDLE_ROOT_TYPE, id), fields)
      : deps.objects.writeNew(tx, fields).id;
    const holder = tx.ensureDerived(SPACE_INDEX_TYPE, "");
    tx.append(
      holder,
      {
        dataset: BUNDLES_DATASET,
        records: [
          {
            id,
            upsert: true,
            ops: [
              {
                type: "$set",
                path: "",
                value: { rootId, ...(name ? { name } : {}), ...(request.derived ? { derived: true } : {}) },
              },
              { type: "$addToSet", path: "roots", value: rootId },
            ],
          },
        ],
      },
      BUNDLE_RULES,
    );
  };

  const tryResolve = async (id: string, loserRootId: string): Promise<void> => {
    const bundle = get(id);
    if (bundle.rootId === loserRootId || !bundle.roots?.includes(loserRootId))
      throw svcError("bundle.not_loser", { bundleId: id, rootId: loserRootId });
    if (isDeleted(loserRootId)) return;
    const since = loserSinceMs.get(`${id}\0${loserRootId}`) ?? clock.nowMs();
    const ready = isLive(loserRootId) && convergence.isSynced(loserRootId) && clock.nowMs() - since >= LOSER_GRACE_MS;
    if (!ready) throw svcError("bundle.loser_not_ready", { bundleId: id, rootId: loserRootId });
    await engine.write((tx) => {
      const object = tx.object(loserRootId);
      if (object && !object.deleted) tx.deleteObject(object);
    });
  };

  return {
    /** Adopts the install that is there or makes one. Errors: bundle.not_ready, type.not_found, property.*, space.read_only. */
    async ensure(request: EnsureBundleRequest): Promise<{ bundle: Bundle; installed: boolean }> {
      checkEnsureBundle(request);
      const known = find(request.id);
      if (known) return adopt(known);
      deps.requireWriter();
      const converged = await convergence.waitConverged();
      if (!converged && !deps.isOwner() && !request.derived)
        throw svcError("bundle.not_ready", { bundleId: request.id });
      const installed = await engine.write((tx) => {
        // Somebody may have installed it while we waited.
        if (find(request.id)) return false;
        install(tx, request);
        return true;
      });
      return { bundle: get(request.id), installed };
    },

    list(): Bundle[] {
      const holder = index();
      const records = holder ? engine.records(holder, BUNDLES_DATASET) : [];
      return records.map(toBundle).filter((bundle) => bundle !== undefined);
    },

    get,

    /** Ends a losing install whose content the caller has merged. A refusal for timing is tried again behind the answer. */
    async resolve(id: string, loserRootId: string): Promise<void> {
      deps.requireWriter();
      try {
        await tryResolve(id, loserRootId);
      } catch (error) {
        if ((error as { code?: string }).code === "bundle.loser_not_ready") retryLater(id, loserRootId);
        throw error;
      }
    },

    /** The child of a root for a seed: the same id at every call and on every device. Types count at the first. */
    async child(id: string, seed: string, types: string[]): Promise<string> {
      checkSeed(seed);
      const { rootId } = get(id);
      if (!isLive(rootId)) throw svcError("bundle.not_ready", { bundleId: id });
      const derivation = `${rootId}/${seed}`;
      const childId = engine.derivedId(BUNDLE_CHILD_TYPE, derivation);
      const known = engine.object(childId);
      if (known && engine.record(known, OBJECTS_DATASET, childId)) return childId;
      deps.requireWriter();
      const fields = deps.objects.planShared({ types });
      await engine.write((tx) => {
        const object = tx.ensureDerived(BUNDLE_CHILD_TYPE, derivation);
        if (tx.record(object, OBJECTS_DATASET, childId)) return;
        deps.objects.fillDerived(tx, object, fields);
        tx.append(
          tx.object(rootId)!,
          { dataset: BUNDLE_CHILDREN_DATASET, records: [{ id: childId, upsert: true, ops: [] }] },
          BUNDLE_CHILDREN_RULES,
        );
      });
      return childId;
    },

    close(): void {
      for (const timer of retries.values()) clearTimeout(timer);
      retries.clear();
    },
  };

  function adopt(bundle: Bundle): { bundle: Bundle; installed: boolean } {
    if (!isLive(bundle.rootId)) throw svcError("bundle.not_ready", { bundleId: bundle.id });
    return { bundle, installed: false };
  }

  function retryLater(id: string, loserRootId: string): void {
    const key = `${id}\0${loserRootId}`;
    if (retries.has(key)) return;
    const timer = setTimeout(() => {
      retries.delete(key);
      tryResolve(id, loserRootId).catch((error: unknown) => {
        if ((error as { code?: string }).code === "bundle.loser_not_ready") retryLater(id, loserRootId);
        else deps.onBackgroundError(error);
      });
    }, RETRY_MS);
    timer.unref();
    retries.set(key, timer);
  }
}

/** Ids of the children that end with a root. */
export function bundleChildren(engine: ChangeEngine, root: ObjectEntry): string[] {
  return engine.records(root, BUNDLE_CHILDREN_DATASET).map((record) => record["id"] as string);
}
