/** The CommonMark project's own examples and reference renderer, as an independent judge of what markdown means. */
import { HtmlRenderer, type Node, Parser } from "commonmark";
import { tests } from "commonmark-spec";

const parser = new Parser();
const renderer = new HtmlRenderer();

/** The examples of the specification, 652 of them. */
export const EXAMPLES: readonly { readonly markdown: string; readonly number: number }[] = tests;

/** A top-level node, or an item of a top-level list, with the lines it takes (from 1) and its HTML. */
export interface HtmlUnit {
  readonly first: number;
  readonly last: number;
  readonly html: string;
}

/**
 * What a document shows, top to bottom. Lists are seen as runs of items, so whether an item is loose and where its list
 * begins to count (which depend on the items around it) are left out.
 */
export function htmlUnits(markdown: string): HtmlUnit[] {
  const units: HtmlUnit[] = [];
  for (const node of children(parser.parse(markdown))) {
    if (node.type !== "list") units.push({ ...linesOf(node), html: renderer.render(node) });
    else {
      for (const item of children(node)) {
        const html = children(item).map((child) => renderer.render(child));
        units.push({
          ...linesOf(item),
          html: `${node.listType} ${html.join("").replace(/<\/?p>|\n| start="\d+"/g, "")}`,
        });
      }
    }
  }
  return units;
}

function children(node: Node): Node[] {
  const list: Node[] = [];
  for (let child = node.firstChild; child; child = child.next) list.push(child);
  return list;
}

function linesOf(node: Node): { first: number; last: number } {
  return { first: node.sourcepos[0][0], last: lastLine(node) };
}

/** Of the last leaf: a container's own end counts blank lines after it. */
function lastLine(node: Node): number {
  const isLeaf = node.lastChild === null || node.type === "paragraph" || node.type === "heading";
  return isLeaf ? node.sourcepos[1][0] : Math.max(node.sourcepos[0][0], lastLine(node.lastChild!));
}
