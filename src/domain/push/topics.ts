import { bytesToHex, utf8ToBytes } from "../../base/bytes.ts";
import type { AccountId } from "../../base/ids.ts";
import { parseAccountId } from "../../crypto/account-id.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { NotifyMode } from "../../protocol/notify-mode.ts";

/** What a chat is called where nobody is to learn its id: hex sha256 of it. */
export const chatTag = (chatId: string): string => bytesToHex(sha256(utf8ToBytes(chatId)));

const ALL_CHATS = "chats";
const topicOfChat = (chatId: string): string => `${ALL_CHATS}/${chatTag(chatId)}`;
const topicOfOneInChat = (chatId: string, account: string): string => `${topicOfChat(chatId)}/${account}`;

/** The topics an account watches in a space none of whose chats has a mode of its own. */
export function topicsOfSpace(mode: NotifyMode, account: AccountId): string[] {
  switch (mode) {
    case "all":
      return [ALL_CHATS, account];
    case "mentions":
      return [account];
    case "none":
      return [];
  }
}

/** The topics an account watches of one chat, in a space some of whose chats have a mode of their own. */
export function topicsOfChat(mode: NotifyMode, chatId: string, account: AccountId): string[] {
  switch (mode) {
    case "all":
      return [topicOfChat(chatId), topicOfOneInChat(chatId, account)];
    case "mentions":
      return [topicOfOneInChat(chatId, account)];
    case "none":
      return [];
  }
}

/** Every topic by which somebody may wait for a message: those of its chat, and those of each account that it addresses. */
export function topicsOfMessage(chatId: string, mentions: readonly string[]): string[] {
  const addressed = mentions.filter((account) => parseAccountId(account) !== undefined);
  return [
    ALL_CHATS,
    topicOfChat(chatId),
    ...addressed.flatMap((account) => [account, topicOfOneInChat(chatId, account)]),
  ];
}

/** The topics by which an account's own devices hear that it has read a chat. */
export const topicsOfReading = (chatId: string, account: AccountId): string[] => [
  account,
  topicOfOneInChat(chatId, account),
];
