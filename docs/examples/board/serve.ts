/** Serves the page at an origin of its own, which svc has to allow: `SVC_HTTP_ALLOWED_ORIGINS=http://localhost:5173`. */
import page from "./index.html";

const server = Bun.serve({ hostname: "localhost", port: Number(process.env["PORT"] ?? 5173), routes: { "/": page } });
console.log(server.url.origin);
