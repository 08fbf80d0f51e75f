/** Validates answers against the documented schema of their status (ajv, JSON Schema 2020-12). */

import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { clip, type Reply } from "../server/client.ts";
import type { ApiDocument, Operation } from "./openapi.ts";

export interface ResponseCheck {
  /** What is wrong with the answer; undefined when it is as documented. */
  faultOf(operation: Operation, reply: Reply): string | undefined;
}

export function createResponseCheck(document: ApiDocument): ResponseCheck {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
  addFormats(ajv);
  ajv.addSchema(document.root as object, "api");
  const validators = new Map<string, ValidateFunction>();

  const validatorOf = (operation: Operation, status: number): ValidateFunction => {
    const key = `${operation.method} ${operation.path} ${status}`;
    const known = validators.get(key);
    if (known) return known;
    const validator = ajv.compile({ $ref: `api#${pointerTo(operation, status)}` });
    validators.set(key, validator);
    return validator;
  };

  return {
    faultOf: (operation, reply) => {
      if (reply.status >= 500 && reply.status !== 501 && reply.status !== 503)
        return `${reply.status}: ${clip(reply.text)}`;
      const documented = operation.responses.get(reply.status);
      if (!documented) return `undocumented status ${reply.status}: ${clip(reply.text, 200)}`;
      if (documented.schema === null) {
        return reply.text === "" || documented.stream
          ? undefined
          : `${reply.status} has an undocumented body: ${clip(reply.text, 200)}`;
      }
      if (reply.json === undefined) return `${reply.status} is no JSON: ${clip(reply.text, 200)}`;
      const validate = validatorOf(operation, reply.status);
      if (validate(reply.json)) return undefined;
      return `${reply.status} does not validate: ${ajv.errorsText(validate.errors, { dataVar: "body" })}: ${clip(reply.text, 300)}`;
    },
  };
}

function pointerTo(operation: Operation, status: number): string {
  const responses = operation.raw["responses"] as Record<string, { $ref?: string; content?: Record<string, unknown> }>;
  const response = responses[String(status)]!;
  const pointerToken = (token: string): string => encodeURIComponent(token.replaceAll("~", "~0").replaceAll("/", "~1"));
  if (response.$ref !== undefined)
    return `${response.$ref.slice(1)}/content/${pointerToken("application/json")}/schema`;
  const type = Object.keys(response.content ?? {}).find((name) => name.startsWith("application/json"))!;
  return `/paths/${pointerToken(operation.path)}/${operation.method.toLowerCase()}/responses/${status}/content/${pointerToken(type)}/schema`;
}
