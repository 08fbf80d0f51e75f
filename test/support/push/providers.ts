/** The providers that push nodes deliver to, and who is woken through them. */
import { until } from "../server/client.ts";
import { type FakeApns, startFakeApns } from "./fake-apns.ts";
import { type FakeFcm, startFakeFcm } from "./fake-fcm.ts";
import type { NodeOptions, PushNode } from "./node.ts";
import { type PushAccount, pushAccount, spaceKeyOf } from "./push-account.ts";

export interface Providers extends AsyncDisposable {
  readonly fcm: FakeFcm;
  /** Knows no token of Apple's other environment, which knows those alone that begin with `5a`. */
  readonly apns: FakeApns;
  /** Has a node deliver to all of them. */
  readonly options: NodeOptions;
  arrivals(token: string): number;
  untilArrived(token: string, count?: number, timeoutMs?: number): Promise<void>;
}

export async function startProviders(): Promise<Providers> {
  const ofSandbox = (token: string) => token.startsWith("5a");
  const fcm = startFakeFcm();
  const apns = await startFakeApns((token) => !ofSandbox(token));
  const sandbox = await startFakeApns(ofSandbox);
  const arrivals = (token: string): number => fcm.of(token).length + apns.of(token).length + sandbox.of(token).length;
  return {
    fcm,
    apns,
    options: { fcm, apns: { url: apns.url, sandboxUrl: sandbox.url } },
    arrivals,
    untilArrived: (token, count = 1, timeoutMs = 10_000) =>
      until(() => arrivals(token) >= count, `${count} notifications for ${token}`, timeoutMs),
    async [Symbol.asyncDispose]() {
      await apns[Symbol.asyncDispose]();
      await sandbox[Symbol.asyncDispose]();
      fcm[Symbol.dispose]();
    },
  };
}

export const accountAt = ({ url }: PushNode, name: string): PushAccount => pushAccount(url, name);

/** A watcher with a token, and a sender in one space of theirs. */
export async function pairAt(node: PushNode, name: string, platform: "ios" | "android", token: string) {
  const space = spaceKeyOf(name);
  const watcher = accountAt(node, `${name} watcher`);
  const sender = accountAt(node, `${name} sender`);
  await watcher.register(platform, token);
  await watcher.watch(space, ["chats", watcher.id]);
  return { space, watcher, sender };
}
