import { connect, createServer } from "node:net";
import { createTcpLine, type TcpLine } from "./tcp-line.ts";

/** A loopback proxy whose line can misbehave on demand, and remembers what passed through it. */
export interface TcpProxy extends Omit<TcpLine, "carry">, AsyncDisposable {
  readonly port: number;
}

export async function startTcpProxy(
  targetPort: number,
  options: { captureBytes?: number; host?: string } = {},
): Promise<TcpProxy> {
  const { carry, ...line } = createTcpLine(options.captureBytes);
  const server = createServer((client) => carry(client, () => connect(targetPort, options.host ?? "127.0.0.1")));
  await new Promise<void>((done, failed) => server.once("error", failed).listen(0, "127.0.0.1", done));
  const address = server.address();
  if (!address || typeof address === "string") throw new Error("no port");
  return {
    ...line,
    port: address.port,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise<void>((done) => server.close(() => done()));
      line.block(true);
      await closed;
    },
  };
}
