/**
 * An endpoint that embeds as OpenAI's does, by meanings it is told: each listed word is a direction of its own, and words of
 * one meaning share one. Counts what it was sent; can be slow, broken or gone.
 */
const DIMENSION = 64;

export interface EmbeddingEndpoint extends AsyncDisposable {
  readonly baseUrl: string;
  /** Every text that came to be embedded. */
  readonly texts: string[];
  /** The `authorization` of the last request. */
  authorization: string | null;
  /** What the next requests are answered with instead. */
  fault: "none" | "500" | "429" | "401" | "garbage" | "hang";
}

/** The environment of a server that embeds by it. */
export const embeddingBy = ({ baseUrl }: EmbeddingEndpoint): Record<string, string> => ({
  SVC_INDEX_EMBEDDER: "openai",
  SVC_INDEX_OPENAI_BASE_URL: baseUrl,
  SVC_INDEX_OPENAI_MODEL: "told-meanings",
});

export function startEmbeddingEndpoint(meanings: readonly (readonly string[])[]): EmbeddingEndpoint {
  const directionByWord = new Map(meanings.flatMap((words, index) => words.map((word) => [word, index] as const)));
  const texts: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      endpoint.authorization = request.headers.get("authorization");
      switch (endpoint.fault) {
        case "500":
          return new Response("down", { status: 500 });
        case "429":
          return new Response("slow down", { status: 429 });
        case "401":
          return new Response("who are you", { status: 401 });
        case "garbage":
          return Response.json({ data: [{ index: 0, embedding: ["x"] }] });
        case "hang":
          await Bun.sleep(60_000);
          return new Response("late", { status: 503 });
        case "none":
      }
      const { input } = (await request.json()) as { input: string[] };
      texts.push(...input);
      return Response.json({ data: input.map((text, index) => ({ index, embedding: vectorOf(text) })) });
    },
  });
  const vectorOf = (text: string): number[] => {
    const vector = new Array<number>(DIMENSION).fill(0.01);
    for (const word of text.toLowerCase().split(/[^\p{L}\p{N}]+/u)) {
      const direction = directionByWord.get(word);
      if (direction !== undefined) vector[direction]! += 1;
    }
    return vector;
  };
  const endpoint: EmbeddingEndpoint = {
    baseUrl: `http://127.0.0.1:${server.port}/v1`,
    texts,
    authorization: null,
    fault: "none",
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
  return endpoint;
}
