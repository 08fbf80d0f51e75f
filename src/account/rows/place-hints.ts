import { bytesToHex } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { AclSecrets } from "../own-space/acl-secrets.ts";
import type { TechSpace } from "../own-space/tech-space.ts";
import type { SpaceRoots } from "./space-roots.ts";

/** Anybody can say where a space is, so only so many of the newest hints are tried. */
const HINTS_MAX = 4;

/**
 * Secrets of places on the network at which a space may be, as said by other devices of the account, by the account that
 * added this one, or by the token that it joins by. They are believed for nothing but looking there.
 */
export type PlaceHints = ReturnType<typeof createPlaceHints>;

export function createPlaceHints(deps: { tech: TechSpace; roots: SpaceRoots; secrets: AclSecrets }) {
  const { engine, store } = deps.tech.space;
  const { places } = store;
  return {
    /** Somebody says that the space is there. Durable when it resolves. */
    keep: (spaceId: SpaceId, secret: Uint8Array): Promise<void> =>
      engine.write(() => places.putHint(spaceId, secret, HINTS_MAX)),
    of(spaceId: SpaceId): Uint8Array[] {
      const all = [
        ...places.hintsOf(spaceId),
        deps.roots.of(spaceId)?.transportSecret,
        deps.secrets.placeOf(spaceId)?.transportSecret,
      ].flatMap((secret) => secret ?? []);
      return [...new Map(all.map((secret) => [bytesToHex(secret), secret])).values()];
    },
  };
}
