import type { ApiError } from "../api/api-client.ts";

/** An error as the server reports it: code, message and details. */
export function ErrorNote({ error }: { error: ApiError | undefined }) {
  if (!error) return null;
  return (
    <div class="note note-error" role="alert">
      <p>
        <code>{error.code}</code>
        {error.status > 0 && <span class="faint"> {error.status}</span>}
      </p>
      <p>{error.message}</p>
      {error.details && <pre>{JSON.stringify(error.details, null, 2)}</pre>}
    </div>
  );
}
