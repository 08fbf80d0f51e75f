import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import type { DeviceService } from "../../domain/device/device-service.ts";
import type { EventBus } from "../../domain/event/port.ts";
import type { ProcessRegistry } from "../../domain/process/process-registry.ts";
import { svcError } from "../../protocol/errors.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { SpaceServices } from "../boot/space-services.ts";
import type { Config } from "../config/config.ts";
import type { AnswerRequest } from "./local-api.ts";
import type { TriggerControl } from "./trigger-control.ts";

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
  /** Makes the derived space of a name, or finds it made. */
  ensureDerived(name: string): Promise<{ id: string }>;
  space(spaceId: string): Promise<SpaceServices>;
  /** Resolves when the first round of sync since the boot has ended. */
  firstRound(): Promise<void>;
  /** Answers requests as the HTTP listener does. */
  readonly answer: AnswerRequest;
}

/** The runtime of triggers and programs: a worker behind the requests. */
export interface Runtime extends Service {
  /** What the control API and the command line do; waits until the agent space is there. */
  control(): Promise<TriggerControl>;
}

const RETRY_MS = 10_000;
const STOP_MS = 2_000;

/** Once the agent space is there. */
export interface RunningRuntime {
  readonly control: TriggerControl;
  stop(): Promise<void>;
}

export function createRuntime(deps: RuntimeDeps): Runtime {
  const { log } = deps;
  let running: RunningRuntime | undefined;
  let stopping = false;
  let starting: Promise<void> = Promise.resolve();
  const ready = Promise.withResolvers<TriggerControl>();
  ready.promise.catch(() => {}); // asked for by requests alone

  /** Tries until it is done: a space that has not come from another device yet comes later. */
  const startUp = async (): Promise<void> => {
    for (;;) {
      try {
        const { startRunning } = await import("./running.ts");
        const made = await startRunning(deps, () => stopping);
        ready.resolve(made.control);
        if (stopping) await made.stop();
        running = stopping ? undefined : made;
        return;
      } catch (err) {
        if (stopping) return;
        log.warn("the agent's space is not ready, it is tried again", { err });
        for (let waitedMs = 0; waitedMs < RETRY_MS && !stopping; waitedMs += 100) await Bun.sleep(100);
        if (stopping) return;
      }
    }
  };

  return {
    name: "runtime",
    start() {
      starting = startUp();
    },
    async stop() {
      stopping = true;
      ready.reject(svcError("server.unavailable"));
      // It may wait for what other devices have made; then it ends itself when it comes back.
      await Promise.race([starting, Bun.sleep(STOP_MS)]);
      await running?.stop();
    },
    control: () => ready.promise,
  };
}
