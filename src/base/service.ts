import type { Log } from "./log.ts";

/**
 * Work in the background. `stop` resolves when nothing of it runs any more, also if it comes while `start` is under way. `start`
 * and `stop` are each called at most once.
 */
export interface Service {
  readonly name: string;
  start(): void | Promise<void>;
  stop(): void | Promise<void>;
}

/** What is in use from when it is made until it is closed. `close` is called at most once. */
export interface Closable {
  close(): void | Promise<void>;
}

/** Closes a part. For `AsyncDisposableStack.adopt`, which closes what it was given in reverse order. */
export const closePart = (part: Closable): void | Promise<void> => part.close();

/** Starts a service that is part of another, and is stopped with `begun`. */
export async function startPart(begun: AsyncDisposableStack, service: Service): Promise<void> {
  begun.defer(() => service.stop());
  await service.start();
}

/** The background work of a process, started in the order it was added and stopped in reverse. */
export interface Services {
  /**
   * Returns the service it was given, so that it can be created and added in one expression. One that another adds when it starts
   * is started after all others.
   */
  add<T extends Service>(service: T): T;
  /**
   * Starts the added services one after the other. A service that fails to start is logged, and the others still start.
   */
  startAll(): Promise<void>;
  /** Stops all added services, started or not. A failure of one does not keep the others from stopping. */
  stopAll(): Promise<void>;
}

export function createServices(log: Log): Services {
  const services: Service[] = [];
  let stopped = false;
  return {
    add(service) {
      services.push(service);
      return service;
    },
    async startAll() {
      for (const service of services) {
        if (stopped) return;
        try {
          await service.start();
        } catch (error) {
          log.error("a background service did not start", { err: error, service: service.name });
        }
      }
    },
    async stopAll() {
      stopped = true;
      for (const service of services.splice(0).reverse()) {
        try {
          await service.stop();
        } catch (error) {
          log.error("a background service did not stop in order", { err: error, service: service.name });
        }
      }
    },
  };
}
