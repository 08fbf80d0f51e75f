/** Work of the server itself that may take long. It is shown as a process of this device once it has lasted a while. */
export interface LongWork {
  /** Reports how far the work is; `total` 0 means unknown. */
  progress(done: number, total: number): void;
  /** Reports that the work is over; with an error it has failed. */
  end(error?: unknown): void;
}

export interface LongWorkSpec {
  /** `index.query`. */
  readonly kind: string;
  readonly title: string;
  /** What it is about: a space's id, a file's name. One work of a kind and target at a time. */
  readonly target: string;
}

export type StartLongWork = (work: LongWorkSpec) => LongWork;
