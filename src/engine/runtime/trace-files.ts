import type { FileInfo } from "../../domain/file/file-row.ts";
import type { SpaceServices } from "../space-services.ts";

/** Traces too large for the row of their run. */
export interface TraceFiles {
  keep(runId: string, trace: string): Promise<void>;
  read(runId: string): Promise<string | undefined>;
  remove(runIds: readonly string[]): Promise<void>;
}

const nameOf = (runId: string): string => `${runId}.jsonl`;

/** Traces as files of the object that holds the runs, so that every device of the account has them. */
export function createTraceFiles(anchorId: string, services: () => Promise<SpaceServices>): TraceFiles {
  const filesOf = ({ files }: SpaceServices, runIds: readonly string[]): FileInfo[] => {
    const names = new Set(runIds.map(nameOf));
    return files.list(anchorId, 0).filter(({ name }) => name !== undefined && names.has(name));
  };
  return {
    async keep(runId, trace) {
      const { files } = await services();
      const input = { name: nameOf(runId), mime: "application/jsonl" };
      await files.attach(anchorId, input, new Blob([trace]).stream());
    },
    async read(runId) {
      const opened = await services();
      const [info] = filesOf(opened, [runId]);
      if (!info) return undefined;
      const bytes = await opened.files.serve(info.fileId, undefined).read(0, info.size - 1);
      return new Response(bytes as BodyInit).text();
    },
    async remove(runIds) {
      const opened = await services();
      for (const { fileId } of filesOf(opened, runIds)) await opened.files.delete(fileId);
    },
  };
}
