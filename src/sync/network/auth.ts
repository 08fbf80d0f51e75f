import {
  type Authenticator,
  type ConnectionOptions,
  credsAuthenticator,
  type TlsOptions,
} from "@nats-io/transport-node";
import { utf8ToBytes } from "../../base/bytes.ts";
import type { NetworkServers } from "./network-url.ts";
import type { NetworkKey } from "./nkey.ts";

export interface NetworkCredentials {
  readonly key: NetworkKey;
  /** Text of a NATS `.creds` file (`network.credsFile`): an operator's JWT with its own key. Takes precedence. */
  readonly creds?: string;
  /** PEM of the authority that signs the servers' certificates (`network.tls.ca`); TLS is then required. */
  readonly tlsCa?: string;
}

/**
 * How a connection authenticates: by the creds file if there is one, else by the login in the URL, else by the account's
 * nkey. If a server asks for nothing, it gets nothing: the key signs a nonce only where one was sent.
 */
export function authOptions(servers: NetworkServers, credentials: NetworkCredentials): ConnectionOptions {
  const options: ConnectionOptions = { servers: [...servers.servers] };
  if (credentials.creds !== undefined) options.authenticator = credsAuthenticator(utf8ToBytes(credentials.creds));
  else if (servers.token !== undefined) options.token = servers.token;
  else if (servers.user !== undefined) {
    options.user = servers.user;
    options.pass = servers.password ?? "";
  } else options.authenticator = nkeyAuthenticator(credentials.key);
  if (credentials.tlsCa !== undefined || servers.tlsRequired) {
    const tls: TlsOptions = credentials.tlsCa === undefined ? {} : { ca: credentials.tlsCa };
    options.tls = tls;
  }
  return options;
}

function nkeyAuthenticator(key: NetworkKey): Authenticator {
  return (nonce) => {
    const sig = nonce === undefined ? undefined : key.signNonce(nonce);
    return sig === undefined ? undefined : { nkey: key.publicText, sig };
  };
}
