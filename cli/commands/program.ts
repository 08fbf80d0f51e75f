import { command, group } from "./command.ts";

export const program = group("Programs of the agent space (the runtime's control API)", {
  list: command({ summary: "List programs", route: "GET /programs" }),
  get: command({ summary: "Show a program with its source", route: "GET /programs/:program/:version" }),
  put: command({
    summary: "Make a program of a file, or give it another source",
    route: "PUT /programs/:program/:version",
    flags: {
      code: {
        kind: "text",
        hint: "@FILE",
        summary: "The source: @FILE, - for stdin, or the text itself",
        required: true,
      },
    },
    body: async ({ flags }, { reader }) => ({ code: await textOf(reader.chunks("--code", flags.code as string)) }),
    examples: ["program put digest 1 --code @docs/programs/daily-digest.js"],
  }),
});

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: false });
  let text = "";
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}
