/**
 * `bun run push-demo`: a push node on 127.0.0.1:7100 in front of servers that speak FCM and APNs, those of the tests. Each
 * notification is printed as the provider saw it, and as the phone opens it with the keys of its own server
 * (`--phone URL`, by default http://127.0.0.1:7004). `--pid FILE` holds the process to be ended.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type NotificationData, openNotification } from "../../../docs/push/decoder.ts";
import { startPushNode } from "../../../src/push-node/push-node.ts";
import { apnsCredentials, startFakeApns } from "./fake-apns.ts";
import { startFakeFcm } from "./fake-fcm.ts";

const { values } = parseArgs({
  options: {
    addr: { type: "string", default: "127.0.0.1:7100" },
    phone: { type: "string", default: "http://127.0.0.1:7004" },
    pid: { type: "string" },
  },
});

if (values.pid !== undefined) writeFileSync(values.pid, `${process.pid}\n`);

const LOOK_MS = 100;
const directory = mkdtempSync(join(tmpdir(), "svc-push-demo-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));

const fcm = startFakeFcm();
const apns = await startFakeApns();
const { keyPem, keyId, teamId, topic } = apnsCredentials;
writeFileSync(join(directory, "apns.p8"), keyPem);
writeFileSync(join(directory, "service-account.json"), JSON.stringify(fcm.account));
writeFileSync(
  join(directory, "node.yaml"),
  `listen: { addr: "${values.addr}" }
state: { file: push-node.db }
fcm: { serviceAccountFile: service-account.json, baseUrl: "${fcm.url}" }
apns: { keyFile: apns.p8, keyId: ${keyId}, teamId: ${teamId}, topic: ${topic}, productionUrl: "${apns.url}", sandboxUrl: "${apns.url}" }
`,
);
const node = await startPushNode({ configFile: join(directory, "node.yaml"), quiet: true });
console.log(`push node on http://${node.address}; FCM is played by ${fcm.url}, APNs by ${apns.url}`);
process.on("SIGINT", () => process.exit(0)).on("SIGTERM", () => process.exit(0));

for (let [android, ios] = [0, 0]; ; await Bun.sleep(LOOK_MS)) {
  for (; android < fcm.accepted.length; android++) {
    const { message } = fcm.accepted[android]!;
    await show("FCM", message.token, message, message.data as unknown as NotificationData);
  }
  for (; ios < apns.accepted.length; ios++) {
    const { token, payload } = apns.accepted[ios]!;
    await show("APNs", token, payload, payload);
  }
}

async function show(provider: string, token: string, seen: object, data: NotificationData): Promise<void> {
  const shortened = JSON.stringify(seen, (name, value) =>
    name === "sealed" ? `${String(value).slice(0, 24)}…` : value,
  );
  const opened = openNotification(data, await keysOfPhone());
  console.log(`\n${provider}, for the token ${token}, saw  ${shortened}`);
  console.log(`the phone opens  ${opened ? JSON.stringify(opened) : "nothing: it has no key of that id"}`);
}

/** The keys that an app keeps from the rows of its spaces. */
async function keysOfPhone(): Promise<Map<string, string>> {
  const keys = new Map<string, string>();
  const response = await fetch(`${values.phone}/v1/spaces?status=all`).catch(() => undefined);
  const rows = response?.ok ? ((await response.json()) as { push?: { encKey: string; encKeyId: string } }[]) : [];
  for (const { push } of rows) if (push) keys.set(push.encKeyId, push.encKey);
  return keys;
}
