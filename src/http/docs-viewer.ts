import { swagger } from "@elysiajs/swagger";
import { Elysia } from "elysia";

/** The documentation page, split into the parts that a strict content security policy demands. */
export interface DocsViewer {
  readonly html: string;
  /** The page's only own script: it starts the viewer. */
  readonly start: string;
}

export interface DocsViewerPaths {
  /** The URL of the description. */
  readonly description: string;
  readonly viewerScript: string;
  readonly viewerStyle: string;
  readonly start: string;
}

/**
 * Renders the page with the swagger plugin. The plugin's Swagger UI provider can take its style from a given path, but it
 * loads the viewer from a CDN and starts it with an inline script: both are moved to `paths`. The plugin's Scalar
 * provider could use a local viewer unchanged, but that viewer contacts its maker's hosts. The plugin's own OpenAPI 3.0.3
 * document is dropped with the instance that would serve it. Throws if the plugin's page is not the one known here.
 */
export async function renderDocsViewer(paths: DocsViewerPaths): Promise<DocsViewer> {
  // `url` takes precedence over the plugin's own URL, which is relative and breaks below `/swagger/`.
  const swaggerOptions = {
    url: paths.description,
    deepLinking: true,
    docExpansion: "list" as const,
    defaultModelsExpandDepth: 0,
    tryItOutEnabled: true,
    validatorUrl: "none",
  };
  const app = new Elysia().use(
    swagger({
      provider: "swagger-ui",
      path: "/swagger",
      theme: paths.viewerStyle,
      autoDarkMode: true,
      documentation: { info: { title: "svc API", description: "Interface of the workspace server", version: "1" } },
      swaggerOptions,
    }),
  );
  const response = await app.handle(new Request("http://localhost/swagger"));
  const page = await response.text();
  const start = /<script>([^<]*SwaggerUIBundle\([^<]*)<\/script>/.exec(page)?.[1];
  if (start === undefined) throw new Error("the swagger plugin's page starts its viewer in an unknown way");
  let html = replaceOnce(page, /<script>[^<]*<\/script>/, `<script src="${paths.start}"></script>`);
  html = replaceOnce(html, /<script src="https:[^"]*" crossorigin>/, `<script src="${paths.viewerScript}">`);
  // No icon is better than a request for one, which would get 404.
  html = replaceOnce(html, /<\/head>/, '    <link rel="icon" href="data:," />\n</head>');
  if (/https?:/.test(html + start)) throw new Error("the swagger plugin's page refers to another host");
  return { html, start };
}

function replaceOnce(page: string, pattern: RegExp, replacement: string): string {
  const pieces = page.split(pattern);
  if (pieces.length !== 2) throw new Error(`the swagger plugin's page has ${pieces.length - 1} of ${pattern}`);
  return pieces.join(replacement);
}
