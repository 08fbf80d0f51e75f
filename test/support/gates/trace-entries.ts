import ts from "typescript5";

interface Insert {
  readonly at: number;
  readonly text: string;
}

/**
 * A source in which every function says when it is entered and left, and when it waits and goes on. What was made by a call
 * of the function around it says so: `__frame1` is the call of the outermost, `__frame2` of one within it.
 */
export function withEntries(file: string, source: string): string {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const inserts: Insert[] = [];
  collect(tree, 0, JSON.stringify(file), inserts);
  // What is inserted at one place keeps its order: an outer end comes behind an inner one.
  return inserts
    .map((insert, order) => ({ ...insert, order }))
    .sort((a, b) => b.at - a.at || b.order - a.order)
    .reduce((text, { at, text: inserted }) => text.slice(0, at) + inserted + text.slice(at), source);
}

const frameOf = (depth: number): string => (depth === 0 ? "undefined" : `__frame${depth}`);

function collect(node: ts.Node, depth: number, file: string, inserts: Insert[]): void {
  if (ts.isFunctionLike(node) && "body" in node && node.body) {
    const body = node.body as ts.Block | ts.Expression;
    ts.forEachChild(node, (child) => {
      if (child !== body) collect(child, depth, file, inserts);
    });
    const frame = frameOf(depth + 1);
    const begin = `const ${frame} = __trace.enter(${file}, ${frameOf(depth)}); try {`;
    const end = `} finally { __trace.leave(${frame}); }`;
    const isBlock = ts.isBlock(body);
    inserts.push({
      at: isBlock ? body.getStart() + 1 : body.getStart(),
      text: isBlock ? begin : `{ ${begin} return (`,
    });
    if (isBlock) ts.forEachChild(body, (child) => collect(child, depth + 1, file, inserts));
    else collect(body, depth + 1, file, inserts);
    inserts.push({ at: isBlock ? body.getEnd() - 1 : body.getEnd(), text: isBlock ? end : `); ${end} }` });
    return;
  }
  const frame = frameOf(depth);
  const waited = depth > 0 && (ts.isAwaitExpression(node) || (ts.isYieldExpression(node) && !node.asteriskToken));
  if (waited && node.expression) {
    inserts.push({ at: node.getStart(), text: `__trace.resume(${frame}, ` });
    inserts.push({ at: node.expression.getStart(), text: `__trace.suspend(${frame}, ` });
    collect(node.expression, depth, file, inserts);
    inserts.push({ at: node.getEnd(), text: "))" });
    return;
  }
  if (depth > 0 && ts.isForOfStatement(node) && node.awaitModifier && ts.isBlock(node.statement)) {
    inserts.push({ at: node.expression.getStart(), text: `__trace.suspend(${frame}, ` });
    collect(node.expression, depth, file, inserts);
    inserts.push({ at: node.expression.getEnd(), text: ")" });
    inserts.push({ at: node.statement.getStart() + 1, text: ` __trace.resume(${frame});` });
    ts.forEachChild(node.statement, (child) => collect(child, depth, file, inserts));
    inserts.push({ at: node.statement.getEnd() - 1, text: `__trace.suspend(${frame}); ` });
    inserts.push({ at: node.getEnd(), text: ` __trace.resume(${frame});` });
    return;
  }
  const isHandler = ts.isBlock(node) && (ts.isCatchClause(node.parent) || isFinally(node));
  if (depth > 0 && isHandler) inserts.push({ at: node.getStart() + 1, text: ` __trace.resume(${frame});` });
  ts.forEachChild(node, (child) => collect(child, depth, file, inserts));
}

const isFinally = (block: ts.Block): boolean => ts.isTryStatement(block.parent) && block.parent.finallyBlock === block;
