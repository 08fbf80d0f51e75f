/**
 * A program that boots an account, with something broken in each phase in turn, and then whole. It prints what each boot came to
 * and what was open afterwards, and ends by itself if nothing keeps it: no timer, no socket, no thread and no child.
 */
import { Database } from "bun:sqlite";
import { mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TECH_SPACE_NAME } from "../../../src/account/own-space/tech-datasets.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import { createSigner } from "../../../src/crypto/sign.ts";
import { createWallet } from "../../../src/crypto/wallet.ts";
import { bootEngine } from "../../../src/engine/boot/boot.ts";
import type { BootOptions } from "../../../src/engine/boot/boot-engine.ts";
import { type Config, loadConfig } from "../../../src/engine/config/config.ts";
import { derivedSpaceGenesis } from "../../../src/space/space.ts";

/** What came of one boot. */
export interface BootEnd {
  readonly broken: string;
  readonly error: string | undefined;
  /** Files below the account's directory that this process still had open. */
  readonly open: readonly string[];
  /** Files beside the databases, which the last that closes a database removes. */
  readonly left: readonly string[];
}

/** A setting that a phase reads: reading it fails. */
const BROKEN_SETTINGS = [
  "sync.interval",
  "files.cacheLimit",
  "network.url",
  "push.url",
  "index.enabled",
  "runtime.enabled",
  "storage.checkInterval",
] as const;

const CLOSED_EARLY = "closed while it starts";
const DAMAGED_NOTE = "profile.unnotified";

const root = process.argv[2]!;
const wallet = await createWallet({ machineId: "m" });
const accountDir = join(root, wallet.accountId);
mkdirSync(accountDir);
const env = { SVC_P2P_ENABLED: "false", SVC_INDEX_ENABLED: "false", SVC_PUSH_URL: "http://127.0.0.1:9/" };
const config = await loadConfig({ env, homeDir: root, flags: { "data-dir": root } });

async function boot(broken: string, read: Config = config): Promise<void> {
  let error: string | undefined;
  try {
    const engine = await bootEngine(optionsOf(read));
    if (broken === "") await engine.life.create({ name: "a space" });
    await engine.close();
  } catch (thrown) {
    error = (thrown as Error).message;
  }
  report(broken, error);
}

function optionsOf(read: Config): BootOptions {
  const answer = async () => new Response();
  return { accountDir, wallet, config: read, log: silentLog, clock: systemClock, answer };
}

function report(broken: string, error: string | undefined): void {
  const left = readdirSync(join(accountDir, "sdk")).filter((name) => !name.endsWith(".db"));
  console.log(JSON.stringify({ broken, error, open: openBelow(accountDir), left } satisfies BootEnd));
}

function openBelow(directory: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(directory) ? [path.slice(directory.length + 1)] : [];
    } catch {
      return []; // the one by which the list was read
    }
  });
}

const breaking = (key: string): Config =>
  new Proxy(config, {
    get(target, name, receiver) {
      if (name === key) throw new Error(`${key} is broken`);
      return Reflect.get(target, name, receiver);
    },
  });

/** Boots while another file lies where one is opened. */
async function bootBeside(path: string, put: (path: string) => void): Promise<void> {
  const away = join(root, "away");
  const isThere = readdirSync(join(path, "..")).includes(path.slice(path.lastIndexOf("/") + 1));
  if (isThere) renameSync(path, away);
  put(path);
  await boot(path.slice(accountDir.length + 1));
  rmSync(path, { recursive: true });
  if (isThere) renameSync(away, path);
}

/** Boots while a damaged note lies in the account's own space, which its services read when they are made. */
async function bootOnDamagedNote(path: string): Promise<void> {
  const change = (sql: string): void => {
    using db = new Database(path);
    db.run(sql);
  };
  change(`INSERT INTO meta(key, value) VALUES('${DAMAGED_NOTE}', x'7b')`);
  await boot(DAMAGED_NOTE);
  change(`DELETE FROM meta WHERE key = '${DAMAGED_NOTE}'`);
}

/** Closes the engine at the moment when its LAN begins to listen. */
async function closeWhileStarting(): Promise<void> {
  const reached = Promise.withResolvers<void>();
  const read = new Proxy(config, {
    get(target, name, receiver) {
      if (name === "p2p.port") reached.resolve();
      return name === "p2p.enabled" ? true : Reflect.get(target, name, receiver);
    },
  });
  const engine = await bootEngine(optionsOf(read));
  await reached.promise;
  await engine.close();
  report(CLOSED_EARLY, undefined);
}

await boot("");
const sdk = join(accountDir, "sdk");
const signer = createSigner(wallet.accountSeed);
const account = { id: wallet.accountId, peerId: wallet.peerId, seed: wallet.accountSeed, signer };
const own = join(sdk, `${derivedSpaceGenesis(account, TECH_SPACE_NAME).spaceId}.db`);
await bootBeside(join(sdk, "account.db"), (path) => mkdirSync(path));
await bootBeside(own, (path) => writeFileSync(path, "not a database"));
await bootBeside(join(accountDir, "files"), (path) => writeFileSync(path, "not a directory"));
await bootOnDamagedNote(own);
for (const key of BROKEN_SETTINGS) await boot(key, breaking(key));
await closeWhileStarting();
await boot("");
