import { readFileSync } from "node:fs";
import { join } from "node:path";

interface NatsPlace {
  readonly listen: string;
  readonly storeDirectory: string;
  readonly logPath: string;
}

export const OPERATOR_LOGIN = "operator:change-me";

/**
 * The configuration that docs/network.md tells operators to use, with nothing changed but places and names. Without a
 * directory of certificates the connections are not encrypted: what passes is then all that an eavesdropper could have.
 */
export function documentedConfig(place: NatsPlace, tlsDirectory: string | undefined, nkeys: readonly string[]): string {
  const page = readFileSync(join(import.meta.dir, "../../../docs/network.md"), "utf8");
  const block = /```conf\n([\s\S]*?)```/.exec(page)?.[1];
  if (!block) throw new Error("docs/network.md has no configuration");
  const replacements: [string | RegExp, string][] = [
    ['"0.0.0.0:4222"', `"${place.listen}"`],
    ["/var/lib/nats", place.storeDirectory],
    tlsDirectory === undefined ? [/^tls \{[^}]*\}/m, ""] : ["/etc/nats/", `${tlsDirectory}/`],
    ['# { nkey: "UACCOUNTKEY" }', nkeys.map((nkey) => `{ nkey: "${nkey}" }`).join("\n")],
  ];
  const replaced = replacements.reduce((text, [from, to]) => {
    if (text.search(typeof from === "string" ? from.replaceAll(/[.{}"/]/g, "\\$&") : from) < 0)
      throw new Error(`docs/network.md lacks ${from}`);
    return typeof from === "string" ? text.replaceAll(from, to) : text.replace(from, to);
  }, block);
  return `${replaced}\nlog_file: "${place.logPath}"\n`;
}
