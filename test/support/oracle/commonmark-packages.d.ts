/** As much of the CommonMark project's untyped packages as the tests use. */
declare module "commonmark" {
  export interface Node {
    readonly type: string;
    /** Lines and columns, from 1. */
    readonly sourcepos: readonly [start: readonly [line: number, column: number], end: readonly [number, number]];
    readonly firstChild: Node | null;
    readonly lastChild: Node | null;
    readonly next: Node | null;
    readonly listType: "bullet" | "ordered" | undefined;
  }
  export class Parser {
    parse(markdown: string): Node;
  }
  export class HtmlRenderer {
    render(node: Node): string;
  }
}

declare module "commonmark-spec" {
  export const tests: { readonly markdown: string; readonly section: string; readonly number: number }[];
}
