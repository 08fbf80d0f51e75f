/**
 * What a program finds besides the language: the host API. Only texts cross the border, in both directions. The host
 * never touches an object of the program, so it never meets a getter, proxy or prototype of it.
 *
 * Evaluates to `{settle, run}`. `settle(n, ok, json)` answers a call, `run(module, args, context)` starts the program.
 */
export const GUEST_PRELUDE = `
(function (hostCall, hostDone) {
  "use strict";
  const { stringify, parse } = JSON;
  const { create, freeze, defineProperty } = Object;
  const PromiseOf = Promise;
  const then = Promise.prototype.then;
  const apply = Reflect.apply;
  const ErrorOf = Error;
  const TextOf = String;
  const pending = create(null);
  let next = 0;

  function toInput(name, input) {
    const text = stringify(input === undefined ? {} : input);
    if (text === undefined) throw new TypeError(name + " takes an object of JSON");
    return text;
  }
  function call(name, input) {
    return new PromiseOf((resolve, reject) => {
      const text = toInput(name, input);
      const n = next++;
      pending[n] = { resolve, reject };
      hostCall(n, name, text);
    });
  }
  function errorOf({ code, message, details }) {
    const error = new ErrorOf(message);
    defineProperty(error, "code", { value: code, enumerable: true });
    if (details !== undefined) defineProperty(error, "details", { value: details, enumerable: true });
    return error;
  }
  function settle(n, ok, json) {
    const one = pending[n];
    if (one === undefined) return;
    delete pending[n];
    const value = json === "" ? undefined : parse(json);
    if (ok) one.resolve(value);
    else one.reject(errorOf(value));
  }
  function describe(thrown) {
    try {
      if (typeof thrown === "object" && thrown !== null) {
        const { name, message, code, stack } = thrown;
        const head = TextOf(name === undefined ? "Error" : name) + ": " + TextOf(message);
        return stringify({ head, code: code === undefined ? "" : TextOf(code), stack: TextOf(stack === undefined ? "" : stack) });
      }
      return stringify({ head: TextOf(thrown), code: "", stack: "" });
    } catch (again) {
      if (again instanceof ErrorOf && again.message === "out of memory")
        return '{"head":"InternalError: out of memory","code":"","stack":""}';
      return '{"head":"the program threw what cannot be shown","code":"","stack":""}';
    }
  }
  function start(module, args, context) {
    const main = module.default !== undefined ? module.default : module.main !== undefined ? module.main : globalThis[mainKey];
    if (typeof main !== "function") throw new TypeError("a program exports a function: export default async function main(args, ctx)");
    return main(args, context);
  }
  function run(module, args, context) {
    const ctx = parse(context);
    ctx.signal = freeze({ aborted: false });
    const given = parse(args);
    const started = apply(then, module, [(loaded) => start(loaded, given, ctx)]);
    const ended = apply(then, started, [(value) => {
      const text = stringify(value === undefined ? null : value);
      if (text === undefined) throw new TypeError("a program returns JSON");
      return text;
    }]);
    apply(then, ended, [(text) => hostDone(true, text), (thrown) => hostDone(false, describe(thrown))]);
  }

  const mainKey = Symbol.for("svc.main");
  const group = (prefix, names) => {
    const functions = {};
    for (const name of names) functions[name] = (input) => call(prefix + name, input);
    return functions;
  };
  const globals = {
    svc: {
      ...group("svc.", ["query", "aggregate", "search", "get", "create", "modify", "upsert", "deleteRecords"]),
      chat: group("svc.chat.", ["send", "edit"]),
      editor: group("svc.editor.", ["read", "append"]),
      files: group("svc.files.", ["read"]),
    },
    events: group("events.", ["publish"]),
    llm: group("llm.", ["chat"]),
    http: group("http.", ["fetch"]),
    log: (...parts) => {
      const text = [];
      for (const part of parts) text.push(typeof part === "string" ? part : stringify(part));
      const input = stringify(text.join(" "));
      hostCall(next++, "log", input);
    },
  };
  for (const name of Object.keys(globals))
    defineProperty(globalThis, name, { value: globals[name], writable: true, configurable: true });
  return { settle, run };
})
`;

/** Makes `main` known even when it is declared but not exported. It follows the source, so line numbers stay right. */
export const GUEST_EPILOGUE = `\n;globalThis[Symbol.for("svc.main")] = typeof main === "undefined" ? undefined : main;`;
