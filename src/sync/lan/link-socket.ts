import { createServer, type Server, type TLSSocket, connect as tlsConnect } from "node:tls";
import type { Log } from "../../base/log.ts";
import type { DeviceCertificate } from "./device-certificate.ts";
import { isLanAddress } from "./lan-address.ts";
import { createUnprovenSockets } from "./unproven-sockets.ts";

/** TLS 1.3 between devices: both show the certificate of their device key, and who they are is checked afterwards. */

const ALPN = "svc-link/1";
const EXPORTER_LABEL = "EXPORTER-svc-link";
const HANDSHAKE_TIMEOUT_MS = 5000;
/** Connections that have not become a link yet. */
const UNPROVEN_MAX = 32;
/** Most connections that are in the middle of their TLS handshake. */
const HANDSHAKING_MAX = 64;

export interface LinkListener extends AsyncDisposable {
  readonly port: number;
}

export interface ListenOptions {
  readonly certificate: DeviceCertificate;
  /** Address to listen on. Connections from outside the LAN are dropped before TLS. */
  readonly host: string;
  /** 0 for any. */
  readonly port: number;
  readonly log: Log;
  /** Takes a connection whose TLS handshake is done; resolves when it has become a link or is closed. */
  readonly onSocket: (socket: TLSSocket) => Promise<void>;
}

/** Listens. Rejects with the system's error when the port cannot be had. */
export async function listenForPeers(options: ListenOptions): Promise<LinkListener> {
  const unproven = createUnprovenSockets(UNPROVEN_MAX);
  const handshaking = createUnprovenSockets(HANDSHAKING_MAX);
  const server: Server = createServer(
    {
      cert: options.certificate.certificate,
      key: options.certificate.privateKey,
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: "TLSv1.3",
      ALPNProtocols: [ALPN],
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    },
    (socket) => {
      handshaking.release(socket);
      socket.on("error", () => {}); // whoever takes the socket listens to its end
      unproven.admit(socket);
      if (socket.destroyed) return;
      socket.setNoDelay(true);
      void options.onSocket(socket).finally(() => unproven.release(socket));
    },
  );
  // Under Bun the very socket that becomes secure, or fails, later.
  server.on("connection", (socket: TLSSocket) => {
    if (!isLanAddress(socket.remoteAddress ?? "")) return void socket.destroy();
    socket.on("close", () => handshaking.release(socket));
    handshaking.admit(socket);
  });
  server.on("tlsClientError", (error, socket) => {
    options.log.debug("p2p: not our protocol", { err: error });
    socket.destroy();
  });
  await new Promise<void>((done, failed) => {
    server.once("error", failed);
    server.listen(options.port, options.host, () => {
      server.off("error", failed);
      server.on("error", (error) => options.log.warn("p2p: the listener failed", { err: error }));
      done();
    });
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the listener has no port");
  return {
    port: address.port,
    [Symbol.asyncDispose]: () => new Promise<void>((done) => server.close(() => done())),
  };
}

/** Dials a LAN address. Rejects with the reason, also for an address that is not on the LAN. */
export function dialPeer(certificate: DeviceCertificate, address: string, port: number): Promise<TLSSocket> {
  if (!isLanAddress(address)) return Promise.reject(new Error(`${address} is not on the LAN`));
  return new Promise((done, failed) => {
    const socket = tlsConnect({
      host: address,
      port,
      cert: certificate.certificate,
      key: certificate.privateKey,
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
      minVersion: "TLSv1.3",
      ALPNProtocols: [ALPN],
    });
    const timer = setTimeout(() => end(new Error("no answer in time")), HANDSHAKE_TIMEOUT_MS);
    const end = (error?: Error) => {
      clearTimeout(timer);
      socket.off("secureConnect", onSecure);
      socket.off("error", onError);
      socket.off("close", onClose);
      if (!error) return done(socket);
      socket.on("error", () => {}); // what a destroyed socket still says
      socket.destroy();
      failed(error);
    };
    const onSecure = () => end(socket.alpnProtocol === ALPN ? undefined : new Error("not our protocol"));
    const onError = (error: Error) => end(error);
    const onClose = () => end(new Error("closed"));
    socket.setNoDelay(true);
    socket.on("secureConnect", onSecure);
    socket.on("error", onError);
    socket.on("close", onClose);
  });
}

/** 32 bytes that only the two ends of this TLS connection know (RFC 8446 § 7.5). */
export const exporterOf = (socket: TLSSocket): Uint8Array =>
  new Uint8Array(socket.exportKeyingMaterial(32, EXPORTER_LABEL, Buffer.alloc(0)));
