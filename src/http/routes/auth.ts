import { AuthBody, AuthResult, AuthStatus } from "../../protocol/meta.ts";
import { openRoute, type Route } from "../route.ts";

const EXAMPLE_ACCOUNT = "A5dZ6hL1nKpQ8rT3uVwXyZ2aBcDeFgHjKmNpQrStUvWxYz12";

export const authRoutes: Route[] = [
  openRoute({
    method: "GET",
    path: "/v1/auth",
    id: "getAuthStatus",
    tag: "Authentication",
    summary: "Whether an account is open, and the local wallets",
    responses: {
      200: {
        description: "The state",
        schema: AuthStatus,
        example: { authorized: false, accounts: [{ id: EXAMPLE_ACCOUNT, default: true }] },
      },
    },
    handler: async ({ host }) => {
      const accounts = await host.listAccounts();
      const engine = host.engine;
      return engine ? { authorized: true, accountId: engine.accountId, accounts } : { authorized: false, accounts };
    },
  }),
  openRoute({
    method: "POST",
    path: "/v1/auth",
    id: "authorize",
    tag: "Authentication",
    summary: "Generate, restore or select an account",
    description: [
      "`{}` generates a new account and returns its mnemonic, once. `{mnemonic, index?}` restores one.",
      "`{accountId}` selects a wallet of the data root. `passkey` opens an encrypted wallet, or encrypts the new one.",
      "The engine boots in place; a server that already has an account refuses.",
    ].join(" "),
    body: AuthBody,
    example: {},
    responses: {
      200: {
        description: "The account is open",
        schema: AuthResult,
        example: {
          accountId: EXAMPLE_ACCOUNT,
          created: true,
          mnemonic: "legal winner thank year wave sausage worth useful legal winner thank yellow",
        },
      },
    },
    errors: [
      "auth.bad_mnemonic",
      "auth.mnemonic_mismatch",
      "auth.account_not_found",
      "auth.account_in_use",
      "auth.already_authorized",
      "auth.passkey_required",
      "auth.passkey_wrong",
    ],
    handler: async ({ host, body }) => host.authorize(body),
  }),
];
