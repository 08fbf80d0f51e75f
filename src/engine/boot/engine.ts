import type { DirectAddService } from "../../account/joining/direct-add-service.ts";
import type { JoinService } from "../../account/joining/join-service.ts";
import type { OneToOneService } from "../../account/joining/one-to-one-service.ts";
import type { SpaceLife } from "../../account/life/space-life.ts";
import type { SpaceRegistry } from "../../account/life/space-registry.ts";
import type { TechSpace } from "../../account/own-space/tech-space.ts";
import type { DeviceService } from "../../domain/device/device-service.ts";
import type { EventHub } from "../../domain/event/event-hub.ts";
import type { FileCache } from "../../domain/file/file-cache.ts";
import type { IdentityDirectory } from "../../domain/identity/identity-directory.ts";
import type { LiveQueries } from "../../domain/live/live-queries.ts";
import type { ProcessRegistry } from "../../domain/process/process-registry.ts";
import type { PushService } from "../../domain/push/push-service.ts";
import type { RecordQueries } from "../../domain/record/record-query.ts";
import type { SearchService } from "../../domain/search/search-service.ts";
import type { BuiltInDataset } from "../../domain/type/built-in-schemas.ts";
import type { SpaceRepairs } from "../../protocol/sync.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { SyncService } from "../../sync/sync-service.ts";
import type { EngineLifecycle } from "../lifecycle.ts";
import type { ProfileNews } from "../profile-news.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SpaceServices } from "../space-services.ts";

/** The booted engine of one account, as the routes see it. */
export interface Engine extends EngineLifecycle {
  /** Rows of the account's spaces, and the spaces themselves. */
  readonly spaces: SpaceRegistry;
  readonly life: SpaceLife;
  readonly spaceEvents: SpaceEvents;
  readonly tech: TechSpace;
  readonly devices: DeviceService;
  readonly identities: IdentityDirectory;
  readonly events: EventHub;
  readonly processes: ProcessRegistry;
  /** Undefined if no push node is configured. */
  readonly push: PushService | undefined;
  readonly joins: JoinService;
  readonly oneToOne: OneToOneService;
  readonly directAdds: DirectAddService;
  readonly sync: SyncService;
  /** What the disk changed of a space, and what became of it. */
  repairs(spaceId: string): SpaceRepairs;
  /** Triggers and programs; undefined when the configuration turns them off. */
  readonly runtime: Runtime | undefined;
  readonly fileCache: FileCache;
  readonly search: Pick<SearchService, "search">;
  /** The tech space's datasets with their schemas. */
  readonly techDatasets: readonly BuiltInDataset[];
  /** Reads over the tech space's collections. */
  readonly techQueries: RecordQueries;
  /** Live windows over the tech space's collections. */
  readonly techLive: LiveQueries;
  /** Both over the rows of spaces, including those that only this device shows; opened when somebody first asks for them. */
  spacesListing(): { readonly queries: RecordQueries; readonly live: LiveQueries };
  /** Changes this account's profile; the members of its spaces are notified in the background. */
  readonly changeProfile: ProfileNews["change"];
  /** An active space with its services; fails with the space resolution errors (API-11). */
  space(spaceId: string): Promise<SpaceServices>;
}
