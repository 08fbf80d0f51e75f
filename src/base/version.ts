import { version } from "../../package.json";

export const PRODUCT_VERSION: string = version;
/** What `GET /v1/health`, `svc version` and the device row say (SRV-8). */
export const VERSION_STRING = `svc v${version} (sdk v${version})`;
