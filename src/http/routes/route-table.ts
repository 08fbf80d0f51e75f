import type { Route } from "../route.ts";
import { accountRoutes } from "./account.ts";
import { aclRoutes } from "./acl.ts";
import { aggregateRoutes } from "./aggregates.ts";
import { authRoutes } from "./auth.ts";
import { bundleRoutes } from "./bundles.ts";
import { chatRoutes } from "./chat.ts";
import { datasetRoutes } from "./datasets.ts";
import { debugRoutes } from "./debug.ts";
import { deviceRoutes } from "./devices.ts";
import { editorRoutes } from "./editor.ts";
import { eventRoutes } from "./events.ts";
import { fileRoutes } from "./files.ts";
import { healthRoutes } from "./health.ts";
import { historyRoutes } from "./history.ts";
import { identityRoutes } from "./identities.ts";
import { inviteRoutes } from "./invites.ts";
import { memberRoutes } from "./members.ts";
import { networkRoutes } from "./network.ts";
import { objectRoutes } from "./objects.ts";
import { oneToOneRoutes } from "./one-to-one.ts";
import { processRoutes } from "./processes.ts";
import { propertyRoutes } from "./properties.ts";
import { pushRoutes } from "./push.ts";
import { recordRoutes } from "./records.ts";
import { searchRoutes } from "./search.ts";
import { shutdownRoutes } from "./shutdown.ts";
import { spaceRoutes } from "./spaces.ts";
import { streamRoutes } from "./streams.ts";
import { syncRoutes } from "./sync.ts";
import { typeRoutes } from "./types.ts";
import { windowRoutes } from "./windows.ts";

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
