/** Which messages somebody is notified of: in a space (its settings) and in one chat (`chat.notifyMode`). */
export const NOTIFY_MODES = ["all", "mentions", "none"] as const;
export type NotifyMode = (typeof NOTIFY_MODES)[number];
