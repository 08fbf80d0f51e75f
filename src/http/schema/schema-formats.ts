import { FormatRegistry } from "@sinclair/typebox";

/** RFC 3339, section 5.6. TypeBox defines no formats itself and refuses those it does not know. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

FormatRegistry.Set("date-time", (text) => DATE_TIME.test(text) && !Number.isNaN(Date.parse(text)));
