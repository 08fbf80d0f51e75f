/**
 * Holds every refusal that a suite meets to the server's own OpenAPI document: the operation lists the code, under the
 * status it came with, and the keys of its details.
 */
import type { Client, ErrorBody } from "../server/client.ts";
import { asList, asObject, loadDocument, type Operation } from "./openapi.ts";

export interface DocumentedErrors {
  /** What the document lacks of a refusal; undefined when it is as documented, or when no operation is concerned. */
  faultOf(method: string, path: string, status: number, error: ErrorBody): string | undefined;
}

/** The document is the executable's, so one server's stands for all of them. */
let documented: Promise<DocumentedErrors> | undefined;

export function documentedErrors(client: Client): Promise<DocumentedErrors> {
  documented ??= loadDocument(client).then(({ operations }) => createDocumentedErrors(operations));
  return documented;
}

function createDocumentedErrors(operations: readonly Operation[]): DocumentedErrors {
  const placeholders = (path: string): number => path.split("{").length;
  const patterns = operations
    .toSorted((a, b) => placeholders(a.path) - placeholders(b.path))
    .map((operation) => ({ operation, pattern: new RegExp(`^${operation.path.replace(/\{[^}]+\}/g, "[^/]+")}$`) }));
  return {
    faultOf(method, path, status, { code, details = {} }) {
      const pathname = path.split("?")[0]!;
      const operation = patterns.find(
        (one) => one.operation.method === method && one.pattern.test(pathname),
      )?.operation;
      if (!operation) return undefined;
      const error = asObject(asObject(asObject(operation.responses.get(status)?.schema)["properties"])["error"]);
      const properties = asObject(error["properties"]);
      const name = `${method} ${operation.path}`;
      if (!asList(asObject(properties["code"])["enum"]).includes(code))
        return `${name} does not list ${status} ${code}`;
      const keys = Object.keys(asObject(asObject(properties["details"])["properties"]));
      const strange = Object.keys(details).filter((key) => !keys.includes(key));
      return strange.length === 0 ? undefined : `${name} lists no ${strange.join(", ")} in the details of ${code}`;
    },
  };
}
