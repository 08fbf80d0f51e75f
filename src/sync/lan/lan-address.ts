import { isIPv4, isIPv6 } from "node:net";

/**
 * Whether an address lies on a local network: loopback, link-local (RFC 3927, RFC 4291 § 2.5.6), private (RFC 1918) or
 * unique local (RFC 4193). Nothing else is ever dialled, listened to or answered (SYNC-13).
 */
export function isLanAddress(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  const plain = mapped?.[1] ?? address;
  if (isIPv4(plain)) {
    const [a, b] = plain.split(".").map(Number) as [number, number];
    return (
      a === 127 || a === 10 || (a === 172 && b >= 16 && b <= 31) || (a === 192 && b === 168) || (a === 169 && b === 254)
    );
  }
  const bare = plain.split("%")[0]!.toLowerCase();
  if (!isIPv6(bare)) return false;
  return bare === "::1" || /^fe[89ab][0-9a-f]:/.test(bare) || /^f[cd][0-9a-f]{2}:/.test(bare);
}
