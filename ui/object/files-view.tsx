/** The files of an object: attached, listed, downloaded, deleted. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type AnyRecord, type ApiError, toApiError } from "../api/api-client.ts";
import { type FileApi, type FileInfo, fileApi } from "../api/file-api.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { useStream } from "../stream/stream.ts";

export interface FilesViewProps {
  spaceId: string;
  objectId: string;
  /** The object's own row: when it changes, the list is read again. */
  row: AnyRecord;
}

export function FilesView({ spaceId, objectId, row }: FilesViewProps) {
  const api = fileApi(spaceId, objectId);
  const files = useSignal<readonly FileInfo[] | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  const load = async () => {
    try {
      files.value = await api.list();
      error.value = undefined;
    } catch (fault) {
      error.value = toApiError(fault);
    }
  };
  useEffect(() => void load(), [spaceId, objectId, row]);
  useStream({ method: "GET", path: api.streamPath }, () => void load());
  return (
    <section aria-label="Files">
      <Attach api={api} onDone={load} />
      <ErrorNote error={error.value} />
      {files.value?.length === 0 && <p class="empty">No files yet.</p>}
      <ul class="members">
        {files.value?.map((file) => (
          <FileRow key={file.fileId} file={file} api={api} onDone={load} />
        ))}
      </ul>
    </section>
  );
}

function Attach({ api, onDone }: { api: FileApi; onDone: () => Promise<void> }) {
  const { busy, error, run } = useFormAction();
  const under = useSignal("");
  const attach = (field: HTMLInputElement) =>
    run(async () => {
      try {
        for (const file of field.files ?? []) {
          under.value = file.name;
          await api.attach(file);
        }
      } finally {
        // This allows choosing the same file again.
        field.value = "";
        await onDone();
      }
    });
  return (
    <div class="inline-form">
      <label for="attach">Attach files</label>
      <input
        id="attach"
        type="file"
        multiple
        disabled={busy}
        onChange={(event) => {
          attach(event.currentTarget);
        }}
      />
      {busy && (
        <span class="faint" role="status">
          Attaching {under.value}…
        </span>
      )}
      <ErrorNote error={error} />
    </div>
  );
}

function FileRow({ file, api, onDone }: { file: FileInfo; api: FileApi; onDone: () => Promise<void> }) {
  const { busy, error, run } = useFormAction();
  const name = file.name || `Unnamed …${file.fileId.slice(-6)}`;
  return (
    <li class="card member">
      <div>
        <a href={api.contentPath(file.fileId)} download={file.name ?? ""}>
          {name}
        </a>
        <br />
        <span class="faint">{describe(file)}</span>
      </div>
      <span class="grow" />
      <ConfirmButton
        label="Delete"
        question="Delete it for everybody"
        disabled={busy}
        onConfirm={() =>
          run(async () => {
            await api.remove(file.fileId);
            await onDone();
          })
        }
      />
      <ErrorNote error={error} />
    </li>
  );
}

function describe({ size, mime, durable, cached, inline, variant }: FileInfo): string {
  const kept = durable ? "backed up" : inline ? "kept with the object" : "not backed up yet";
  return [variant, sizeText(size), mime, kept, cached ? undefined : "not on this device"].filter(Boolean).join(" · ");
}

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

function sizeText(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${UNITS[power]}`;
}
