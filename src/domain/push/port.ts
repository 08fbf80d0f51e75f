import type { SpaceId } from "../../base/ids.ts";
import type { NotifyMode } from "../../protocol/notify-mode.ts";

/** The keys by which a space's members use the push node; all three are of one epoch of the read key. */
export interface SpacePushKeys {
  /** Base58 of the public key that names the space on the node. */
  readonly publicKey: string;
  sign(kind: "push-topics" | "push-message", statement: Uint8Array): Uint8Array;
  readonly encKey: Uint8Array;
  readonly encKeyId: string;
}

/** A space that this account is an active member of. */
export interface PushSpace {
  readonly spaceId: SpaceId;
  readonly mode: NotifyMode;
  /** Modes that chats have of their own, by chat. */
  readonly modeByChat: ReadonlyMap<string, NotifyMode>;
  /** Undefined while the read key is not open here. */
  readonly keys: SpacePushKeys | undefined;
}

/** A message as it stands now. */
interface PushMessage {
  readonly sender: string;
  readonly text: string;
  readonly mentions: readonly string[];
}

/** What push needs to know of the account's spaces. */
export interface PushSpaces {
  active(): PushSpace[];
  /** One of them; undefined when it is none any more. */
  of(spaceId: string): PushSpace | undefined;
  /** Ids of a space's chats that are not deleted. */
  chatsOf(spaceId: SpaceId): Promise<string[]>;
  /** Undefined when it is gone, or the space is. */
  message(spaceId: string, chatId: string, messageId: string): Promise<PushMessage | undefined>;
}
