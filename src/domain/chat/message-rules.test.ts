import { describe, expect, test } from "bun:test";
import { refusalOf } from "../../../test/support/errors-of.ts";
import {
  checkEditedText,
  checkEmoji,
  checkNewMessage,
  deriveMentions,
  MAX_MENTIONS,
  type MessageInput,
} from "./message-rules.ts";

const KIB_32 = 32 << 10;

describe("a message needs text or attachments (CHAT-1)", () => {
  test("either will do", () => {
    expect(checkNewMessage({ text: "hi" })).toEqual({ text: "hi" });
    const attachments = { a: { type: "link", link: "https://x" } };
    expect(checkNewMessage({ attachments })).toEqual({ attachments });
    expect(checkNewMessage({ text: "", attachments, replyToMessageId: "" })).toEqual({ attachments });
  });

  test("neither is chat.text_required", () => {
    for (const input of [{}, { text: "" }, { attachments: {} }, { text: "", attachments: {} }]) {
      expect(refusalOf(() => checkNewMessage(input)).code).toBe("chat.text_required");
    }
    expect(refusalOf(() => checkEditedText("")).code).toBe("chat.text_required");
  });

  test("text has at most 32 KiB of UTF-8", () => {
    expect(checkNewMessage({ text: "é".repeat(KIB_32 / 2) }).text!.length).toBe(KIB_32 / 2);
    for (const run of [
      () => checkNewMessage({ text: `${"é".repeat(KIB_32 / 2)}x` }),
      () => checkEditedText("x".repeat(KIB_32 + 1)),
    ]) {
      expect(refusalOf(run)).toMatchObject({
        code: "request.invalid_field",
        details: { field: "text", limitBytes: KIB_32 },
      });
    }
    expect(checkEditedText("x")).toBe("x");
  });

  test("replyToMessageId has at most 256 bytes and need not exist", () => {
    expect(checkNewMessage({ text: "a", replyToMessageId: "x".repeat(256) }).replyToMessageId).toHaveLength(256);
    expect(refusalOf(() => checkNewMessage({ text: "a", replyToMessageId: "x".repeat(257) }))).toMatchObject({
      code: "request.invalid_field",
      details: { field: "replyToMessageId", limitBytes: 256 },
    });
  });
});

describe("the agent group (CHAT-1)", () => {
  test("is a name, a debug link and a done flag", () => {
    const agent = { name: "bot", debugLink: "https://x", done: false };
    expect(checkNewMessage({ text: "a", agent }).agent).toEqual(agent);
    expect(checkNewMessage({ text: "a", agent: { name: "b", done: true } }).agent).toEqual({ name: "b", done: true });
  });

  const FAULTS: [field: string, agent: unknown][] = [
    ["agent", "bot"],
    ["agent", null],
    ["agent", []],
    ["agent.name", { done: true }],
    ["agent.name", { name: "", done: true }],
    ["agent.name", { name: 5, done: true }],
    ["agent.name", { name: "x".repeat(257), done: true }],
    ["agent.debugLink", { name: "a", debugLink: "", done: true }],
    ["agent.debugLink", { name: "a", debugLink: "x".repeat(2049), done: true }],
    ["agent.debugLink", { name: "a", debugLink: null, done: true }],
    ["agent.done", { name: "a" }],
    ["agent.done", { name: "a", done: "yes" }],
    ["agent.more", { name: "a", done: true, more: 1 }],
  ];
  for (const [field, agent] of FAULTS) {
    test(`chat.agent_invalid names ${field} of ${JSON.stringify(agent)?.slice(0, 40)}`, () => {
      expect(refusalOf(() => checkNewMessage({ text: "a", agent }))).toMatchObject({
        code: "chat.agent_invalid",
        details: { field },
      });
    });
  }
});

describe("attachments (CHAT-1)", () => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`id-${index}`, { type: "image", link: "l" }]));

  test("up to 32 of an open type", () => {
    expect(Object.keys(checkNewMessage({ attachments: many(32) }).attachments!)).toHaveLength(32);
    const longest = { ["x".repeat(64)]: { type: "y".repeat(64), link: "z".repeat(2048) } };
    expect(checkNewMessage({ attachments: longest }).attachments).toEqual(longest);
  });

  const FAULTS: [field: string, attachments: unknown][] = [
    ["attachments", many(33)],
    ["attachments", []],
    ["attachments", "x"],
    ["attachments", { "": { type: "a", link: "b" } }],
    ["attachments", { "a.b": { type: "a", link: "b" } }],
    ["attachments", { ["x".repeat(65)]: { type: "a", link: "b" } }],
    ["attachments", JSON.parse('{"__proto__": {"type": "a", "link": "b"}}')],
    ["attachments.a", { a: null }],
    ["attachments.a.type", { a: { link: "b" } }],
    ["attachments.a.type", { a: { type: "x".repeat(65), link: "b" } }],
    ["attachments.a.link", { a: { type: "a" } }],
    ["attachments.a.link", { a: { type: "a", link: "" } }],
    ["attachments.a.link", { a: { type: "a", link: "x".repeat(2049) } }],
    ["attachments.a.name", { a: { type: "a", link: "b", name: "c" } }],
  ];
  for (const [field, attachments] of FAULTS) {
    test(`request.invalid_field names ${field} of ${JSON.stringify(attachments).slice(0, 40)}`, () => {
      const input: MessageInput = { text: "a", attachments };
      expect(refusalOf(() => checkNewMessage(input))).toMatchObject({
        code: "request.invalid_field",
        details: { field },
      });
    });
  }
});

describe("reactions (CHAT-1)", () => {
  test("are emoji of at most 64 bytes", () => {
    for (const emoji of ["👍", "👩‍👩‍👧‍👦", "*️⃣", "+1", "x".repeat(64)]) expect(checkEmoji(emoji)).toBe(emoji);
    for (const emoji of ["", "x".repeat(65), "a.b", ".", "*", "__proto__"]) {
      expect(refusalOf(() => checkEmoji(emoji))).toMatchObject({
        code: "request.invalid_field",
        details: { field: "emoji" },
      });
    }
  });
});

describe("mentions are derived (CHAT-2)", () => {
  const link = (identity: string) => `[@x](svc://m/space1/${identity})`;

  test("from links in the text, once each and in order", () => {
    expect(deriveMentions(`${link("Ab")} and svc://m/s/Ac, ${link("Ab")}.`)).toEqual(["Ab", "Ac"]);
    expect(deriveMentions("svc://m/s svc://object svc://m//Ab svc://m/s/ svc://x/s/Ab")).toEqual([]);
    expect(deriveMentions(`svc://m/s/${"A".repeat(200)}`)).toEqual([]);
  });

  test("and from the message replied to", () => {
    expect(deriveMentions("hi", "Ab")).toEqual(["Ab"]);
    expect(deriveMentions(link("Ab"), "Ab")).toEqual(["Ab"]);
  });

  test("at most 64, the replied-to author among them", () => {
    const text = Array.from({ length: 100 }, (_, index) => link(`A${index}`)).join(" ");
    expect(deriveMentions(text)).toHaveLength(MAX_MENTIONS);
    const withReply = deriveMentions(text, "Z");
    expect(withReply).toHaveLength(MAX_MENTIONS);
    expect(withReply.at(-1)).toBe("Z");
    expect(deriveMentions(text, "A99").filter((identity) => identity === "A99")).toHaveLength(1);
  });

  test("in linear time", () => {
    expect(deriveMentions("svc://m/".repeat(4096))).toEqual([]);
    expect(deriveMentions(`svc://m/${"a".repeat(32_000)}`)).toEqual([]);
  });
});
