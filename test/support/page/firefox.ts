/** A headless Firefox for tests of what the server sends, by the protocol that it speaks itself (WebDriver BiDi). */
import { scratchDir } from "../scratch.ts";

/** Path of Firefox, or null where there is none. */
export const FIREFOX = Bun.which("firefox-esr") ?? Bun.which("firefox");

interface FirefoxPage extends AsyncDisposable {
  /** Answers what kept the address from becoming the page, such as that it was a download. */
  goto(url: string): Promise<string | undefined>;
  /** The value of an expression, which may be a promise. */
  evaluate(expression: string): Promise<unknown>;
}

interface Firefox extends AsyncDisposable {
  open(): Promise<FirefoxPage>;
}

const START_MS = 40_000;
const COMMAND_MS = 20_000;

export async function startFirefox(): Promise<Firefox> {
  if (!FIREFOX) throw new Error("there is no Firefox on this machine");
  const home = scratchDir("svc-firefox");
  const words = ["--headless", "--no-remote", "--profile", home.path, "--remote-debugging-port", "0"];
  const child = Bun.spawn([FIREFOX, ...words], {
    env: { PATH: process.env["PATH"] ?? "", HOME: home.path, MOZ_DISABLE_AUTO_SAFE_MODE: "1" },
    stdout: "ignore",
    stderr: "pipe",
  });
  const link = await connect(`${await within(START_MS, addressIn(child.stderr))}/session`);
  await link.send("session.new", { capabilities: {} });
  return {
    async open() {
      const { context } = await link.send("browsingContext.create", { type: "tab" });
      return {
        goto: (url) =>
          link.send("browsingContext.navigate", { context, url, wait: "complete" }).then(
            () => undefined,
            (error: unknown) => String(error),
          ),
        async evaluate(expression) {
          const target = { context };
          const { result, exceptionDetails } = await link.send("script.evaluate", {
            expression,
            target,
            awaitPromise: true,
          });
          if (!result) throw new Error(JSON.stringify(exceptionDetails));
          return (result as { value?: unknown }).value;
        },
        [Symbol.asyncDispose]: async () => void (await link.send("browsingContext.close", { context })),
      };
    },
    [Symbol.asyncDispose]: async () => {
      link.close();
      child.kill("SIGKILL");
      await child.exited;
      home[Symbol.dispose]();
    },
  };
}

/** Where it listens, as it says itself once it does. */
async function addressIn(stderr: ReadableStream<Uint8Array>): Promise<string> {
  let said = "";
  const decoder = new TextDecoder();
  for await (const chunk of stderr) {
    said += decoder.decode(chunk, { stream: true });
    const [, address] = /listening on (ws:\/\/\S+)/.exec(said) ?? [];
    if (address) return address;
  }
  throw new Error(`Firefox ended at once:\n${said}`);
}

async function connect(url: string) {
  const socket = new WebSocket(url);
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  let next = 1;
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(String(data)) as { id?: number; result?: Record<string, unknown>; message?: string };
    const one = message.id === undefined ? undefined : waiting.get(message.id);
    if (!one) return;
    waiting.delete(message.id!);
    if (message.result) one.resolve(message.result);
    else one.reject(new Error(message.message ?? "Firefox refused"));
  };
  await new Promise<void>((done, failed) => {
    socket.onopen = () => done();
    socket.onerror = () => failed(new Error(`${url} does not answer`));
  });
  return {
    send(method: string, params: object): Promise<Record<string, unknown>> {
      const id = next++;
      const answer = Promise.withResolvers<Record<string, unknown>>();
      waiting.set(id, answer);
      socket.send(JSON.stringify({ id, method, params }));
      return within(COMMAND_MS, answer.promise);
    },
    close: () => socket.close(),
  };
}

function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`Firefox took longer than ${limitMs} ms`)), limitMs);
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}
