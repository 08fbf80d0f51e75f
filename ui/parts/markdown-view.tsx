/** Renders markdown for reading. None of it becomes HTML: raw HTML is shown as text, and no image is fetched. */
import { lexer, type MarkedToken, type Token, type Tokens } from "marked";
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { href } from "../state/router.ts";
import { readLinkTarget } from "./link-target.ts";

export interface MarkdownViewProps {
  text: string;
  /** The space to which links to objects lead. */
  spaceId: string;
}

export function MarkdownView({ text, spaceId }: MarkdownViewProps) {
  const tokens = useMemo(() => lexer(text, { gfm: true }), [text]);
  return <div class="prose">{renderAll(tokens, spaceId)}</div>;
}

function renderAll(tokens: readonly Token[] | undefined, spaceId: string): ComponentChildren {
  return tokens?.map((token, index) => <Piece key={index} token={token as MarkedToken} spaceId={spaceId} />);
}

interface PieceProps {
  token: MarkedToken;
  spaceId: string;
}

function Piece({ token, spaceId }: PieceProps): VNode | null {
  const inner = (tokens: readonly Token[] | undefined) => renderAll(tokens, spaceId);
  switch (token.type) {
    case "paragraph":
      return <p>{inner(token.tokens)}</p>;
    case "heading":
      return <Heading depth={token.depth}>{inner(token.tokens)}</Heading>;
    case "text":
      return <>{token.tokens ? inner(token.tokens) : unescapeEntities(token.text)}</>;
    case "escape":
      return <>{token.text}</>;
    case "strong":
      return <strong>{inner(token.tokens)}</strong>;
    case "em":
      return <em>{inner(token.tokens)}</em>;
    case "del":
      return <del>{inner(token.tokens)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "code":
      return (
        <pre>
          <code>{token.text}</code>
        </pre>
      );
    case "blockquote":
      return <blockquote>{inner(token.tokens)}</blockquote>;
    case "list":
      return <List token={token} spaceId={spaceId} />;
    case "table":
      return <Table token={token} spaceId={spaceId} />;
    case "link":
      return <SafeLink target={token.href} spaceId={spaceId} content={inner(token.tokens)} />;
    case "image":
      return <SafeLink target={token.href} spaceId={spaceId} content={`🖼 ${token.text || token.href}`} />;
    case "br":
      return <br />;
    case "hr":
      return <hr />;
    case "html":
      return token.block ? <pre class="faint">{token.text}</pre> : <code class="faint">{token.text}</code>;
    default:
      return null;
  }
}

function Heading({ depth, children }: { depth: number; children: ComponentChildren }) {
  // The page has its own h1 and h2, so headings of the document start below them.
  const Tag = `h${Math.min(depth + 1, 6)}` as "h2";
  return <Tag class={`level-${depth}`}>{children}</Tag>;
}

function List({ token, spaceId }: { token: Tokens.List; spaceId: string }) {
  const items = token.items.map((item, index) => (
    <li key={index} {...(item.task ? { class: "task" } : {})}>
      {renderAll(item.tokens.map(toChecklistToken), spaceId)}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function toChecklistToken(token: Token): Token {
  if (token.type !== "checkbox") return token;
  return { type: "text", raw: token.raw, text: (token as Tokens.Checkbox).checked ? "☑ " : "☐ " };
}

function Table({ token, spaceId }: { token: Tokens.Table; spaceId: string }) {
  return (
    <div class="table-frame">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, index) => (
              <th key={index}>{renderAll(cell.tokens, spaceId)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{renderAll(cell.tokens, spaceId)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SafeLink(props: { target: string; spaceId: string; content: ComponentChildren }) {
  const to = readLinkTarget(props.target);
  if (to === undefined) return <span title={props.target}>{props.content}</span>;
  if ("objectId" in to) return <a href={href("spaces", props.spaceId, "objects", to.objectId)}>{props.content}</a>;
  return (
    <a href={to.url} target="_blank" rel="noopener noreferrer">
      {props.content}
    </a>
  );
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0" };

/** Markdown allows HTML entities, and the lexer leaves them unchanged. */
function unescapeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|(\w+));/g, (whole, code: string | undefined, name: string | undefined) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const point = Number(code);
    return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
}
