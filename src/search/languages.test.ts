/** [§17 languages] Text and words in it, by language; a word is not found in the other texts that do not hold it. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { cutText } from "./index-cut.ts";
import { anyOf, termExpression } from "./match-expression.ts";
import { queryTerms, strictTerm } from "./query-terms.ts";

const db = new Database(":memory:");
db.exec("CREATE VIRTUAL TABLE ft USING fts5(exact, words, place, content='', tokenize='ascii')");
const add = db.query("INSERT INTO ft(rowid, exact, words) VALUES(?, ?, ?)");
const match = db.query<{ rowid: number }, [string]>("SELECT rowid FROM ft WHERE ft MATCH ?");

let last = 0;
function index(text: string): number {
  const { exact, words } = cutText(text);
  add.run(++last, exact, words);
  return last;
}
const expressionOf = (query: string): string | undefined => {
  const terms = queryTerms(query);
  return terms.length > 0 ? anyOf(terms.map(termExpression)) : undefined;
};
function finds(query: string, text: string): boolean {
  const id = index(text);
  const expression = expressionOf(query);
  return expression !== undefined && match.all(expression).some(({ rowid }) => rowid === id);
}

/** Texts, each with a word that stands in it and, by its characters, in no other. */
const LANGUAGES: Record<string, readonly (readonly [text: string, word: string])[]> = {
  Chinese: [
    ["我们昨天去了图书馆借书", "图书馆"],
    ["今天的天气非常炎热", "天气"],
    ["他在医院当了三年医生", "医院"],
    ["这家餐厅的麻辣火锅很有名", "火锅"],
    ["北京大学计算机系招收新生", "计算机"],
    ["飞机因为大雾晚点两小时", "飞机"],
    ["请把护照和签证放在一起", "护照"],
    ["春节期间火车票很难买到", "火车票"],
    ["人工智能改变了翻译行业", "人工智能"],
    ["奶奶每天早晨打太极拳", "太极拳"],
    ["公司决定提高员工工资", "工资"],
    ["小猫躲在沙发下面睡觉", "沙发"],
    ["数据库连接超时请重试", "数据库"],
    ["合同必须由双方签字盖章", "合同"],
    ["牛奶和鸡蛋在冰箱里", "冰箱"],
    ["足球比赛推迟到下周六", "足球"],
    ["他弹钢琴弹得非常好听", "钢琴"],
    ["長江三峽大壩是水利工程", "三峽"],
    ["請打開窗戶讓空氣流通", "窗戶"],
    ["月亮围绕地球转动", "地球"],
  ],
  Japanese: [
    ["東京都庁の会議に出席した", "都庁"],
    ["新幹線で京都まで行きました", "新幹線"],
    ["コンピューターを使って仕事をする", "コンピューター"],
    ["毎朝コーヒーを飲みます", "コーヒー"],
    ["図書館で本を借りました", "図書館"],
    ["彼女は病院で働いている", "病院"],
    ["データベースの設計を見直す", "データベース"],
    ["桜の花が満開になった", "桜"],
    ["机の上に鉛筆があります", "鉛筆"],
    ["らーめん屋はとても混んでいた", "らーめん"],
    ["明日の天気予報は雨です", "天気予報"],
    ["サッカーの試合に勝った", "サッカー"],
    ["駅前の銀行は三時に閉まる", "銀行"],
    ["台風で飛行機が欠航した", "飛行機"],
    ["祖母は料理が得意だ", "料理"],
    ["電話番号を教えてください", "電話番号"],
    ["温泉旅館に二泊した", "温泉"],
    ["ﾊﾟｽﾜｰﾄﾞを忘れてしまった", "パスワード"],
    ["冷蔵庫に牛乳がない", "冷蔵庫"],
    ["契約書に署名しました", "契約書"],
  ],
  Thai: [
    ["ฉันไปโรงพยาบาลเมื่อวานนี้", "โรงพยาบาล"],
    ["วันนี้อากาศร้อนมาก", "อากาศ"],
    ["เขากำลังอ่านหนังสือพิมพ์", "หนังสือพิมพ์"],
    ["ร้านนี้ขายก๋วยเตี๋ยวอร่อย", "ก๋วยเตี๋ยว"],
    ["รถไฟจะออกตอนบ่ายสามโมง", "รถไฟ"],
    ["น้ำท่วมถนนหลายสาย", "น้ำท่วม"],
    ["คอมพิวเตอร์เครื่องใหม่ราคาแพง", "คอมพิวเตอร์"],
    ["แม่ทำต้มยำกุ้งให้กิน", "ต้มยำกุ้ง"],
    ["นักเรียนสอบผ่านทุกคน", "นักเรียน"],
    ["ธนาคารปิดวันเสาร์", "ธนาคาร"],
    ["เครื่องบินล่าช้าเพราะพายุ", "เครื่องบิน"],
    ["แมวนอนอยู่บนโซฟา", "แมว"],
    ["เขาเล่นฟุตบอลทุกเย็น", "ฟุตบอล"],
    ["สัญญาต้องลงนามสองฝ่าย", "สัญญา"],
    ["ห้องสมุดมีหนังสือมากมาย", "ห้องสมุด"],
    ["ดอกกุหลาบสีแดงสวย", "กุหลาบ"],
    ["ภูเขาสูงปกคลุมด้วยหิมะ", "ภูเขา"],
    ["ตำรวจจับขโมยได้แล้ว", "ตำรวจ"],
    ["พ่อดื่มกาแฟตอนเช้า", "กาแฟ"],
    ["ภาษาไทยเรียนไม่ยาก", "ภาษา"],
  ],
  Khmer: [
    ["ខ្ញុំទៅមន្ទីរពេទ្យពីម្សិលមិញ", "មន្ទីរពេទ្យ"],
    ["ថ្ងៃនេះអាកាសធាតុក្តៅណាស់", "អាកាសធាតុ"],
    ["គាត់កំពុងអានកាសែត", "កាសែត"],
    ["ភោជនីយដ្ឋាននេះឆ្ងាញ់", "ភោជនីយដ្ឋាន"],
    ["រថភ្លើងចេញដំណើរម៉ោងបី", "រថភ្លើង"],
    ["ទឹកជំនន់លើផ្លូវជាច្រើន", "ទឹកជំនន់"],
    ["កុំព្យូទ័រថ្មីមានតម្លៃថ្លៃ", "កុំព្យូទ័រ"],
    ["ម្តាយធ្វើសម្លរម្ជូរ", "សម្លរ"],
    ["សិស្សទាំងអស់ប្រឡងជាប់", "សិស្ស"],
    ["ធនាគារបិទនៅថ្ងៃសៅរ៍", "ធនាគារ"],
    ["យន្តហោះយឺតដោយសារព្យុះ", "យន្តហោះ"],
    ["ឆ្មាដេកលើសាឡុង", "ឆ្មា"],
    ["គេលេងបាល់ទាត់រាល់ល្ងាច", "បាល់ទាត់"],
    ["កិច្ចសន្យាត្រូវតែចុះហត្ថលេខា", "កិច្ចសន្យា"],
    ["បណ្ណាល័យមានសៀវភៅច្រើន", "បណ្ណាល័យ"],
    ["ផ្កាកុលាបពណ៌ក្រហម", "កុលាប"],
    ["ភ្នំខ្ពស់គ្របដណ្តប់ដោយព្រិល", "ភ្នំ"],
    ["ប៉ូលិសចាប់ចោរបានហើយ", "ប៉ូលិស"],
    ["ឪពុកផឹកកាហ្វេពេលព្រឹក", "កាហ្វេ"],
    ["ភាសាខ្មែររៀនមិនពិបាក", "ភាសា"],
  ],
  Lao: [
    ["ຂ້ອຍໄປໂຮງໝໍມື້ວານນີ້", "ໂຮງໝໍ"],
    ["ມື້ນີ້ອາກາດຮ້ອນຫຼາຍ", "ອາກາດ"],
    ["ລາວກຳລັງອ່ານໜັງສືພິມ", "ໜັງສືພິມ"],
    ["ຮ້ານອາຫານນີ້ແຊບ", "ຮ້ານອາຫານ"],
    ["ລົດໄຟຈະອອກຕອນບ່າຍ", "ລົດໄຟ"],
    ["ນ້ຳຖ້ວມຖະໜົນຫຼາຍສາຍ", "ນ້ຳຖ້ວມ"],
    ["ຄອມພິວເຕີເຄື່ອງໃໝ່ແພງ", "ຄອມພິວເຕີ"],
    ["ແມ່ເຮັດຕຳໝາກຫຸ່ງ", "ໝາກຫຸ່ງ"],
    ["ນັກຮຽນທຸກຄົນສອບເສັງໄດ້", "ນັກຮຽນ"],
    ["ທະນາຄານປິດວັນເສົາ", "ທະນາຄານ"],
    ["ເຮືອບິນຊ້າຍ້ອນພາຍຸ", "ເຮືອບິນ"],
    ["ແມວນອນຢູ່ເທິງຕັ່ງ", "ແມວ"],
    ["ພວກເຂົາຫຼິ້ນບານເຕະ", "ບານເຕະ"],
    ["ສັນຍາຕ້ອງມີລາຍເຊັນ", "ສັນຍາ"],
    ["ຫໍສະໝຸດມີປຶ້ມຫຼວງຫຼາຍ", "ຫໍສະໝຸດ"],
    ["ດອກກຸຫຼາບສີແດງງາມ", "ກຸຫຼາບ"],
    ["ພູເຂົາສູງມີຫິມະ", "ພູເຂົາ"],
    ["ຕຳຫຼວດຈັບໂຈນໄດ້ແລ້ວ", "ຕຳຫຼວດ"],
    ["ພໍ່ດື່ມກາເຟຕອນເຊົ້າ", "ກາເຟ"],
    ["ພາສາລາວຮຽນບໍ່ຍາກ", "ພາສາ"],
  ],
  Burmese: [
    ["မနေ့ကဆေးရုံကိုသွားခဲ့တယ်", "ဆေးရုံ"],
    ["ဒီနေ့ရာသီဥတုပူတယ်", "ရာသီဥတု"],
    ["သူသတင်းစာဖတ်နေတယ်", "သတင်းစာ"],
    ["ဒီစားသောက်ဆိုင်နာမည်ကြီးတယ်", "စားသောက်ဆိုင်"],
    ["ရထားကညနေမှာထွက်မယ်", "ရထား"],
    ["ရေကြီးလို့လမ်းပိတ်တယ်", "ရေကြီး"],
    ["ကွန်ပျူတာအသစ်ဈေးကြီးတယ်", "ကွန်ပျူတာ"],
    ["အမေမုန့်ဟင်းခါးချက်တယ်", "မုန့်ဟင်းခါး"],
    ["ကျောင်းသားအားလုံးစာမေးပွဲအောင်တယ်", "ကျောင်းသား"],
    ["ဘဏ်ကစနေနေ့ပိတ်တယ်", "ဘဏ်"],
    ["လေယာဉ်မုန်တိုင်းကြောင့်နောက်ကျတယ်", "လေယာဉ်"],
    ["ကြောင်ကဆိုဖာပေါ်မှာအိပ်နေတယ်", "ကြောင်"],
    ["သူတို့ဘောလုံးကစားကြတယ်", "ဘောလုံး"],
    ["စာချုပ်ကိုလက်မှတ်ထိုးရမယ်", "စာချုပ်"],
    ["စာကြည့်တိုက်မှာစာအုပ်များတယ်", "စာကြည့်တိုက်"],
    ["နှင်းဆီပန်းနီလှတယ်", "နှင်းဆီ"],
    ["တောင်မြင့်ပေါ်မှာဆီးနှင်းရှိတယ်", "ဆီးနှင်း"],
    ["ရဲကသူခိုးကိုဖမ်းမိပြီ", "သူခိုး"],
    ["အဖေမနက်တိုင်းကော်ဖီသောက်တယ်", "ကော်ဖီ"],
    ["မြန်မာဘာသာစကားသင်ရလွယ်တယ်", "ဘာသာစကား"],
  ],
};

describe("[§17 languages] scripts without spaces", () => {
  for (const [language, pairs] of Object.entries(LANGUAGES)) {
    test(`${language}: twenty words are found in their texts, alone and inside longer runs`, () => {
      expect(pairs).toHaveLength(20);
      for (const [text, word] of pairs) {
        expect([text, word, finds(word, text)]).toEqual([text, word, true]);
        // In other company a dictionary may cut elsewhere.
        const [neighbour] = pairs[(pairs.findIndex(([each]) => each === text) + 5) % pairs.length]!;
        expect([text, word, finds(word, neighbour + text + neighbour)]).toEqual([text, word, true]);
        expect([text, word, finds(`"${word}"`, `x ${text} y`)]).toEqual([text, word, true]);
      }
    });

    test(`${language}: twenty words are not found where they do not stand`, () => {
      let tried = 0;
      pairs.forEach(([, word], index) => {
        const [other] = pairs[(index + 7) % pairs.length]!;
        expect(other.normalize("NFKC")).not.toContain(word);
        expect([other, word, finds(`"${word}"`, other)]).toEqual([other, word, false]);
        tried++;
      });
      expect(tried).toBe(20);
    });
  }
});

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
  "Arabic and Hebrew": [
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
    ["שָׁלוֹם עולם", "שלום"],
    ["ספרייה גדולה", "ספרייה"],
    ["קראתי עיתון הבוקר", "עיתון"],
    ["צה״ל הודיע", "צהל"],
    ["המחשב החדש יקר", "המחשב"],
    ["ירושלים של זהב", "ירושלים"],
    ["בית חולים", "חולים"],
    ["רכבת מהירה לתל אביב", "אביב"],
    ["חוזה נחתם אתמול", "נחתם"],
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
  ],
};

const NOT_FOUND: readonly (readonly [text: string, query: string])[] = [
  ["a new car", "news"],
  ["the king", "kin"],
  ["class of 1990", "clas"],
  ["universe", "university"],
  ["organ donors", "organization"],
  ["une université", "universelle"],
  ["Die gute Nacht", "guten"],
  ["el caso", "casar"],
  ["call createClient here", "createServer"],
  ["uses foo baz", "foo_bar"],
  ["since v1.4.3 only", "v1.4.30"],
  ["open /usr/bin/node", "/usr/local/bin/node"],
  ["see https://example.net/", "example.com"],
  ["C and C", "c++"],
  ["party 🎈 tonight", "🎉"],
  ["flag 🇫🇷 up", "🇩🇪"],
  ["قرأت الجريدة", "كتاب"],
  ["שלום", "עולם"],
  ["Cafeteria", "café"],
  ["bus stop", "but"],
];

describe("[§17 languages] words in their forms", () => {
  for (const [what, pairs] of Object.entries(FOUND)) {
    test(`${what} are found`, () => {
      for (const [text, query] of pairs) expect([text, query, finds(query, text)]).toEqual([text, query, true]);
    });
  }

  test("what is another word is not found", () => {
    for (const [text, query] of NOT_FOUND) expect([text, query, finds(query, text)]).toEqual([text, query, false]);
  });

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
    expect(finds('"東京タワー"', "新しい東京タワーに行く")).toBe(true);
    const expression = termExpression(strictTerm("人工智能")!);
    const id = index("人工费用与智能手机");
    expect(match.all(expression).some(({ rowid }) => rowid === id)).toBe(false);
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
