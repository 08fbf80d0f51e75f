/** Where a listener binds. */
export interface ListenAddress {
  /** `127.x.y.z` or `::1`; `localhost` is 127.0.0.1. */
  readonly hostname: string;
  /** 0 for a free port. */
  readonly port: number;
}

/** Reads `host:port`. Only loopback: there is no authentication on the socket. Throws an Error saying what it must be. */
export function parseLoopbackAddress(raw: unknown): ListenAddress {
  const [, name, digits] = /^(\[[^\]]*\]|[^:]*):(\d{1,5})$/.exec(String(raw)) ?? [];
  const port = Number(digits);
  if (name === undefined || name === "" || port > 65_535) throw new Error("must be host:port, such as 127.0.0.1:7001");
  const hostname = loopbackHost(name);
  if (hostname === undefined) {
    throw new Error(
      "must be a loopback address (127.0.0.0/8, localhost or [::1]): remote access is not supported, the API has no authentication of its own",
    );
  }
  return { hostname, port };
}

/** The address as it stands in URLs and in `LISTENING`. */
export function formatAddress({ hostname, port }: ListenAddress): string {
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}

function loopbackHost(name: string): string | undefined {
  if (name.toLowerCase() === "localhost") return "127.0.0.1";
  if (name === "[::1]") return "::1";
  const octets = /^127\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(name);
  return octets?.slice(1).every((octet) => Number(octet) <= 255) ? name : undefined;
}
