/**
 * A document edited on several replicas at once. Once everybody has everything, all show the same markdown, and no block
 * is lost that nobody deleted.
 */
import { describe, expect } from "bun:test";
import type { DatasetRules } from "../../src/change/codec/dataset-rules.ts";
import type { WriteTx } from "../../src/change/space-engine.ts";
import { CONTINUATION } from "../../src/domain/editor/block.ts";
import { foldLineEnds } from "../../src/domain/editor/block-split.ts";
import { EDITOR_DATASET, EDITOR_RULES } from "../../src/domain/editor/editor-rules.ts";
import { createEditorService, type EditorService } from "../../src/domain/editor/editor-service.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { LONG_BLOCKS, longBlock } from "../support/long-documents.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { createAccount } from "../support/worlds/acl-world.ts";
import { createOpenGenesis, deliver, type OpenEngine, openEngine } from "../support/worlds/open-engine.ts";

const OBJECTS: DatasetRules = { name: "objects", idRule: "object" };
const DOCUMENTS = rounds(5);
const firstSeed = runSeed("documents");

interface Replica {
  engine: OpenEngine;
  editor: EditorService;
  /** Blocks that this replica made, and those it deleted. */
  made: Set<string>;
  deleted: Set<string>;
}

const WORDS = ["alpha", "beta", "gamma", "delta", "epsilon"];
const paragraph = (rng: Rng): string =>
  rng.pick([
    () => `${rng.pick(WORDS)} ${rng.int(0, 999)}`,
    () => `# ${rng.pick(WORDS)} ${rng.int(0, 99)}`,
    () => `- ${rng.pick(WORDS)} ${rng.int(0, 99)}`,
    () => `\`\`\`js\nlet ${rng.pick(WORDS)} = ${rng.int(0, 9)};\n\`\`\``,
    () => `> ${rng.pick(WORDS)}`,
  ])();

async function edit(rng: Rng, { editor, made, deleted }: Replica, objectId: string): Promise<void> {
  const content = editor.markdown(objectId);
  const parts = content.split("\n\n");
  const at = rng.int(0, parts.length);
  const act = rng.pick(["append", "insert", "change", "delete", "move"]);
  if (act === "append") return note(await editor.append(objectId, paragraph(rng)));
  if (act === "insert") parts.splice(at, 0, paragraph(rng));
  else if (act === "change") parts[Math.min(at, parts.length - 1)] = paragraph(rng);
  else if (act === "delete") parts.splice(Math.min(at, parts.length - 1), 1);
  else parts.push(...parts.splice(0, 1));
  note(await editor.put(objectId, parts.join("\n\n")));

  function note(result: { inserted: string[]; deleted: string[] }): void {
    for (const id of result.inserted) made.add(id);
    for (const id of result.deleted) deleted.add(id);
  }
}

const blockRecords = ({ engine }: Pick<Replica, "engine">, objectId: string) => {
  const collectionId = engine.collectionIdOf(engine.object(objectId)!, EDITOR_DATASET);
  const docs = collectionId === undefined ? [] : engine.store.rows.docs(collectionId);
  return docs.map((text) => JSON.parse(text) as { id: string; nav: { parentId: string } });
};

const liveBlocks = (replica: Pick<Replica, "engine">, objectId: string): Set<string> =>
  new Set(blockRecords(replica, objectId).map(({ id }) => id));

const openEditor = (engine: OpenEngine, rng: Rng): EditorService =>
  createEditorService({
    engine,
    events: engine.events,
    requireWriter: () => {},
    attachType: () => {},
    random: () => rng.next(),
  });

const newDocument = (tx: WriteTx): string => {
  const object = tx.createObject();
  const value = "d";
  tx.append(
    object,
    { dataset: "objects", records: [{ id: "", upsert: true, ops: [{ type: "$set", path: "svc.name", value }] }] },
    OBJECTS,
  );
  return object.idText;
};

async function runDocument(seed: number): Promise<void> {
  const rng = createRng(seed);
  using dir = scratchDir("svc-documents");
  const space = createOpenGenesis();
  let now = 1_760_000_000_000;
  const replicas = Array.from({ length: rng.int(2, 3) }, (_, index): Replica => {
    const engine = openEngine(dir.path, `r${index}`, space, createAccount(), [OBJECTS, EDITOR_RULES], () => now++);
    const editor = openEditor(engine, rng);
    return { engine, editor, made: new Set(), deleted: new Set() };
  });
  try {
    const [first] = replicas;
    const objectId = await first!.engine.write(newDocument);
    const shuffle = <T>(items: readonly T[]): T[] => rng.shuffle(items);
    for (const other of replicas.slice(1)) await deliver(first!.engine, other.engine, shuffle);

    for (let step = 0; step < 40; step++) {
      await edit(rng, rng.pick(replicas), objectId);
      if (rng.chance(0.15)) {
        const [from, to] = rng.shuffle(replicas);
        await deliver(from!.engine, to!.engine, shuffle);
      }
    }
    for (let round = 0; round < 2; round++)
      for (const from of replicas)
        for (const to of replicas) if (from !== to) await deliver(from.engine, to.engine, shuffle);

    const shown = replicas.map(({ editor }) => editor.markdown(objectId));
    for (const content of shown) expect(content).toBe(shown[0]!);
    const deleted = new Set(replicas.flatMap((replica) => [...replica.deleted]));
    const made = replicas.flatMap((replica) => [...replica.made]);
    for (const replica of replicas) {
      const live = liveBlocks(replica, objectId);
      expect(made.filter((id) => !deleted.has(id) && !live.has(id))).toEqual([]);
      expect([...live].filter((id) => deleted.has(id))).toEqual([]);
    }
    // What is shown is a document like any other: putting it back writes nothing.
    const again = await first!.editor.put(objectId, shown[0]!);
    expect([again.inserted, again.updated, again.deleted]).toEqual([[], [], []]);
  } catch (error) {
    console.error(`SEED=${seed} ROUNDS=1`);
    throw error;
  } finally {
    for (const { engine, editor } of replicas) {
      editor.close();
      await engine.close();
    }
  }
}

describe("documents", () => {
  for (let i = 0; i < DOCUMENTS; i++) {
    const seed = (firstSeed + i) >>> 0;
    rule(
      `[CHANGE-2] document ${i}: concurrent edits converge and no block is lost that nobody deleted`,
      () => runDocument(seed),
      60_000,
    );
  }

  rule("[EDIT-2] a large document that is put behind other writes of a batch is written once, and whole", async () => {
    const rng = createRng(firstSeed);
    using dir = scratchDir("svc-large-document");
    const engine = openEngine(dir.path, "r", createOpenGenesis(), createAccount(), [OBJECTS, EDITOR_RULES], Date.now);
    const editor = openEditor(engine, rng);
    const objectId = await engine.write(newDocument);
    const content = (word: string) => Array.from({ length: 3_000 }, (_, at) => `${word} ${at}`).join("\n\n");
    for (const [word, before] of [
      ["alpha", 0],
      ["beta", 3_000],
    ] as const) {
      const [other, result] = await Promise.all([engine.write(newDocument), editor.put(objectId, content(word))]);
      expect(engine.object(other)).toBeDefined();
      expect([result.inserted.length, result.updated.length + result.deleted.length]).toEqual(
        before === 0 ? [3_000, 0] : [0, 3_000],
      );
      expect(editor.markdown(objectId)).toBe(content(word));
      expect(liveBlocks({ engine }, objectId).size).toBe(3_000);
    }
    await engine.rebuildProjection();
    expect(liveBlocks({ engine }, objectId).size).toBe(3_000);
    editor.close();
    await engine.close();
  });

  for (let i = 0; i < Math.min(DOCUMENTS, 6); i++) {
    const seed = (firstSeed + i) >>> 0;
    rule(
      `[EDIT-7] long block ${i}: two devices that edit different stretches of it keep both edits`,
      () => editOneBlockTwice(seed),
      60_000,
    );
  }

  for (let i = 0; i < Math.min(DOCUMENTS, 4); i++) {
    const seed = (firstSeed + i) >>> 0;
    rule(
      `[EDIT-7] long document ${i}: whatever is put is shown, and no continuation is left without its block`,
      () => rewriteLongDocument(seed),
      180_000,
    );
  }

  rule(
    "[API-15] other work goes on while a long document is planned, and what was written meanwhile is planned for",
    async () => {
      const rng = createRng(firstSeed);
      using dir = scratchDir("svc-planned-ahead");
      const engine = openEngine(dir.path, "r", createOpenGenesis(), createAccount(), [OBJECTS, EDITOR_RULES], Date.now);
      const editor = openEditor(engine, rng);
      const objectId = await engine.write(newDocument);
      const content = (word: string) => Array.from({ length: 10_000 }, (_, at) => `${word} number ${at}`).join("\n\n");
      expect((await editor.put(objectId, content("alpha"))).inserted.length).toBe(10_000);
      const put = editor.put(objectId, content("beta"));
      let turns = 0;
      const goesOn = () => {
        turns++;
        if (turns < 4) setImmediate(goesOn);
      };
      setImmediate(goesOn);
      const appended = await editor.append(objectId, "meanwhile");
      expect(turns).toBeGreaterThan(2);
      expect((await put).deleted).toContain(appended.inserted[0]!);
      expect(editor.markdown(objectId) === content("beta")).toBe(true);
      // Behind another write of its batch it is run a second time.
      const [, again] = await Promise.all([engine.write(newDocument), editor.put(objectId, content("gamma"))]);
      expect(again.updated.length).toBe(10_000);
      expect(editor.markdown(objectId) === content("gamma")).toBe(true);
      expect(liveBlocks({ engine }, objectId).size).toBe(10_000);
      editor.close();
      await engine.close();
    },
  );

  rule(
    "[EDIT-7] continuations that go on nothing, on each other or on themselves show nowhere and stop nothing",
    async () => {
      const rng = createRng(firstSeed);
      using dir = scratchDir("svc-stray-continuations");
      const engine = openEngine(dir.path, "r", createOpenGenesis(), createAccount(), [OBJECTS, EDITOR_RULES], Date.now);
      const editor = openEditor(engine, rng);
      const objectId = await engine.write(newDocument);
      const { inserted } = await editor.put(objectId, "one\n\ntwo\n");
      const [one] = inserted;
      const stray = (parentId: string, fields: JsonObject): Promise<string> =>
        engine.write((tx) => {
          const nav = { parentId, pos: rng.pick(["a0", "a0", "zz", "\u0000"]) };
          const value = { type: CONTINUATION, ...fields, nav };
          const ops = [{ type: "$set" as const, path: "", value }];
          const body = { dataset: EDITOR_DATASET, records: [{ id: "", upsert: true, ops }] };
          return tx.append(tx.object(objectId)!, body, EDITOR_RULES).recordIds[0]!;
        });
      const lost = await stray("nobody", { text: "lost", source: "lost" });
      await stray(lost, { text: "deeper" });
      const self = await stray("nobody", { text: "self" });
      await editor.patchBlock(objectId, self, { "nav.parentId": self }, []);
      expect(editor.markdown(objectId)).toBe("one\n\ntwo\n");

      // What goes on a block is the block's, whatever it holds; a source that no longer fits gives way to the text.
      await stray(one!, { text: " and more" });
      await stray(one!, {});
      await stray(one!, { source: "\n\n# no heading\n\n" });
      const shown = editor.markdown(objectId);
      expect(shown).toBe("one and more\n\ntwo\n");
      expect(await editor.put(objectId, shown)).toEqual({ inserted: [], updated: [], deleted: [], unchanged: 2 });
      const put = await editor.put(objectId, "one more\n\ntwo\n");
      expect(put).toEqual({ inserted: [], updated: [one!], deleted: [], unchanged: 1 });
      expect(editor.markdown(objectId)).toBe("one more\n\ntwo\n");
      // One that stands at the top is a block of a type that nobody knows.
      await editor.patchBlock(objectId, lost, { "nav.parentId": "", "nav.pos": "zzz" }, []);
      expect(editor.markdown(objectId)).toContain("two\n\nlostdeeper");
      editor.close();
      await engine.close();
    },
  );
});

/** Two replicas insert a word each, far from each other, into one block of several records. */
async function editOneBlockTwice(seed: number): Promise<void> {
  const rng = createRng(seed);
  using dir = scratchDir("svc-long-block");
  const space = createOpenGenesis();
  const [first, second] = ["a", "b"].map((name) => {
    const engine = openEngine(dir.path, name, space, createAccount(), [OBJECTS, EDITOR_RULES], Date.now);
    return { engine, editor: openEditor(engine, rng) };
  }) as [Pick<Replica, "engine" | "editor">, Pick<Replica, "engine" | "editor">];
  const shuffle = <T>(items: readonly T[]): T[] => rng.shuffle(items);
  try {
    const objectId = await first.engine.write(newDocument);
    const line = () => `${rng.pick(["", " "])}${rng.int(0, 1e9)} é`;
    const lines = Array.from({ length: 60_000 }, line);
    const quote = rng.chance(0.5);
    const textOf = (all: readonly string[]) =>
      `# before\n\n${quote ? all.map((text) => `>${text}`).join("\n") : `\`\`\`\n${all.join("\n")}\n\`\`\``}\n\nafter\n`;
    await first.editor.put(objectId, textOf(lines));
    const blocks = liveBlocks(first, objectId).size;
    expect(blocks).toBeGreaterThan(6);
    await deliver(first.engine, second.engine, shuffle);
    expect(second.editor.markdown(objectId)).toBe(textOf(lines));

    const places = [rng.int(0, 9_000), rng.int(30_000, 59_000)];
    const edited = (at: number) => lines.with(at, `${lines[at]} edited`);
    for (const [index, { editor }] of rng.shuffle([first, second]).entries()) {
      const result = await editor.put(objectId, textOf(edited(places[index]!)));
      expect([result.inserted, result.updated.length, result.deleted]).toEqual([[], 1, []]);
    }
    await deliver(first.engine, second.engine, shuffle);
    await deliver(second.engine, first.engine, shuffle);
    const both = textOf(places.reduce((all, at) => all.with(at, `${lines[at]} edited`), lines));
    for (const { editor } of [first, second]) expect(editor.markdown(objectId) === both).toBe(true);

    // Shortened to what one record has room for, it is one record.
    await first.editor.put(objectId, textOf(lines.slice(0, 10)));
    expect(liveBlocks(first, objectId).size).toBe(3);
    await deliver(first.engine, second.engine, shuffle);
    expect(second.editor.markdown(objectId)).toBe(textOf(lines.slice(0, 10)));
  } catch (error) {
    console.error(`SEED=${seed} ROUNDS=1`);
    throw error;
  } finally {
    for (const { engine, editor } of [first, second]) {
      editor.close();
      await engine.close();
    }
  }
}

/** Puts texts with blocks of all lengths, each made from the one before by cutting, repeating and inserting. */
async function rewriteLongDocument(seed: number): Promise<void> {
  const rng = createRng(seed);
  using dir = scratchDir("svc-rewritten");
  const engine = openEngine(dir.path, "r", createOpenGenesis(), createAccount(), [OBJECTS, EDITOR_RULES], Date.now);
  const editor = openEditor(engine, rng);
  try {
    const objectId = await engine.write(newDocument);
    let text = "";
    for (let step = 0; step < 12; step++) {
      const [from, to] = [rng.int(0, text.length), rng.int(0, text.length)].sort((a, b) => a - b) as [number, number];
      const kept = rng.chance(0.5) ? text.slice(from, to) : text.slice(0, from) + text.slice(to);
      const added = longBlock(rng, rng.pick(LONG_BLOCKS), rng.pick([200, 200_000, 600_000]));
      const at = rng.int(0, kept.length);
      const separator = rng.pick(["", "\n\n", "\n\n\n"]);
      const content = [kept.slice(0, at), added, kept.slice(at)]
        .join(separator)
        .slice(0, 1 << 20)
        .toWellFormed();
      text = foldLineEnds(content);
      await editor.put(objectId, content);
      expect(editor.markdown(objectId) === text).toBe(true);
      const rows = blockRecords({ engine }, objectId);
      const top = new Set(rows.flatMap(({ id, nav }) => (nav.parentId === "" ? [id] : [])));
      expect(rows.filter(({ nav }) => nav.parentId !== "" && !top.has(nav.parentId))).toEqual([]);
      expect(await editor.put(objectId, text)).toEqual({ inserted: [], updated: [], deleted: [], unchanged: top.size });
    }
    const shown = editor.markdown(objectId);
    await engine.rebuildProjection();
    const again = openEditor(engine, rng);
    expect(again.markdown(objectId) === shown).toBe(true);
    again.close();
  } catch (error) {
    console.error(`SEED=${seed} ROUNDS=1`);
    throw error;
  } finally {
    editor.close();
    await engine.close();
  }
}
