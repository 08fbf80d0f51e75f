import { connect, createServer, type Socket } from "node:net";

/** Two ends of one loopback connection. */
export async function socketPair(): Promise<{ near: Socket; far: Socket } & Disposable> {
  const server = createServer();
  await new Promise<void>((done, failed) => server.once("error", failed).listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const accepted = new Promise<Socket>((done) => server.once("connection", done));
  const near = connect(address.port, "127.0.0.1");
  const far = await accepted;
  if (near.connecting) await new Promise<void>((done) => near.once("connect", () => done()));
  server.close();
  return {
    near,
    far,
    [Symbol.dispose]: () => {
      near.destroy();
      far.destroy();
    },
  };
}
