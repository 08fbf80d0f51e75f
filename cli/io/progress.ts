/** A line on stderr that counts bytes while they move. */
export interface Progress {
  add(bytes: number): void;
  /** Removes the line; further calls do nothing. */
  end(): void;
}

/** A line on stderr that shows progress. */
interface ProgressLine {
  show(text: string): void;
  /** Removes the line; further calls do nothing. */
  end(): void;
}

const REDRAW_MS = 100;

/** Returns undefined when stderr is not a terminal, where nobody would see the line. */
export function startLine(): ProgressLine | undefined {
  if (!process.stderr.isTTY) return undefined;
  let drawnAtMs = Number.NEGATIVE_INFINITY;
  let ended = false;
  return {
    show(text) {
      if (ended || performance.now() - drawnAtMs < REDRAW_MS) return;
      drawnAtMs = performance.now();
      process.stderr.write(`\r\u001b[K${text}`);
    },
    end() {
      if (!ended && Number.isFinite(drawnAtMs)) process.stderr.write("\r\u001b[K");
      ended = true;
    },
  };
}

/** Returns undefined when stderr is not a terminal, where nobody would see the line. */
export function startProgress(verb: string, totalBytes: number | undefined): Progress | undefined {
  const line = startLine();
  if (!line) return undefined;
  let bytes = 0;
  const share = totalBytes ? ` of ${mebibytes(totalBytes)}` : "";
  return {
    add(more) {
      bytes += more;
      line.show(`${verb} ${mebibytes(bytes)}${share}`);
    },
    end: line.end,
  };
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
