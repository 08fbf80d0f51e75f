/**
 * How long files and functions are. A file has up to 400 lines, a factory up to 250, any other function up to 80. What is
 * longer for a good reason says it in the file's head, behind `Long because`. In a test file functions are not measured: a
 * group of tests is one. Of style sheets the file is measured.
 */
import { join } from "node:path";

const FILE_LINES = 400;
const FUNCTION_LINES = 80;
const FACTORY_LINES = 250;
/** Makes something of parts and answers it: most of its lines are the functions within. */
const FACTORY = /`(create|open|start|define)[A-Z]/;
const FOLDERS = ["src", "cli", "ui", "test", "build.ts"];
const STYLE_SHEETS = new Bun.Glob("**/*.css");
const TEST_FILE = /\.test\.tsx?$/;
const REASON = /^\s*(?:\/\*\*|\*|\/\/).*\bLong because \S/m;
const HEAD_LINES = 12;

interface Finding {
  readonly message: string;
  readonly filename: string;
  readonly labels: readonly { readonly span: { readonly line: number } }[];
}

/** One line for each file and function of the project at `root` that is too long, without a reason. */
export async function findLong(root: string, folders: readonly string[] = FOLDERS): Promise<string[]> {
  const long: string[] = [];
  for (const { message, filename, labels } of await measure(root, folders)) {
    const lines = Number(/\((\d+)\)/.exec(message)?.[1]);
    const isFile = message.startsWith("File ");
    if (!isFile && TEST_FILE.test(filename)) continue;
    const most = isFile ? FILE_LINES : FACTORY.test(message) ? FACTORY_LINES : FUNCTION_LINES;
    if (lines <= most) continue;
    const head = (await Bun.file(join(root, filename)).text()).split("\n", HEAD_LINES).join("\n");
    if (REASON.test(head)) continue;
    const where = isFile ? filename : `${filename}:${labels[0]?.span.line}`;
    long.push(`${where} has ${lines} lines, ${most} at most`);
  }
  for (const filename of await styleSheets(root, folders)) {
    const lines = (await Bun.file(join(root, filename)).text()).trimEnd().split("\n");
    if (lines.length <= FILE_LINES || REASON.test(lines.slice(0, HEAD_LINES).join("\n"))) continue;
    long.push(`${filename} has ${lines.length} lines, ${FILE_LINES} at most`);
  }
  return long.sort();
}

/** The linter does not read them. */
async function styleSheets(root: string, folders: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    folders
      .filter((folder) => !folder.includes("."))
      .map(async (folder) => {
        const names = await Array.fromAsync(STYLE_SHEETS.scan({ cwd: join(root, folder), onlyFiles: true }));
        return names.map((name) => `${folder}/${name}`);
      }),
  );
  return found.flat();
}

/** The linter counts; which count is too many depends on more than it can be told. */
async function measure(root: string, folders: readonly string[]): Promise<Finding[]> {
  const config = join(import.meta.dir, "lengths.oxlintrc.json");
  const args = ["--config", config, "--format", "json", ...folders];
  const child = Bun.spawn([process.execPath, "run", "--bun", "--silent", "oxlint", ...args], {
    cwd: root,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, faults] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const exitCode = await child.exited;
  if (exitCode > 1) throw new Error(`oxlint could not count lines: ${faults}${output}`);
  const report = JSON.parse(output) as { diagnostics: Finding[]; number_of_files: number };
  if (report.number_of_files === 0) throw new Error("oxlint has seen no file");
  return report.diagnostics;
}
