/** What the build puts into the executables, and that it refuses to make one with something missing. */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildExecutable, crossOutfile, hostTarget, installEveryPlatform, TARGETS, type Target } from "../../build.ts";
import { ACCOUNT_SCHEMA } from "../../src/store/account-schema.ts";
import { SPACE_SCHEMA } from "../../src/store/space-schema.ts";
import { type ExecutableFormat, readExecutableFormat } from "../support/executable-format.ts";
import { createSpace } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { skipUnless } from "../support/skip.ts";

const ROOT = join(import.meta.dir, "../..");
const scratch = mkdtempSync(join(tmpdir(), "svc-build-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const nativeModules = await installEveryPlatform(scratch).catch((error: Error) => {
  console.error(error.message);
  return undefined;
});
const crossTest = skipUnless(nativeModules !== undefined, "the package registry cannot be reached");

const FORMATS: Record<Target["name"], ExecutableFormat> = {
  "linux-x64": { container: "ELF", machine: "x64" },
  "linux-arm64": { container: "ELF", machine: "arm64" },
  "darwin-arm64": { container: "Mach-O", machine: "arm64" },
  "darwin-x64": { container: "Mach-O", machine: "x64" },
  "windows-x64": { container: "PE", machine: "x64" },
};

/** Tables, indexes and triggers of a database. */
const schemaOf = (db: Database) => db.query("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").all();

/** The program is the same in every executable, so one foreign target has it whole, the others what differs between them alone. */
const WHOLE = TARGETS.find(({ name }) => !name.startsWith(process.platform))!;
const nativeEntry = join(scratch, "natives.ts");
writeFileSync(
  nativeEntry,
  `import { sqliteVecLibrary } from ${JSON.stringify(join(ROOT, "src/store/database/sqlite-vec-library.ts"))};
   import { ortLibrary } from ${JSON.stringify(join(ROOT, "src/search/model/ort-library.ts"))};
   console.log(sqliteVecLibrary, ortLibrary);`,
);

describe("[SRV-14] cross builds", () => {
  for (const target of TARGETS) {
    crossTest(
      `${target.name} has its own format and its own native library alone`,
      async () => {
        const modules = nativeModules ?? "";
        const outfile = crossOutfile(scratch, target);
        const entry = target === WHOLE ? {} : { entry: nativeEntry };
        await buildExecutable({ target, outfile, nativeModules: modules, native: false, ...entry });
        const executable = readFileSync(outfile);
        rmSync(outfile);
        expect(readExecutableFormat(executable)).toEqual(FORMATS[target.name]);
        const embedded = TARGETS.filter((each) => executable.includes(readFileSync(join(modules, each.sqliteVec))));
        expect(embedded.map((each) => each.name)).toEqual([target.name]);
        expect(librarySuffixes(executable)).toEqual([target.sqliteVec.split(".").at(-1) ?? ""]);
      },
      120_000,
    );
  }
});

describe("[SRV-14] dist/svc", () => {
  const executable = readFileSync(join(ROOT, "dist/svc"));

  test("is this machine's and carries its sqlite-vec", () => {
    const target = hostTarget();
    expect(readExecutableFormat(executable)).toEqual(FORMATS[target.name]);
    expect(executable.includes(readFileSync(join(ROOT, "node_modules", target.sqliteVec)))).toBe(true);
  });

  test("runs from an empty directory with nothing else there", async () => {
    const dir = mkdtempSync(join(scratch, "alone-"));
    writeFileSync(join(dir, "svc"), executable, { mode: 0o755 });
    const child = Bun.spawn([join(dir, "svc"), "version"], { cwd: dir, env: { HOME: dir }, stdout: "pipe" });
    expect(JSON.parse(await new Response(child.stdout).text())).toHaveProperty("version");
    expect(await child.exited).toBe(0);
    expect(readdirSync(dir)).toEqual(["svc"]);
  });

  test("carries the databases that its migrations make", async () => {
    await using server = await startServer();
    await createSpace(server.client);
    await server.stop();
    const [accountId = ""] = readdirSync(server.dataDir);
    const sdk = join(server.dataDir, accountId, "sdk");
    const files = readdirSync(sdk).filter((name) => name.endsWith(".db"));
    expect(files).toHaveLength(3); // the account, its own space, and the one just made
    for (const name of files) {
      const schema = name === "account.db" ? ACCOUNT_SCHEMA : SPACE_SCHEMA;
      using made = new Database(":memory:");
      for (const migrate of schema.migrations) migrate(made);
      using found = new Database(join(sdk, name), { readonly: true });
      expect(schemaOf(found)).toEqual(schemaOf(made));
      const version = (schema.givenUp ?? 0) + schema.migrations.length;
      expect(found.query("PRAGMA user_version").get()).toEqual({ user_version: version });
    }
  });

  test("ignores .env and bunfig.toml of the directory it is started in", async () => {
    const dir = mkdtempSync(join(scratch, "dotenv-"));
    writeFileSync(join(dir, ".env"), "SVC_LISTEN_ADDR=nonsense\n");
    writeFileSync(join(dir, "bunfig.toml"), 'preload = ["./planted.ts"]\n');
    writeFileSync(join(dir, "planted.ts"), 'throw new Error("planted");\n');
    const child = Bun.spawn([join(ROOT, "dist/svc"), "version"], { cwd: dir, env: { HOME: dir }, stdout: "ignore" });
    expect(await child.exited).toBe(0);
  });
});

describe("[SRV-14] workers", () => {
  test("every Worker finds its entry inside the executable, wherever it is started", async () => {
    const entry = join(scratch, "worker-probe.ts");
    writeFileSync(
      entry,
      `import { workerEntry } from ${JSON.stringify(join(ROOT, "src/base/worker-entry.ts"))};
       const requests = {
         "src/query/readers/reader-worker.ts": { path: "/absent.db", job: {}, stop: new SharedArrayBuffer(4) },
         "src/change/intake/check-worker.ts": { bytes: new Uint8Array(7), lengths: Uint32Array.of(3, 4) },
       };
       for (const [entry, request] of Object.entries(requests)) {
         const worker = new Worker(workerEntry(entry));
         const answer = await new Promise((resolve, reject) => {
           worker.onmessage = (event) => resolve(event.data);
           worker.onerror = (event) => reject(new Error(event.message));
           worker.postMessage(request);
         });
         console.log(entry, answer.code ?? answer.length);
       }
       process.exit(0);`,
    );
    const outfile = join(scratch, "worker-probe");
    const options = { target: hostTarget(), outfile, nativeModules: join(ROOT, "node_modules"), native: true, entry };
    await buildExecutable(options);
    const child = Bun.spawn([outfile], { cwd: scratch, env: { HOME: scratch }, stdout: "pipe" });
    expect(await new Response(child.stdout).text()).toBe(
      "src/query/readers/reader-worker.ts internal\nsrc/change/intake/check-worker.ts 64\n",
    );
    expect(await child.exited).toBe(0);
  });
});

describe("[SRV-14] refusals", () => {
  test("a missing native library fails the build and leaves the old executable", async () => {
    const outfile = join(scratch, "old");
    writeFileSync(outfile, "old");
    const building = buildExecutable({ target: hostTarget(), outfile, nativeModules: scratch, native: true });
    await expect(building).rejects.toThrow("is missing; run bun install");
    expect(readFileSync(outfile, "utf8")).toBe("old");
  });

  test("a missing asset fails the build by name", async () => {
    const entry = join(scratch, "entry.ts");
    writeFileSync(entry, 'import asset from "./absent.css" with { type: "file" }; console.log(asset);');
    const outfile = join(scratch, "never");
    const options = { target: hostTarget(), outfile, nativeModules: join(ROOT, "node_modules"), native: true, entry };
    const error = await buildExecutable(options).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(AggregateError);
    expect(String((error as AggregateError).errors[0])).toContain("absent.css");
    expect(existsSync(outfile)).toBe(false);
    expect(readdirSync(scratch).filter((name) => name.startsWith(".build-"))).toEqual([]);
  });
});

/** Suffixes of the embedded files that are called like sqlite-vec's library. */
function librarySuffixes(executable: Buffer): string[] {
  const suffixes = new Set<string>();
  for (let at = executable.indexOf("vec0"); at >= 0; at = executable.indexOf("vec0", at + 1)) {
    const name = executable.toString("latin1", at - 1, at + 40);
    const [, suffix] = /^\Wvec0(?:-[a-z0-9]+)?\.(so|dylib|dll)\b/.exec(name) ?? [];
    if (suffix !== undefined) suffixes.add(suffix);
  }
  return [...suffixes];
}
