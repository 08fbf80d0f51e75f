import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type ApiError, toApiError } from "../api/api-client.ts";

export interface Loaded<Value> {
  value: Value | undefined;
  error: ApiError | undefined;
}

/** Loads once for each `key`; an answer for an older key is dropped. */
export function useLoaded<Value>(load: () => Promise<Value>, key: string): Loaded<Value> {
  const loaded = useSignal<Loaded<Value>>({ value: undefined, error: undefined });
  // The key names everything on which `load` depends.
  useEffect(() => {
    let current = true;
    const settle = (next: Loaded<Value>) => {
      if (current) loaded.value = next;
    };
    load().then(
      (value) => settle({ value, error: undefined }),
      (error: unknown) => settle({ value: undefined, error: toApiError(error) }),
    );
    return () => {
      current = false;
    };
  }, [key]);
  return loaded.value;
}
