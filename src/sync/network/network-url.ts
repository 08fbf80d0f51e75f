/** What `network.url` says: one or more servers, and how to authenticate if the URL carries it. */
export interface NetworkServers {
  /** `host:port`, in the order given. */
  readonly servers: readonly string[];
  /** `tls://`: never without TLS. `nats://` takes TLS when the server offers it or a CA is configured. */
  readonly tlsRequired: boolean;
  readonly user?: string;
  readonly password?: string;
  /** A user name alone is a token. */
  readonly token?: string;
}

const DEFAULT_PORT = 4222;

/**
 * Parses `network.url`: `nats://host:4222`, `tls://host`, `host:4222`, several separated by commas for a cluster; user and password
 * (or a token) may stand before the host of the first one. The problem names what to change.
 */
export function parseNetworkUrl(text: string): NetworkServers | { readonly problem: string } {
  const servers: string[] = [];
  let tlsRequired = false;
  let login: Pick<NetworkServers, "user" | "password" | "token"> = {};
  for (const part of text.split(",")) {
    const trimmed = part.trim();
    if (trimmed === "") return { problem: "network.url names no server; write nats://host:4222" };
    // A bare word is more often a slip than a host.
    if (!trimmed.includes("://") && !/:\d+$/.test(trimmed)) {
      return { problem: "network.url has neither scheme nor port; write nats://host:4222 or tls://host:4222" };
    }
    let url: URL;
    try {
      url = new URL(trimmed.includes("://") ? trimmed : `nats://${trimmed}`);
    } catch {
      return { problem: "network.url is not a URL; write nats://host:4222 or tls://host:4222" };
    }
    if (url.protocol !== "nats:" && url.protocol !== "tls:") {
      return { problem: `network.url has the scheme ${url.protocol}//; use nats:// or tls://` };
    }
    if (url.hostname === "") return { problem: "network.url lacks a host; write nats://host:4222" };
    if ((url.pathname !== "" && url.pathname !== "/") || url.search !== "" || url.hash !== "") {
      return { problem: "network.url takes no path or query; write nats://host:4222" };
    }
    if (url.protocol === "tls:") tlsRequired = true;
    if (url.username !== "" && servers.length === 0) {
      const user = decodeURIComponent(url.username);
      login = url.password === "" ? { token: user } : { user, password: decodeURIComponent(url.password) };
    }
    servers.push(`${url.hostname}:${url.port === "" ? DEFAULT_PORT : url.port}`);
  }
  return { servers, tlsRequired, ...login };
}

/** The servers as they are shown: without what authenticates. */
export function networkUrlText({ servers, tlsRequired }: Pick<NetworkServers, "servers" | "tlsRequired">): string {
  const scheme = tlsRequired ? "tls" : "nats";
  return servers.map((server) => `${scheme}://${server}`).join(",");
}
