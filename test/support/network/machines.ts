/**
 * Machines on one LAN: network namespaces, each with a cable to a switch and an identity of its own. They share nothing
 * but that.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { type ScratchDir, scratchDir } from "../scratch.ts";
import { until } from "../server/client.ts";
import { type Device, type DeviceOptions, startDevice } from "../server/devices.ts";
import { skipGroupUnless } from "../skip.ts";

const CABLE = "svc0";
const MACHINE_ID = "/etc/machine-id";
const IP = "ip";
const TC = "tc";

function ip(...args: string[]): void {
  const { status, stderr } = spawnSync(IP, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
}

const allowed = (() => {
  const name = `svc-probe-${process.pid}`;
  try {
    ip("netns", "add", name);
    ip("-n", name, "link", "add", "br0", "type", "bridge");
    return true;
  } catch {
    return false;
  } finally {
    spawnSync(IP, ["netns", "del", name]);
  }
})();

/** `describe` for tests that need machines of their own. */
export const describeWithMachines = skipGroupUnless(allowed, "network namespaces and bridges are not permitted here");

interface Script extends AsyncDisposable {
  /** What it has said so far. */
  lines(): string[];
  /** Writes a line to its standard input. */
  say(line: string): void;
}

export interface Machine extends AsyncDisposable {
  /** 10.77.0.x */
  readonly address: string;
  /** Starts a server here; reached like any other. One at a time. */
  start(options?: DeviceOptions): Promise<Device>;
  /** Pulls the cable, or puts it back. */
  cable(on: boolean): void;
  /** Lets so much through, and drops what is beyond; undefined ends that. */
  limit(kbitPerSecond: number | undefined): void;
  addAddress(address: string): void;
  /** From now on sockets hold as little as the system allows, so that who does not read is felt at once. */
  smallSockets(): void;
  /** Runs a script of test/support here until it is disposed of. */
  script(name: string, ...args: string[]): Promise<Script>;
}

export interface Lan extends AsyncDisposable {
  /** A machine more. Those that are `apart` neither hear nor reach each other, only those that are not. */
  machine(options?: { apart?: boolean }): Promise<Machine>;
}

let count = 0;

/** A switch without machines. */
export function createLan(): Lan {
  const prefix = `svc-${process.pid}-${count++}`;
  const hub = `${prefix}-hub`;
  ip("netns", "add", hub);
  ip("-n", hub, "link", "add", "br0", "type", "bridge");
  ip("-n", hub, "link", "set", "br0", "up");
  const machines: Machine[] = [];
  return {
    async machine({ apart = false } = {}) {
      const number = machines.length + 1;
      const machine = await plug(`${prefix}-${number}`, hub, number);
      if (apart) ip("-n", hub, "link", "set", `p${number}`, "type", "bridge_slave", "isolated", "on");
      machines.push(machine);
      return machine;
    },
    async [Symbol.asyncDispose]() {
      for (const machine of machines) await machine[Symbol.asyncDispose]();
      spawnSync(IP, ["netns", "del", hub]);
    },
  };
}

async function plug(name: string, hub: string, number: number): Promise<Machine> {
  const address = `10.77.0.${number}`;
  ip("netns", "add", name);
  ip("link", "add", CABLE, "netns", name, "type", "veth", "peer", "name", `p${number}`, "netns", hub);
  ip("-n", hub, "link", "set", `p${number}`, "master", "br0", "up");
  ip("-n", name, "addr", "add", `${address}/24`, "dev", CABLE);
  ip("-n", name, "link", "set", CABLE, "up");
  ip("-n", name, "link", "set", "lo", "up");
  const inside = [IP, "netns", "exec", name];
  const stack = new AsyncDisposableStack();
  stack.defer(() => void spawnSync(IP, ["netns", "del", name]));
  const place: ScratchDir = stack.use(scratchDir("svc-machine"));
  const script = async (file: string, ...args: string[]): Promise<Script> => {
    const running = await runScript(inside, file, args);
    stack.use(running);
    return running;
  };

  // A server knows itself by its port, so the way in has the same one.
  const socketPath = join(place.path, "in");
  const entrance = createServer((near) => {
    const far = connect(socketPath);
    near.pipe(far).pipe(near);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("error", () => to.destroy()); // a server that was killed: the caller shall see that
      from.on("close", () => to.destroy());
    }
  });
  await new Promise<void>((done, failed) => entrance.once("error", failed).listen(0, "127.0.0.1", done));
  stack.defer(() => void entrance.close());
  const bound = entrance.address();
  if (bound === null || typeof bound === "string") throw new Error("no port");
  await script("machine-relay.ts", socketPath, String(bound.port));

  // What an operating system says of itself (machine-id(5)); `ip netns exec` gives it mounts of its own.
  const identity = join(place.path, "machine-id");
  writeFileSync(identity, `${randomBytes(16).toString("hex")}\n`);
  const asItself = `test ! -e ${MACHINE_ID} || mount --bind ${identity} ${MACHINE_ID}; exec "$0" "$@"`;

  return {
    address,
    script,
    start: (options = {}) =>
      startDevice({ ...options, addr: `127.0.0.1:${bound.port}`, wrapper: [...inside, "sh", "-c", asItself] }),
    cable: (on) => ip("-n", name, "link", "set", CABLE, on ? "up" : "down"),
    limit(kbitPerSecond) {
      spawnSync(TC, ["-n", name, "qdisc", "del", "dev", CABLE, "root"]);
      if (kbitPerSecond === undefined) return;
      const rate = ["tbf", "rate", `${kbitPerSecond}kbit`, "burst", "4kb", "limit", "8kb"];
      const { status, stderr } = spawnSync(TC, ["-n", name, "qdisc", "add", "dev", CABLE, "root", ...rate]);
      if (status !== 0) throw new Error(`tc: ${stderr}`);
    },
    smallSockets() {
      const sizes = ["tcp_wmem", "tcp_rmem"].map((name) => `echo 4096 4096 4096 > /proc/sys/net/ipv4/${name}`);
      ip("netns", "exec", name, "sh", "-c", sizes.join(" && "));
    },
    addAddress: (more) => ip("-n", name, "addr", "add", more, "dev", CABLE),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function runScript(inside: readonly string[], file: string, args: readonly string[]): Promise<Script> {
  const child = Bun.spawn([...inside, process.execPath, join(import.meta.dir, file), ...args], {
    env: { PATH: process.env["PATH"] },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  let text = "";
  const read = (async () => {
    for await (const chunk of child.stdout) text += new TextDecoder().decode(chunk);
  })();
  const lines = () => text.split("\n").filter((line) => line !== "");
  await until(() => lines().length > 0 || child.exitCode !== null, `${file} to begin`, 20_000);
  return {
    lines,
    say: (line) => {
      void child.stdin.write(`${line}\n`);
      void child.stdin.flush();
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
      await read;
    },
  };
}
