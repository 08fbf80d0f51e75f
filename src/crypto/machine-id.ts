import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { bytesToHex, utf8ToBytes } from "../base/bytes.ts";
import { sha256 } from "./hash.ts";

/** Where the operating system's own identifier comes from; passed in so that tests can pretend to be another machine. */
export interface MachineSources {
  readonly platform: string;
  /** A file's text, or undefined when it cannot be read. */
  readText(path: string): Promise<string | undefined>;
  /** A command's standard output, or undefined when it fails. */
  run(command: readonly string[]): Promise<string | undefined>;
  hostname(): string;
}

/**
 * Resolves to 32 hex characters that stay the same on one machine (one installation of an operating system) and differ
 * between machines. They are a hash, so that the wallet file does not reveal the identifier they come from. Without an
 * identifier of the system they come from the host name; renaming such a host counts as moving to another machine.
 */
export async function machineId(sources: MachineSources = systemSources): Promise<string> {
  const identifier = (await systemIdentifier(sources)) ?? `hostname:${sources.hostname()}`;
  return bytesToHex(sha256(utf8ToBytes(`svc/machine/v1\0${identifier}`)).subarray(0, 16));
}

async function systemIdentifier(sources: MachineSources): Promise<string | undefined> {
  switch (sources.platform) {
    case "darwin": {
      const text = await sources.run(["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"]);
      return text?.match(/"IOPlatformUUID" = "([0-9A-Fa-f-]{36})"/)?.[1];
    }
    case "win32": {
      const key = "HKLM\\SOFTWARE\\Microsoft\\Cryptography";
      const text = await sources.run(["reg", "query", key, "/v", "MachineGuid"]);
      return text?.match(/MachineGuid\s+REG_SZ\s+([0-9A-Fa-f-]{36})/)?.[1];
    }
    default:
      // machine-id(5): 32 hex characters; before the first boot of an image it is empty or says "uninitialized".
      for (const path of ["/etc/machine-id", "/var/lib/dbus/machine-id"]) {
        const id = (await sources.readText(path))?.trim();
        if (id && /^[0-9a-f]{32}$/.test(id)) return id;
      }
      return undefined;
  }
}

const COMMAND_TIMEOUT_MS = 2000;

const systemSources: MachineSources = {
  platform: process.platform,
  readText: (path) => readFile(path, "utf8").catch(() => undefined),
  async run(command) {
    try {
      const child = Bun.spawn([...command], { stdout: "pipe", stderr: "ignore", timeout: COMMAND_TIMEOUT_MS });
      const text = await new Response(child.stdout).text();
      return (await child.exited) === 0 ? text : undefined;
    } catch {
      return undefined; // no such command
    }
  },
  hostname,
};
