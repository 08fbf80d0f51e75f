/** The page's files. From source they are built on demand; build.ts replaces this module by one that holds the built files. */
import { join } from "node:path";
import type { UiFile } from "./ui-build.ts";

export async function readUiFiles(): Promise<UiFile[]> {
  const { buildUi } = await import("./ui-build.ts");
  return await buildUi(join(import.meta.dir, "../../../ui"));
}
