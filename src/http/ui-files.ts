/** The page's files. From source they are bundled on demand; build.ts replaces this module by the bundled files. */
import { join } from "node:path";
import type { UiFile } from "./ui-bundle.ts";

export async function readUiFiles(): Promise<UiFile[]> {
  const { bundleUi } = await import("./ui-bundle.ts");
  return await bundleUi(join(import.meta.dir, "../../ui"));
}
