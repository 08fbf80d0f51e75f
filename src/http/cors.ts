/** Answers a browser's preflight from an allowed origin; `methods` are those of the path. */
export function preflightResponse(request: Request, origin: string, methods: readonly string[]): Response {
  const headers = new Headers({
    "access-control-allow-methods": methods.join(", "),
    "access-control-allow-headers": "Content-Type, Accept, Range",
    "access-control-max-age": "600",
  });
  if (request.headers.get("access-control-request-private-network") === "true") {
    headers.set("access-control-allow-private-network", "true");
  }
  const response = new Response(null, { status: 204, headers });
  addCorsHeaders(response.headers, origin);
  return response;
}

/** Lets the page of an allowed origin read the response. */
export function addCorsHeaders(headers: Headers, origin: string): void {
  headers.set("access-control-allow-origin", origin);
  headers.set("access-control-expose-headers", "X-Request-Id, Content-Range, Content-Disposition, Accept-Ranges");
  headers.append("vary", "Origin");
}
