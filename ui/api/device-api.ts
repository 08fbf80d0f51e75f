import { call } from "./api-client.ts";

export interface Device {
  peerId: string;
  name?: string;
  os?: string;
  version?: string;
  /** The apps installed on the device, by slug. */
  apps?: Record<string, Record<string, string | number | boolean>>;
  activeClaims?: Record<string, { seq?: number; at?: number }>;
}

export interface DeviceList {
  devices: Device[];
  /** Peer id of the device that is active for an app, by slug. */
  active?: Record<string, string>;
  self: string;
}

export const deviceApi = {
  list: () => call<DeviceList>("GET", "/v1/devices"),
  rename: (name: string) => call<void>("PUT", "/v1/devices/me", { name }),
  install: (app: string) => call<void>("PUT", "/v1/devices/me", { apps: { [app]: {} } }),
  uninstall: (app: string) => call<void>("PUT", "/v1/devices/me", { apps: { [app]: null } }),
  activate: (app: string) => call<void>("POST", "/v1/devices/activate", { app }),
  prune: (peerId: string) => call<void>("DELETE", `/v1/devices/${encodeURIComponent(peerId)}`),
};
