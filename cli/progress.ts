/** A line on stderr that counts bytes while they move. */
export interface Progress {
  add(bytes: number): void;
  /** Takes the line away; more calls do nothing. */
  end(): void;
}

const REDRAW_MS = 100;

/** Undefined where nobody would see it: stderr is not a terminal. */
export function startProgress(verb: string, totalBytes: number | undefined): Progress | undefined {
  if (!process.stderr.isTTY) return undefined;
  let bytes = 0;
  let drawnAtMs = Number.NEGATIVE_INFINITY;
  let ended = false;
  return {
    add(more) {
      bytes += more;
      if (performance.now() - drawnAtMs < REDRAW_MS) return;
      drawnAtMs = performance.now();
      const share = totalBytes ? ` of ${mebibytes(totalBytes)}` : "";
      process.stderr.write(`\r\u001b[K${verb} ${mebibytes(bytes)}${share}`);
    },
    end() {
      if (!ended && Number.isFinite(drawnAtMs)) process.stderr.write("\r\u001b[K");
      ended = true;
    },
  };
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
