import { DEVICES_DATASET, DEVICES_RULES } from "../../account/own-space/tech-datasets.ts";
import type { TechSpace } from "../../account/own-space/tech-space.ts";
import type { Clock } from "../../base/clock.ts";
import type { PeerId } from "../../base/ids.ts";
import type { RecordOp } from "../../change/codec/change-body.ts";
import type { WriteTx } from "../../change/space-engine.ts";
import { svcError } from "../../protocol/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { type AppBag, checkDeviceUpdate, checkSlug, type DeviceUpdateInput, deviceOs } from "./device-fields.ts";
import { type Claim, type DeviceRow, electActive, nextClaim, readClaim } from "./election.ts";

/** A device as `GET /v1/devices` shows it. */
export interface DeviceInfo {
  peerId: string;
  name?: string;
  os?: string;
  version?: string;
  apps?: Record<string, AppBag>;
  activeClaims?: Record<string, Claim>;
}

interface DeviceServiceDeps {
  tech: TechSpace;
  peerId: PeerId;
  clock: Clock;
  version: string;
  hostname(): string;
}

/** The devices of the account, one row each in its tech space, and the election over them. */
export type DeviceService = ReturnType<typeof createDeviceService>;

export function createDeviceService(deps: DeviceServiceDeps) {
  const { tech, peerId } = deps;
  const { engine } = tech.space;

  const rows = (): JsonObject[] => engine.records(tech.index, DEVICES_DATASET);

  /** Writes to this device's own row; one that was pruned stays so. */
  const writeOwn = (plan: (row: JsonObject | undefined) => RecordOp[]): Promise<void> =>
    engine.write((tx: WriteTx) => {
      if (tx.recordState(tech.index, DEVICES_DATASET, peerId) === "tombstone")
        throw svcError("device.pruned", { peerId });
      const ops = plan(tx.record(tech.index, DEVICES_DATASET, peerId));
      if (ops.length > 0)
        tx.append(
          tech.index,
          { dataset: DEVICES_DATASET, records: [{ id: peerId, upsert: true, ops }] },
          DEVICES_RULES,
        );
    });

  return {
    list(): { devices: DeviceInfo[]; active: Record<string, string>; self: string } {
      const all = rows();
      return {
        devices: all.map(toDeviceInfo),
        active: Object.fromEntries(electActive(all as unknown as DeviceRow[])),
        self: peerId,
      };
    },

    /** Whether a device was taken from the account; one whose row has not come here was not. */
    isPruned: (target: string): boolean => engine.recordState(tech.index, DEVICES_DATASET, target) === "tombstone",

    /** At every boot: `os` and `version` as they are, `name` from the hostname the first time. Answers false once pruned. */
    async register(): Promise<boolean> {
      try {
        await writeOwn((row) => {
          const fields: JsonObject = {};
          if (!row) fields["name"] = deps.hostname().slice(0, 64);
          const os = deviceOs(process.platform);
          if (row?.["os"] !== os) fields["os"] = os;
          if (row?.["version"] !== deps.version) fields["version"] = deps.version;
          return Object.keys(fields).length > 0 ? [{ type: "$set", path: "", value: fields }] : [];
        });
        return true;
      } catch (error) {
        if ((error as { code?: string }).code === "device.pruned") return false;
        throw error;
      }
    },

    /** `PUT /v1/devices/me`. An app's bag is merged key by key; null uninstalls it and forfeits its claim. */
    async update(input: DeviceUpdateInput): Promise<void> {
      const { name, apps } = checkDeviceUpdate(input);
      await writeOwn((row) => {
        const ops: RecordOp[] = [];
        if (name !== undefined) ops.push({ type: "$set", path: "name", value: name });
        for (const [slug, bag] of apps ?? []) {
          if (bag === null) {
            ops.push({ type: "$unset", path: `apps.${slug}` }, { type: "$unset", path: `activeClaims.${slug}` });
            continue;
          }
          const known = ((row?.["apps"] as JsonObject | undefined)?.[slug] ?? {}) as JsonObject;
          ops.push({ type: "$set", path: `apps.${slug}`, value: { ...known, ...(bag as Record<string, Json>) } });
        }
        return ops;
      });
    },

    /** Claims an app's role for this device: its sequence number is above all that are visible. */
    async activate(app: string): Promise<void> {
      checkSlug("app", app);
      await writeOwn((row) => {
        const installed = (row?.["apps"] as JsonObject | undefined)?.[app] !== undefined;
        const claim = nextClaim(rows() as unknown as DeviceRow[], app, deps.clock.nowMs());
        return [
          ...(installed ? [] : [{ type: "$set" as const, path: `apps.${app}`, value: {} }]),
          { type: "$set", path: `activeClaims.${app}`, value: { ...claim } },
        ];
      });
    },

    /** Prunes another device for ever. */
    async remove(target: string): Promise<void> {
      if (target === peerId) throw svcError("device.self_delete", { peerId: target });
      await engine.write((tx) => {
        if (tx.recordState(tech.index, DEVICES_DATASET, target) !== "live")
          throw svcError("device.not_found", { peerId: target });
        tx.append(
          tech.index,
          { dataset: DEVICES_DATASET, records: [{ id: target, delete: true, ops: [] }] },
          DEVICES_RULES,
        );
      });
    },
  };
}

function toDeviceInfo(row: JsonObject): DeviceInfo {
  const { name, os, version, apps, activeClaims } = row;
  const claims: Record<string, Claim> = {};
  for (const [slug, value] of Object.entries(isJsonObject(activeClaims) ? activeClaims : {})) {
    const claim = readClaim(value);
    if (claim) claims[slug] = claim;
  }
  return {
    peerId: row["id"] as string,
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof os === "string" ? { os } : {}),
    ...(typeof version === "string" ? { version } : {}),
    ...(apps ? { apps: apps as Record<string, AppBag> } : {}),
    ...(Object.keys(claims).length > 0 ? { activeClaims: claims } : {}),
  };
}
