import type { Route } from "./route.ts";
import { accountRoutes } from "./routes/account.ts";
import { aclRoutes } from "./routes/acl.ts";
import { aggregateRoutes } from "./routes/aggregates.ts";
import { authRoutes } from "./routes/auth.ts";
import { bundleRoutes } from "./routes/bundles.ts";
import { chatRoutes } from "./routes/chat.ts";
import { datasetRoutes } from "./routes/datasets.ts";
import { debugRoutes } from "./routes/debug.ts";
import { deviceRoutes } from "./routes/devices.ts";
import { editorRoutes } from "./routes/editor.ts";
import { eventRoutes } from "./routes/events.ts";
import { fileRoutes } from "./routes/files.ts";
import { healthRoutes } from "./routes/health.ts";
import { historyRoutes } from "./routes/history.ts";
import { identityRoutes } from "./routes/identities.ts";
import { inviteRoutes } from "./routes/invites.ts";
import { memberRoutes } from "./routes/members.ts";
import { networkRoutes } from "./routes/network.ts";
import { objectRoutes } from "./routes/objects.ts";
import { oneToOneRoutes } from "./routes/one-to-one.ts";
import { processRoutes } from "./routes/processes.ts";
import { propertyRoutes } from "./routes/properties.ts";
import { pushRoutes } from "./routes/push.ts";
import { recordRoutes } from "./routes/records.ts";
import { searchRoutes } from "./routes/search.ts";
import { shutdownRoutes } from "./routes/shutdown.ts";
import { spaceRoutes } from "./routes/spaces.ts";
import { streamRoutes } from "./routes/streams.ts";
import { syncRoutes } from "./routes/sync.ts";
import { typeRoutes } from "./routes/types.ts";
import { windowRoutes } from "./routes/windows.ts";

/** Every route of the main API, in the order in which the documentation lists them. One line per resource. */
export const ROUTES: readonly Route[] = [
  ...healthRoutes,
  ...shutdownRoutes,
  ...authRoutes,
  ...accountRoutes,
  ...identityRoutes,
  ...deviceRoutes,
  ...pushRoutes,
  ...eventRoutes,
  ...streamRoutes,
  ...processRoutes,
  ...spaceRoutes,
  ...datasetRoutes,
  ...typeRoutes,
  ...propertyRoutes,
  ...objectRoutes,
  ...bundleRoutes,
  ...recordRoutes,
  ...windowRoutes,
  ...aggregateRoutes,
  ...historyRoutes,
  ...searchRoutes,
  ...editorRoutes,
  ...chatRoutes,
  ...fileRoutes,
  ...memberRoutes,
  ...inviteRoutes,
  ...aclRoutes,
  ...oneToOneRoutes,
  ...syncRoutes,
  ...debugRoutes,
  ...networkRoutes,
];
