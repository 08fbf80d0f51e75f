import { BlockList, isIP } from "node:net";

/** Hosts that programs may call: `host`, `host:port`, `*.domain`, an address, or a range of addresses (CIDR). */
export interface HostAllowList {
  /** Whether a name may be called at a port. */
  allowsHost(host: string, port: number): boolean;
  /**
   * Whether an address may be connected to: every public one, and loopback, private and other special ones if they are
   * listed themselves. The name `localhost` lists loopback.
   */
  allowsAddress(address: string): boolean;
}

/** Not the open Internet: RFC 6890 and its successors. */
const SPECIAL_V4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];
/** Only global unicast (2000::/3) is the open Internet; of it, what carries other addresses within is not. */
const SPECIAL_V6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

const special = toBlockList([...SPECIAL_V4, ...SPECIAL_V6]);
const globalUnicast = toBlockList(["2000::/3"]);

export function createHostAllowList(entries: readonly string[]): HostAllowList {
  const ranges = entries.filter((entry) => entry.includes("/") || isIP(bare(entry)) !== 0).map(bare);
  if (entries.some((entry) => splitPort(entry).host === "localhost")) ranges.push("127.0.0.0/8", "::1");
  const listed = toBlockList(ranges);
  const hosts = entries.filter((entry) => !entry.includes("/")).map(splitPort);
  const listsAddress = (address: string): boolean => listed.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

  return {
    allowsHost(host, port) {
      const name = bare(host.toLowerCase());
      if (hosts.some((entry) => matches(entry.host, name) && (entry.port ?? port) === port)) return true;
      return isIP(name) !== 0 && entries.some((entry) => entry.includes("/")) && listsAddress(name);
    },
    allowsAddress: (address) => listsAddress(address) || isPublic(address),
  };
}

/** Whether an address is on the open Internet. IPv4 inside IPv6 counts as what it stands for. */
function isPublic(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return isPublic(mapped);
  const family = isIP(address);
  if (family === 4) return !special.check(address, "ipv4");
  return family === 6 && globalUnicast.check(address, "ipv6") && !special.check(address, "ipv6");
}

function matches(pattern: string, name: string): boolean {
  return pattern.startsWith("*.")
    ? name.endsWith(pattern.slice(1)) && name.length > pattern.length - 1
    : pattern === name;
}

function splitPort(entry: string): { host: string; port?: number } {
  const [, host, port] = /^(\[[0-9a-f:.]+\]|[^:]+):(\d{1,5})$/i.exec(entry) ?? [];
  if (host === undefined) return { host: bare(entry.toLowerCase()) };
  return { host: bare(host.toLowerCase()), port: Number(port) };
}

function bare(host: string): string {
  return host.startsWith("[") ? host.slice(1, host.indexOf("]")) : (/^([\d.]+):\d+$/.exec(host)?.[1] ?? host);
}

function toBlockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address, bits] = range.split("/") as [string, string | undefined];
    const family = isIP(address);
    if (family === 0) continue;
    const type = family === 6 ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, type);
    else list.addSubnet(address, Number(bits), type);
  }
  return list;
}
