import { afterAll, beforeAll, test } from "bun:test";
import type { Client } from "./server/client.ts";
import { type RunningServer, recentServerLogs, type ServerOptions, startServer } from "./server/server.ts";

/** A test whose title begins with the rule it proves, where it proves one; on failure the logs of the last servers are shown. */
export function rule(title: string, run: () => void | Promise<void>, timeoutMs = 30_000): void {
  test(title, () => showingLogs(run), timeoutMs);
}

/** The same for tests that mostly wait: those of a file run side by side, each with servers of its own. */
export function ruleBeside(title: string, run: () => Promise<void>, timeoutMs = 30_000): void {
  test.concurrent(title, () => showingLogs(run), timeoutMs);
}

async function showingLogs(run: () => void | Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    const logs = recentServerLogs();
    if (logs !== "") console.error(logs);
    throw error;
  }
}

export interface SharedServer {
  readonly server: RunningServer;
  readonly client: Client;
}

/**
 * One server for the tests of a file, started before them and reaped after them. `prepare` runs once it serves.
 */
export function useServer(
  options: ServerOptions = {},
  prepare?: (server: RunningServer) => Promise<void>,
): SharedServer {
  let started: RunningServer | undefined;
  beforeAll(async () => {
    started = await startServer(options);
    await prepare?.(started);
  }, 60_000);
  afterAll(async () => {
    await started?.[Symbol.asyncDispose]();
  }, 30_000);
  const get = (): RunningServer => {
    if (!started) throw new Error("the server of this file is not running");
    return started;
  };
  return {
    get server() {
      return get();
    },
    get client() {
      return get().client;
    },
  };
}
