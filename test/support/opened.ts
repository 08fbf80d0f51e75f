import { afterEach } from "bun:test";

/** What the tests of a group open; it is closed, the last first, when the test that opened it ends. */
export function useOpened() {
  const opened: AsyncDisposable[] = [];
  afterEach(async () => {
    for (const resource of opened.splice(0).reverse()) await resource[Symbol.asyncDispose]();
  });
  return function keep<T extends AsyncDisposable>(resource: T): T {
    opened.push(resource);
    return resource;
  };
}
