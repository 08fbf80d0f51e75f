import { decodeAclRecord } from "../../acl/record/record.ts";
import { decodeSpaceHeader } from "../../acl/record/space-header.ts";
import { base64ToBytes, bytesToBase64, equalBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { placesOf } from "../../space/port/places.ts";
import type { Space, SpaceGenesis } from "../../space/space.ts";
import { SPACE_ROOTS_RULES } from "../own-space/private-datasets.ts";
import type { TechSpace } from "../own-space/tech-space.ts";

/** What a device of the account needs of a space that it does not hold yet. */
export interface SpaceRoot {
  readonly genesis: SpaceGenesis;
  /** The secret of its present place on the network, as the device that is furthest ahead left it. */
  readonly transportSecret: Uint8Array | undefined;
}

/** The roots of the account's spaces, kept in its own space, so that its other devices can make them too. */
export type SpaceRoots = ReturnType<typeof createSpaceRoots>;

export function createSpaceRoots(tech: TechSpace) {
  return {
    /** The root of a space as another device left it; undefined when it has not come yet, or is not that space's. */
    of(spaceId: SpaceId): SpaceRoot | undefined {
      const row = tech.record(SPACE_ROOTS_RULES, spaceId);
      const header = bytesIn(row, "header");
      const root = bytesIn(row, "aclRoot");
      const record = root && decodeAclRecord(root);
      if (!header || !record || decodeSpaceHeader(header)?.spaceId !== spaceId) return undefined;
      return {
        genesis: { spaceId, header, aclRoot: { id: record.id, bytes: root } },
        transportSecret: bytesIn(row, "transport"),
      };
    },

    /** Leaves a space's root and present place for the other devices, as far as they are not there yet. */
    async keep(space: Space): Promise<void> {
      await tech.set(SPACE_ROOTS_RULES, space.id, (row) => {
        const fields: JsonObject = {};
        const add = (field: string, bytes: Uint8Array | undefined) => {
          if (bytes && !row?.[field]) fields[field] = bytesToBase64(bytes);
        };
        add("header", space.headerBytes);
        add("aclRoot", space.acl.records()[0]?.bytes);
        const present = space.keys.transportSecret();
        const left = bytesIn(row, "transport");
        // A place that is not known here belongs to a later epoch, which another device has seen.
        const isPast = !left || placesOf(space).some(({ secret }) => secret && equalBytes(secret, left));
        if (present && isPast && !(left && equalBytes(present, left))) fields["transport"] = bytesToBase64(present);
        return fields;
      });
    },
  };
}

function bytesIn(row: JsonObject | undefined, field: string): Uint8Array | undefined {
  const text = row?.[field];
  return typeof text === "string" ? base64ToBytes(text) : undefined;
}
