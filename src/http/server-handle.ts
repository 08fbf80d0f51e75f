import type { Clock } from "../base/clock.ts";
import type { StreamRegistry } from "./stream/stream-registry.ts";

/** What routes can learn of the server they run in, and do to it. */
export interface ServerHandle {
  readonly clock: Clock;
  readonly startedAt: Date;
  /** An app-embedded boot on a phone: no OpenAPI document. */
  readonly mobile: boolean;
  /** `host:port` of the runtime's control API; undefined when the runtime is turned off. */
  controlAddress(): string | undefined;
  /** The open event streams; `openStream` keeps it. */
  readonly streams: StreamRegistry;
  /** Aborted when shutdown begins. */
  readonly stopping: AbortSignal;
  /** Begins the shutdown (SRV-4) and returns at once. */
  requestShutdown(): void;
  /** Takes Bun's idle timeout off a connection that will stay quiet. */
  disableIdleTimeout(request: Request): void;
}
