import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Below those that systems give out by themselves, which another process could be given before it is used here. */
const [LOWEST, HIGHEST] = [10_000, 32_000];

/** A TCP port on loopback that nobody listens on now. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((settle, fail) => {
    const refused = (error: NodeJS.ErrnoException) => (error.code === "EADDRINUSE" ? settle(false) : fail(error));
    server.once("error", refused).listen(port, "127.0.0.1", () => server.close(() => settle(true)));
  });
}
