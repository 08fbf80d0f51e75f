import { expect, test } from "bun:test";
import { LIMITS } from "./limits.ts";

test("[API-8] the numbers that the interface promises are those of the table", () => {
  expect(LIMITS).toMatchObject({
    bodyBytes: 1 << 20,
    bodyDepth: 128,
    chatTextBytes: 32 << 10,
    eventDataBytes: 64 << 10,
    patternsPerSpace: 100,
    historyPageDefault: 50,
    historyPageMax: 200,
    historyViewRecords: 10_000,
    historyViewBytes: 8 << 20,
    drainMs: 10_000,
    keepaliveMs: 25_000,
    mailboxCapacityDefault: 256,
    mailboxCapacityMin: 16,
    driftBudgetPercentDefault: 30,
    forwarderCapacity: 16,
    filterNodes: 200,
    filterDepth: 32,
    filterListEntries: 1_000,
    regexChars: 1_000,
    groupLimitDefault: 50_000,
    accumArrayLimitDefault: 10_000,
    memoryLimitBytesDefault: 256 << 20,
    upsertPageDefault: 500,
    recordBytes: 1 << 20,
    sealedChangeBytes: 512 << 10,
    changeParents: 64,
    inlineFileBytes: 4_096,
    streamSubscriptions: 256,
    subscriptionIdChars: 64,
  });
});
