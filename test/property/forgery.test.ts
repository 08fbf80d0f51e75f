/** Changes that a stranger or a liar made: each is turned away for a reason of its own, and nothing else suffers. */
import { describe, expect } from "bun:test";
import { referenceFold } from "../support/oracle/reference-fold.ts";
import { createRng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { createReplicas, expectFold, lacking, open, writeFirstRows } from "../support/worlds/converging-replicas.ts";
import { heal } from "../support/worlds/history.ts";
import type { Forgery, Outcome } from "../support/worlds/replica-port.ts";

/** What becomes of each forgery, as its test is named, and the reasons that may be told together. */
const FORGERIES: { kind: Forgery; outcome: Outcome; family: string; says: string }[] = [
  {
    kind: "stranger",
    outcome: "discounted",
    family: "right",
    says: "[CHANGE-6] [CHANGE-4] a stranger's change is kept in the graph and does not count",
  },
  {
    kind: "acl-without-right",
    outcome: "discounted",
    family: "right",
    says: "[CHANGE-6] [CHANGE-4] a change at an ACL position without the right does not count",
  },
  {
    kind: "foreign-key",
    outcome: "parked",
    family: "key",
    says: "[CHANGE-5] [CHANGE-4] a change under a foreign key waits for the key",
  },
  {
    kind: "unknown-parent",
    outcome: "parked",
    family: "parent",
    says: "[CHANGE-5] [CHANGE-4] a change with an unknown parent waits for it",
  },
  {
    kind: "wrong-lamport",
    outcome: "refused",
    family: "lamport",
    says: "[CHANGE-11] [CHANGE-4] a clock ahead of its parents is refused",
  },
  {
    kind: "low-lamport",
    outcome: "refused",
    family: "lamport",
    says: "[CHANGE-11] [CHANGE-4] a clock behind its parents is refused",
  },
  {
    kind: "broken-chain",
    outcome: "refused",
    family: "chain",
    says: "[CHANGE-11] [CHANGE-4] a break in the writer's chain is refused",
  },
  {
    kind: "bad-signature",
    outcome: "refused",
    family: "signature",
    says: "[CHANGE-1] [CHANGE-4] a wrong signature is refused",
  },
  {
    kind: "bad-bytes",
    outcome: "refused",
    family: "encoding",
    says: "[CHANGE-1] [CHANGE-4] bytes that do not re-encode identically are refused",
  },
  {
    kind: "bad-text",
    outcome: "refused",
    family: "text",
    says: "[CHANGE-1] [CHANGE-4] text that is no UTF-8 is refused",
  },
  {
    kind: "other-space",
    outcome: "refused",
    family: "space",
    says: "[CHANGE-1] [CHANGE-4] another space's change is refused",
  },
];

describe("forged changes", () => {
  for (const { kind, outcome, says } of FORGERIES) {
    rule(
      `${says} (${kind}); nothing else in its batch suffers`,
      async () => {
        using dir = scratchDir("svc-world");
        await using world = await open(dir.path);
        const [base, target] = await createReplicas(world, 2);
        await writeFirstRows([base!, target!]);
        const { packet } = await world.forge(kind, base!);
        const rows = await target!.rowTexts();
        const [verdict] = await target!.ingest([packet]);
        expect(verdict).toMatchObject({ id: packet.id, outcome, reason: expect.any(String) });
        expect(await target!.rowTexts()).toEqual(rows);

        await base!.write([{ id: "before", upsert: true, ops: [{ type: "$set", path: "s", value: "v1" }] }]);
        await base!.write([{ id: "after", upsert: true, ops: [{ type: "$set", path: "s", value: "v2" }] }]);
        const honest = await lacking(base!, target!);
        expect(honest.length).toBeGreaterThanOrEqual(2);
        const verdicts = await target!.ingest([honest[0]!, packet, ...honest.slice(1)]);
        for (const good of honest) expect(verdicts.find((entry) => entry.id === good.id)?.outcome).toBe("applied");
        expect(await target!.rowTexts()).toEqual(await base!.rowTexts());

        await target!.reopen();
        await target!.rebuild();
        expect(await target!.rowTexts()).toEqual(await base!.rowTexts());
        const again = await target!.ingest([packet]);
        expect([outcome, "duplicate"]).toContain(again[0]!.outcome);
        expect(await target!.rowTexts()).toEqual(await base!.rowTexts());
      },
      60_000,
    );
  }

  rule(
    "[CHANGE-4] each is turned away for a reason of its own",
    async () => {
      using dir = scratchDir("svc-world");
      await using world = await open(dir.path);
      const [base, target] = await createReplicas(world, 2);
      await writeFirstRows([base!, target!]);
      const reasonsByFamily = new Map<string, Set<string>>();
      for (const { kind, family } of FORGERIES) {
        const { packet } = await world.forge(kind, base!);
        const [verdict] = await target!.ingest([packet]);
        const reasons = reasonsByFamily.get(family) ?? new Set();
        reasonsByFamily.set(family, reasons.add(verdict!.reason ?? ""));
      }
      const all = [...reasonsByFamily.values()].flatMap((reasons) => [...reasons]);
      expect(all).not.toContain("");
      expect(new Set(all).size).toBe(all.length);
    },
    60_000,
  );

  rule("[CHANGE-5] unknown-parent: it counts as soon as the parent arrives", async () => {
    using dir = scratchDir("svc-world");
    await using world = await open(dir.path);
    const [base, target] = await createReplicas(world, 2);
    await writeFirstRows([base!, target!]);
    const { packet, missing } = await world.forge("unknown-parent", base!);
    await target!.ingest([packet]);
    expect(await target!.parked()).toEqual([packet.id]);
    await target!.reopen();
    expect(await target!.parked()).toEqual([packet.id]); // parked durably
    await target!.ingest([missing!]);
    expect(await target!.parked()).toEqual([]);
    await base!.ingest([missing!, packet]);
    expect(await target!.rowTexts()).toEqual(await base!.rowTexts());
    expectFold(await target!.rowTexts(), referenceFold(await target!.decoded()));
    expect((await target!.decoded()).map((change) => change.id)).toEqual(
      expect.arrayContaining([packet.id, missing!.id]),
    );
  });

  rule("[SYNC-8] same-seq: both changes are kept and folded, everywhere alike, and the fork is seen", async () => {
    using dir = scratchDir("svc-world");
    await using world = await open(dir.path);
    const [base, target] = await createReplicas(world, 2);
    await writeFirstRows([base!, target!]);
    const { packet } = await world.forge("same-seq", base!);
    const [verdict] = await target!.ingest([packet]);
    expect(verdict!.outcome).toBe("applied");
    expect(await target!.forks()).toBe(1);
    await base!.ingest([packet]);
    expect(await base!.forks()).toBe(1);
    expect(await base!.rowTexts()).toEqual(await target!.rowTexts());
    await base!.write([{ id: "r0", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] }]);
    await heal(createRng(1), [base!, target!]);
    expect(await base!.rowTexts()).toEqual(await target!.rowTexts());
    expectFold(await base!.rowTexts(), referenceFold(await base!.decoded()));
  });

  rule("[DATA-4] forged-record-id: on an auto-id dataset nobody creates a record in another's name", async () => {
    using dir = scratchDir("svc-world");
    await using world = await open(dir.path);
    const [base, target] = await createReplicas(world, 2);
    await writeFirstRows([base!, target!]);
    const before = await target!.rowTexts("auto");
    const { packet } = await world.forge("forged-record-id", base!);
    await target!.ingest([packet]);
    expect(await target!.rowTexts("auto")).toEqual(before);
    await base!.ingest([packet]);
    expect(await base!.rowTexts("auto")).toEqual(before);
  });
});
