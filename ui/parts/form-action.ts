/** The running action of a form: whether it is under way, and why the last one failed. */
import { useSignal } from "@preact/signals";
import { type ApiError, toApiError } from "../api/api-client.ts";

export interface FormAction {
  busy: boolean;
  error: ApiError | undefined;
  /** Runs `action` unless one is running; a failure becomes `error`. */
  run: (action: () => Promise<void>) => void;
}

export function useFormAction(): FormAction {
  const busy = useSignal(false);
  const error = useSignal<ApiError | undefined>(undefined);
  const perform = async (action: () => Promise<void>) => {
    busy.value = true;
    error.value = undefined;
    try {
      await action();
    } catch (fault) {
      error.value = toApiError(fault);
    } finally {
      busy.value = false;
    }
  };
  return {
    busy: busy.value,
    error: error.value,
    run: (action) => {
      if (!busy.peek()) void perform(action);
    },
  };
}
