import { afterEach, expect, spyOn, test } from "bun:test";
import { startProgress } from "./progress.ts";

const wasTty = process.stderr.isTTY;
afterEach(() => {
  process.stderr.isTTY = wasTty;
});

test("[CLI-1] progress is shown on a terminal, taken away at the end, and not shown elsewhere", () => {
  let shown = "";
  const spy = spyOn(process.stderr, "write").mockImplementation((text) => {
    shown += text;
    return true;
  });
  try {
    process.stderr.isTTY = false;
    expect(startProgress("sent", 10)).toBeUndefined();
    process.stderr.isTTY = true;
    const progress = startProgress("sent", 4 << 20);
    progress?.add(1 << 20);
    expect(shown).toBe("\r\u001b[Ksent 1.0 MiB of 4.0 MiB");
    progress?.end();
    progress?.end();
    expect(shown).toEndWith("\r\u001b[K");
    expect(shown.match(/\r/g)).toHaveLength(2);
  } finally {
    spy.mockRestore();
  }
});
