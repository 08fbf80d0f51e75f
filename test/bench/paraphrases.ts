/** Sentences, and how somebody who knows none of their words would ask for them, in several languages. */
export interface Paraphrase {
  readonly text: string;
  /** Shares no word with the text that carries its meaning. */
  readonly asked: Readonly<Record<"English" | "German" | "Spanish" | "Chinese" | "Japanese", string>>;
}

export const PARAPHRASES: readonly Paraphrase[] = [
  {
    text: "The cat sleeps on the sofa.",
    asked: {
      English: "a feline pet is resting on a couch",
      German: "Die Katze schläft auf dem Sofa",
      Spanish: "El gato duerme en el sillón",
      Chinese: "猫在沙发上睡觉",
      Japanese: "猫がソファで寝ている",
    },
  },
  {
    text: "Invoices are paid within thirty days.",
    asked: {
      English: "deadline to settle what one owes a supplier",
      German: "Rechnungen werden innerhalb eines Monats bezahlt",
      Spanish: "Las facturas se pagan en un mes",
      Chinese: "发票在一个月内付款",
      Japanese: "請求書は一か月以内に支払われる",
    },
  },
  {
    text: "How to bake sourdough bread",
    asked: {
      English: "making a loaf rise without commercial yeast",
      German: "Wie man Sauerteigbrot backt",
      Spanish: "Cómo hornear pan de masa madre",
      Chinese: "如何烤酸面包",
      Japanese: "サワードウパンの焼き方",
    },
  },
  {
    text: "Upgrading the database cluster",
    asked: {
      English: "moving SQL servers to a newer version",
      German: "Aktualisierung der Datenbankserver",
      Spanish: "Actualización de los servidores de datos",
      Chinese: "升级数据库集群",
      Japanese: "データベースクラスタの更新",
    },
  },
  {
    text: "The choir sings on Sunday.",
    asked: {
      English: "a group performing songs together at the weekend",
      German: "Der Chor tritt am Sonntag auf",
      Spanish: "El coro canta el domingo",
      Chinese: "合唱团星期天唱歌",
      Japanese: "合唱団は日曜日に歌う",
    },
  },
  {
    text: "The flight was delayed by fog.",
    asked: {
      English: "our plane took off late because of bad weather",
      German: "Das Flugzeug hatte wegen Nebels Verspätung",
      Spanish: "El avión se retrasó por la niebla",
      Chinese: "航班因大雾延误",
      Japanese: "霧で飛行機が遅れた",
    },
  },
  {
    text: "Keep this medicine out of reach of children.",
    asked: {
      English: "store drugs where kids cannot get them",
      German: "Arznei für Kinder unzugänglich aufbewahren",
      Spanish: "Mantenga el medicamento lejos de los niños",
      Chinese: "请将药品放在儿童接触不到的地方",
      Japanese: "薬は子供の手の届かない所に保管してください",
    },
  },
  {
    text: "The password was reset yesterday.",
    asked: {
      English: "new login credentials were set up a day ago",
      German: "Das Kennwort wurde gestern zurückgesetzt",
      Spanish: "La contraseña se restableció ayer",
      Chinese: "密码昨天被重置了",
      Japanese: "パスワードは昨日リセットされた",
    },
  },
  {
    text: "The museum is closed on Mondays.",
    asked: {
      English: "which weekday can the exhibition not be visited",
      German: "Montags ist die Ausstellung geschlossen",
      Spanish: "La galería cierra los lunes",
      Chinese: "博物馆星期一闭馆",
      Japanese: "美術館は月曜日に休館です",
    },
  },
  {
    text: "She won the race by two seconds.",
    asked: {
      English: "a runner finished first, narrowly ahead of the others",
      German: "Die Läuferin siegte mit knappem Vorsprung",
      Spanish: "Ganó la carrera por muy poco",
      Chinese: "她以两秒优势赢得了比赛",
      Japanese: "彼女は二秒差でレースに勝った",
    },
  },
  {
    text: "Rent is due on the first of the month.",
    asked: {
      English: "when do tenants have to pay their landlord",
      German: "Die Miete ist am Monatsanfang fällig",
      Spanish: "El alquiler se paga a principios de mes",
      Chinese: "房租每月一号支付",
      Japanese: "家賃は毎月一日に支払う",
    },
  },
  {
    text: "The battery lasts about ten hours.",
    asked: {
      English: "how long it runs without being plugged in",
      German: "Der Akku hält ungefähr einen Arbeitstag",
      Spanish: "La pila dura unas diez horas",
      Chinese: "电池可以使用大约十个小时",
      Japanese: "電池は約十時間もつ",
    },
  },
];
