/** [SEARCH-2] Words as people write them, and what only looks like them. */
import { describe, expect, test } from "bun:test";
import { finds, meets } from "../../../test/support/models/full-text.ts";
import { termExpression } from "./match-expression.ts";
import { MOST_ADJACENT, queryTerms, strictTerm } from "./query-terms.ts";

const FOUND: Record<string, readonly (readonly [text: string, query: string])[]> = {
  "diacritics, ligatures and width": [
    ["Café crème à Besançon", "cafe"],
    ["Cafe creme", "crème"],
    ["Die Straße ist lang", "strasse"],
    ["naïve Bayes", "naive"],
    ["Smørrebrød aus København", "kobenhavn"],
    ["Łódź w Polsce", "lodz"],
    ["İstanbul'da hava", "istanbul"],
    ["ＨＥＬＬＯ　ｗｏｒｌｄ", "hello"],
    ["plain hello", "ＨＥＬＬＯ"],
    ["ﬁne oﬃce", "office"],
    ["Ελληνικά τραγούδια", "ελληνικα"],
    ["ΟΔΟΣ Αθηνών", "οδος"],
    ["Ёлка и берёза", "елка"],
    ["Việt Nam đất nước", "dat nuoc"],
    ["año nuevo", "ANO"],
    ["číslo příští", "pristi"],
    ["Œuvre complète", "oeuvre"],
    ["Grüße aus München", "munchen"],
    ["١٢٣ صفحة", "123"],
    ["e\u0301te\u0301", "été"],
  ],
  Arabic: [
    ["قرأت الكتاب أمس", "كتاب"],
    ["كتاب جديد", "الكتاب"],
    ["ذهبت إلى المدرسة", "مدرسة"],
    ["مُحَمَّد في البيت", "محمد"],
    ["أحمد يعمل في شركة", "احمد"],
    ["مستشفى كبير", "مستشفي"],
    ["السيّارة سريعة", "سيارة"],
    ["القــاهرة مدينة", "القاهرة"],
    ["والطائرة تأخرت", "طائرة"],
    ["بالحاسوب الجديد", "حاسوب"],
    ["اللغة العربية جميلة", "العربية"],
    ["الطبيب في المستشفى", "طبيب"],
    ["سافرنا بالقطار ليلا", "قطار"],
    ["هذا المطعم مغلق", "مطعم"],
    ["اشتريت سيارة حمراء", "حمراء"],
    ["الجامعة بعيدة عن هنا", "جامعة"],
    ["كلب صغير في الحديقة", "حديقة"],
    ["موعد الاجتماع غدا", "اجتماع"],
    ["شربت القهوة صباحا", "قهوة"],
    ["فاتورة الكهرباء مرتفعة", "فاتوره"],
  ],
  Hebrew: [
    ["שָׁלוֹם עולם", "שלום"],
    ["ספרייה גדולה", "ספרייה"],
    ["קראתי עיתון הבוקר", "עיתון"],
    ["צה״ל הודיע", "צהל"],
    ["המחשב החדש יקר", "המחשב"],
    ["ירושלים של זהב", "ירושלים"],
    ["בית חולים", "חולים"],
    ["רכבת מהירה לתל אביב", "אביב"],
    ["חוזה נחתם אתמול", "נחתם"],
    ["המכונית שלי אדומה", "אדומה"],
    ["הכלב ישן בגינה", "ישן"],
    ["חשבונית על שולחן המנהל", "חשבונית"],
    ["מזג אוויר חם", "אוויר"],
    ["ילדים משחקים כדורגל", "כדורגל"],
    ["פגישה דחופה מחר", "דחופה"],
    ["קפה שחור בלי סוכר", "סוכר"],
    ["שדה תעופה סואן", "תעופה"],
    ["מורה טובה לפיזיקה", "מורה"],
    ["ד״ר כהן הגיע", "דר"],
    ["בְּרֵאשִׁית ברא", "בראשית"],
  ],
  "English stems": [
    ["the runners were running", "run"],
    ["a long run", "running"],
    ["databases and caches", "cache"],
    ["one cache", "caches"],
    ["she stopped", "stop"],
    ["stopping distances", "stopped"],
    ["two companies", "company"],
    ["creating documents", "create"],
    ["connected devices", "connect"],
    ["boxes of apples", "box"],
    ["hoping for rain", "hope"],
    ["logs were rotated", "log rotate"],
    ["hashes", "hash"],
    ["updated", "updates"],
    ["searches", "searching"],
    ["messages", "message"],
    ["indexing", "indexes"],
    ["don't panic", "dont"],
    ["the server's name", "server"],
    ["planned", "planning"],
    ["stored in a file", "store"],
    ["one store", "storing"],
    ["two aliases", "alias"],
    ["adding more", "add"],
    ["both databases", "database"],
    ["agreeing on it", "agree"],
  ],
  identifiers: [
    ["call createServer here", "createServer"],
    ["call createServer here", "server"],
    ["call createServer here", "create server"],
    ["uses foo_bar twice", "foo_bar"],
    ["uses foo_bar twice", "bar"],
    ["since v1.4.30 only", "v1.4.30"],
    ["since v1.4.30 only", "1.4.30"],
    ["open /usr/local/bin/node now", "/usr/local/bin/node"],
    ["open /usr/local/bin/node now", "local"],
    ["see https://example.com/docs/search?page=2", "https://example.com/docs/search?page=2"],
    ["see https://example.com/docs/search?page=2", "example.com"],
    ["see https://example.com/docs/search?page=2", "docs"],
    ["mail anna@example.org", "anna@example.org"],
    ["C++ and C#", "c++"],
    ["in lib/createServer.ts", "createserver"],
    ["XMLHttpRequest object", "http"],
    ["@scope/package-name", "package-name"],
    ["a well-known fact", "well known"],
    ["set --max-data=5", "--max-data"],
    ["HTTP_PROXY variable", "http_proxy"],
  ],
  "emoji and symbols": [
    ["party 🎉 tonight", "🎉"],
    ["well done 👍🏽", "👍"],
    ["flag 🇩🇪 up", "🇩🇪"],
    ["family 👨‍👩‍👧 photo", "👨‍👩‍👧"],
    ["heart ❤️ here", "❤"],
    ["price 5€", "€"],
    ["price $5", "$"],
    ["echo $HOME", "$HOME"],
    ["rocket 🚀 launch", "🚀"],
    ["pizza 🍕 night", "🍕"],
    ["coffee ☕ break", "☕"],
    ["snow ❄️ outside", "❄"],
    ["100 ₹ a day", "₹"],
    ["rate ¥ to dollar", "¥"],
    ["left ← there", "←"],
    ["done ✓ all", "✓"],
    ["thumb 👎🏿 down", "👎"],
    ["dog🐕walk", "🐕"],
    ["flag 🇯🇵 of Japan", "🇯🇵"],
    ["日本🍣寿司", "🍣"],
    ["sum ∑ of all", "∑"],
    ["key 🔑 found", "🔑"],
  ],
};

/** Texts and words that only look alike. */
const NOT_FOUND: Record<string, readonly (readonly [text: string, query: string])[]> = {
  "English stems": [
    ["a new car", "news"],
    ["the king", "kin"],
    ["class of 1990", "clas"],
    ["universe", "university"],
    ["organ donors", "organization"],
    ["une université", "universelle"],
    ["Die gute Nacht", "guten"],
    ["el caso", "casar"],
    ["bus stop", "but"],
    ["the sink", "single"],
    ["the thin ice", "thing"],
    ["red bricks", "reed"],
    ["a bed of roses", "being"],
    ["the spring sale", "spr"],
    ["the wing of a bird", "win"],
    ["generally speaking", "generous"],
    ["policy of the house", "police"],
    ["an experiment", "experience"],
    ["authors", "authority"],
    ["a party", "part"],
    ["paste it here", "past"],
    ["in the past", "paste"],
    ["the locales", "local"],
    ["a plane", "plan"],
  ],
  identifiers: [
    ["call createClient here", "createServer"],
    ["uses foo baz", "foo_bar"],
    ["since v1.4.3 only", "v1.4.30"],
    ["open /usr/bin/node", "/usr/local/bin/node"],
    ["see https://example.net/", "example.com"],
    ["C and C", "c++"],
    ["C++ alone", "c#"],
    ["call createServers here", "createServer"],
    ["release 1.4.31", "1.4.30"],
    ["release 11.4.30", "1.4.30"],
    ["mail anna@example.net", "anna@example.org"],
    ["read lib/server.ts", "lib/client.ts"],
    ["set --min-size=5", "--max-data"],
    ["HTTP_PROXIES variable", "http_proxy"],
    ["module foo.bar", "foo.baz"],
    ["uses bar_foo twice", "foo_bar"],
    ["port 8080", "80"],
    ["XMLHttpRequest object", "ttp"],
    ["in getUserId", "userGet"],
    ["#fff0ee as colour", "#fff"],
  ],
};

describe("[SEARCH-2] words in their forms", () => {
  for (const [what, pairs] of Object.entries(FOUND)) {
    test(`${what} are found`, () => {
      for (const [text, query] of pairs) expect([text, query, finds(query, text)]).toEqual([text, query, true]);
    });
  }

  for (const [what, pairs] of Object.entries(NOT_FOUND)) {
    test(`${what}: twenty that only look alike are not found`, () => {
      expect(pairs.length).toBeGreaterThanOrEqual(20);
      for (const [text, query] of pairs) expect([text, query, finds(query, text)]).toEqual([text, query, false]);
    });
  }

  for (const what of ["Arabic", "Hebrew", "diacritics, ligatures and width", "emoji and symbols"]) {
    test(`${what}: twenty words are not found in texts of others`, () => {
      const pairs = FOUND[what]!;
      expect(pairs.length).toBeGreaterThanOrEqual(20);
      for (const [at, [, query]] of pairs.entries()) {
        // Neighbours may have a word in common; what stands ten lines further does not.
        const [text] = pairs[(at + 10) % pairs.length]!;
        expect([text, query, finds(query, text)]).toEqual([text, query, false]);
      }
    });
  }

  test("a change of script is a border", () => {
    expect(finds("iphone", "我的iPhone手机")).toBe(true);
    expect(finds("手机", "我的iPhone手机")).toBe(true);
    expect(finds("タワー", "東京タワーへ")).toBe(true);
  });

  test("phrases, beginnings, and terms that have to be met as they stand", () => {
    expect(finds('"quick brown"', "the quick brown fox")).toBe(true);
    expect(finds('"brown quick"', "the quick brown fox")).toBe(false);
    expect(finds("kubern*", "a Kubernetes cluster")).toBe(true);
    expect(finds("kubern", "a Kubernetes cluster")).toBe(false);
    expect(finds("createSer*", "in lib/createServer.ts")).toBe(true);
    expect(finds("lib/createSer*", "in lib/createServer.ts")).toBe(true);
    expect(finds("https://example.com/do*", "see https://example.com/docs/search")).toBe(true);
    expect(finds("https://example.com/du*", "see https://example.com/docs/search")).toBe(false);
    expect(finds("v1.4*", "since v1.4.30 only")).toBe(true);
    expect(finds('"東京タワー"', "新しい東京タワーに行く")).toBe(true);
    expect(meets(termExpression(strictTerm("人工智能")!), "人工费用与智能手机")).toBe(false);
  });

  test("any text is a valid query", () => {
    const hostile = [
      '"',
      '""',
      "AND OR NOT",
      "NEAR(a b)",
      "a AND",
      "col:x",
      "^a",
      "*",
      "**",
      "(",
      "\u0000",
      "a\u0000b",
      "'; DROP TABLE ft; --",
      "\ud800",
      "-",
      "{a}",
      "+a -b",
      "￿",
      "%",
      "“unbalanced",
      "a".repeat(10_000),
      "\u202e",
      'exact : "a"',
    ];
    for (const query of hostile) expect(() => finds(query, "any text")).not.toThrow();
  });
});

test("[SEARCH-2] a phrase is looked for by its first words, however long it and what it is looked for in are", () => {
  const words = (count: number) =>
    Array.from({ length: count }, (_, n) => `w${String.fromCharCode(97 + n / 26, 97 + (n % 26))}`).join(" ");
  expect(finds(`"${words(40)}"`, `so ${words(40)} it was`)).toBe(true);
  expect(finds(`"${words(40)}"`, `so ${words(MOST_ADJACENT)} and more`)).toBe(true);
  expect(finds(`"${words(40)}"`, `so ${words(MOST_ADJACENT - 1)} and more`)).toBe(false);
  const longest = [`"${"a ".repeat(4_900)}"`, "\u7684\u4e00".repeat(2_000), "a-b_c/".repeat(1_500)].flatMap((query) =>
    queryTerms(query).flatMap((term) => term.map(({ tokens }) => tokens.length)),
  );
  expect(Math.max(...longest)).toBe(MOST_ADJACENT);
});
