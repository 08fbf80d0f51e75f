/** Stands between servers and their push node: keeps what is said, and can be taken away. */
export interface NodeProxy extends Disposable {
  readonly url: string;
  /** Every request and answer, headers and all, as text. */
  readonly traffic: string[];
  /** Requests are cut off until `restore`. */
  cut(): void;
  restore(): void;
  /** Each request waits so long first. */
  delayMs: number;
  /** Requests that did not reach the node. */
  readonly lost: number;
  /** How often a path was asked. */
  count(path: string): number;
}

export function startNodeProxy(nodeUrl: () => string): NodeProxy {
  const traffic: string[] = [];
  const asked: string[] = [];
  let isCut = false;
  let lost = 0;
  const noAnswer = (what: string): Response => {
    lost++;
    return new Response(what, { status: 502 });
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (isCut) return noAnswer("the line is cut");
      if (proxy.delayMs > 0) await Bun.sleep(proxy.delayMs);
      const { pathname } = new URL(request.url);
      asked.push(pathname);
      const body = await request.text();
      const headers = Object.fromEntries(request.headers);
      const answer = await fetch(nodeUrl() + pathname, {
        method: request.method,
        headers,
        ...(body === "" ? {} : { body }),
      });
      const text = await answer.text();
      const answerHeaders = Object.fromEntries(answer.headers);
      traffic.push(`${pathname}\n${JSON.stringify(headers)}\n${body}\n${JSON.stringify(answerHeaders)}\n${text}`);
      const kept = new Headers(answer.headers);
      kept.delete("content-length");
      return new Response(text === "" ? null : text, { status: answer.status, headers: kept });
    },
    error: () => noAnswer("the node does not answer"),
  });
  const proxy: NodeProxy = {
    url: `http://127.0.0.1:${server.port}`,
    traffic,
    delayMs: 0,
    get lost() {
      return lost;
    },
    cut: () => {
      isCut = true;
    },
    restore: () => {
      isCut = false;
    },
    count: (path) => asked.filter((pathname) => pathname === path).length,
    [Symbol.dispose]: () => void server.stop(true),
  };
  return proxy;
}
