import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { DeviceService } from "../../domain/device/device-service.ts";
import type { EventBus } from "../../domain/event/port.ts";
import type { ProcessRegistry } from "../../domain/process/process-registry.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { Config } from "../config/config.ts";
import type { SpaceServices } from "../space-services.ts";
import type { AnswerRequest } from "./local-api.ts";

/** What the runtime asks of the engine. */
export interface RuntimeDeps {
  readonly accountDir: string;
  readonly accountId: string;
  readonly peerId: string;
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Log;
  readonly devices: DeviceService;
  readonly events: EventBus;
  readonly processes: ProcessRegistry;
  readonly spaceEvents: SpaceEvents;
  /** Creates the derived space of a name if it does not exist, and returns its id. */
  ensureDerived(name: string): Promise<{ id: string }>;
  space(spaceId: string): Promise<SpaceServices>;
  /** Resolves when the first round of sync since the boot has ended. */
  firstRound(): Promise<void>;
  /** Answers requests as the HTTP listener does. */
  readonly answer: AnswerRequest;
}
