/** The product's name and versions, as `GET /v1/health` and `svc version` show them (spec § 9). */
export const PRODUCT_NAME = "svc";
export const PRODUCT_VERSION = "0.1.0";
export const SDK_VERSION = "0.1.0";

/** `<name> v<semver> (sdk v<semver>)`. */
export const VERSION_TEXT = `${PRODUCT_NAME} v${PRODUCT_VERSION} (sdk v${SDK_VERSION})`;
