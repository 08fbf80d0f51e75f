/**
 * Nothing is used before it is made. Within a function, what another function makes (`createX`, `openX`, `startX`, `new X`) is not
 * named above the line that makes it, not even in a closure that runs later: whoever has to be told of something is given to it
 * when it is made, or listens to it afterwards. A variable that is declared as if it were set (`let x!`) is a breach too.
 */
import { join } from "node:path";
import { scratchDir } from "../scratch.ts";

const MADE = /^\s+(?:const|let) .*= (?:await )?(?:new |(?:\w+\.)?(?:create|open|start|bind|listen|adopt)[A-Z(])/;
const UNSET = /^\s*let \w+(?:!: .*|: [^=|]*);$/;
const PROMISED = /^\s*let \w+!/;
const TEST_FILE = /\.test\.tsx?$/;

interface Finding {
  readonly message: string;
  readonly filename: string;
  readonly labels: readonly { readonly span: { readonly line: number } }[];
}

/** One line for each place in the sources at `root` that names a thing above the line that makes it. */
export async function findUsedEarly(root: string, folders: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const { message, filename, labels } of await usesBeforeDefinition(root, folders)) {
    if (TEST_FILE.test(filename)) continue;
    const lines = (await Bun.file(join(root, filename)).text()).split("\n");
    const made = lines[labels.at(-1)!.span.line - 1]!;
    if (!MADE.test(made) && !UNSET.test(made)) continue;
    const name = /'(\w+)'/.exec(message)?.[1];
    found.push(`${filename}:${labels[0]!.span.line} uses ${name} before it is made`);
  }
  for (const folder of folders) {
    for await (const name of new Bun.Glob("**/*.{ts,tsx}").scan({ cwd: join(root, folder) })) {
      if (TEST_FILE.test(name)) continue;
      const lines = (await Bun.file(join(root, folder, name)).text()).split("\n");
      lines.forEach((line, at) => {
        if (PROMISED.test(line)) found.push(`${folder}/${name}:${at + 1} declares a variable as if it were set`);
      });
    }
  }
  return [...new Set(found)].sort();
}

async function usesBeforeDefinition(root: string, folders: readonly string[]): Promise<Finding[]> {
  const config = join(import.meta.dir, "order.oxlintrc.json");
  const args = ["--config", config, "--format", "json", ...folders];
  using scratch = scratchDir("svc-order");
  // It ends before a pipe has taken all that it says.
  const written = Bun.file(join(scratch.path, "report.json"));
  const child = Bun.spawn([process.execPath, "run", "--bun", "--silent", "oxlint", ...args], {
    cwd: root,
    stdout: written,
    stderr: "pipe",
  });
  const faults = await new Response(child.stderr).text();
  const exitCode = await child.exited;
  const output = await written.text();
  if (exitCode > 1) throw new Error(`oxlint could not look for uses: ${faults}${output}`);
  const report = JSON.parse(output) as { diagnostics: Finding[]; number_of_files: number };
  if (report.number_of_files === 0) throw new Error("oxlint has seen no file");
  return report.diagnostics;
}
