import { svcError } from "../../protocol/errors.ts";
import { ProgramList, ProgramPutBody, ProgramSource, ProgramView } from "../../protocol/trigger.ts";
import { type Route, route } from "../route.ts";
import { controlOf } from "./control-of.ts";

/** Programs of the agent space. They are objects, which the main API can make too. */
export const programRoutes: Route[] = [
  route({
    method: "GET",
    path: "/programs",
    id: "listPrograms",
    tag: "Programs",
    summary: "The programs of the agent space",
    responses: { 200: { description: "By name and version", schema: ProgramList } },
    errors: ["runtime.disabled"],
    handler: async ({ engine }) => ({ programs: await (await controlOf(engine)).programs.list() }),
  }),
  route({
    method: "GET",
    path: "/programs/:name/:version",
    id: "getProgram",
    tag: "Programs",
    summary: "A program with its source",
    params: { version: "A whole number, from 1" },
    responses: { 200: { description: "The program", schema: ProgramSource } },
    errors: ["runtime.disabled", "program.not_found"],
    handler: async ({ engine, params }) => {
      const { programs } = await controlOf(engine);
      const program = await programs.get(params.name, versionOf(params.version));
      if (!program) throw svcError("program.not_found", { name: params.name, version: params.version });
      return program;
    },
  }),
  route({
    method: "PUT",
    path: "/programs/:name/:version",
    id: "putProgram",
    tag: "Programs",
    summary: "Make a program, or give it another source",
    description: "A change is live at the next run. A trigger names it as `<name>@v<version>`.",
    params: { version: "A whole number, from 1" },
    body: ProgramPutBody,
    example: { code: "export default async function main(args, ctx) { return 1 }" },
    responses: { 200: { description: "The program", schema: ProgramView } },
    errors: ["runtime.disabled", "request.too_large", "dataset.validation"],
    handler: async ({ engine, params, body }) =>
      (await controlOf(engine)).programs.put(params.name, versionOf(params.version), body.code),
  }),
];

function versionOf(text: string): number {
  const version = Number(text);
  if (/^\d{1,9}$/.test(text) && version >= 1) return version;
  const reason = "a whole number from 1";
  throw svcError("request.invalid_field", { field: "version", reason }, `version is refused: it is ${reason}`);
}
