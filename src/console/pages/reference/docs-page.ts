import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance } from 'fastify';

/** Only scripts and styles of this host are allowed. Nothing inline, and the page can't be framed. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const PAGE = `<!doctype html>
<html lang="en" id="reference">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tollgate · API reference</title>
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<script src="/docs/static/reference.js"></script>
<script src="/docs/static/swagger-ui-bundle.js" defer></script>
<link rel="stylesheet" href="/docs/static/swagger-ui.css">
<link rel="stylesheet" href="/docs/static/reference.css">
</head>
<body>
<nav class="home"><a href="/">tollgate</a> · <a href="/docs/guide">Guide</a> · <a href="/openapi.json">OpenAPI</a> · <a href="/llms.txt">llms.txt</a></nav>
<noscript><p class="missing">This page needs JavaScript. Without it, read <a href="/llms.txt">/llms.txt</a> or <a href="/openapi.json">/openapi.json</a>.</p></noscript>
<div id="swagger-ui"></div>
</body>
</html>
`;

/** Runs in the head, before the first paint. Swagger UI's dark mode is a class of the root element. */
const SCRIPT = `const dark = matchMedia('(prefers-color-scheme: dark)');
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', paint);
paint();
// Of the fields of its dialog the last one takes the focus, and scrolls the first one out of sight.
document.addEventListener('click', ({ target }) => {
  if (target.closest('.auth-wrapper > .authorize'))
    setTimeout(() => {
      document.querySelector('.auth-container input')?.focus();
      document.querySelector('.modal-ux')?.scrollTo(0, 0);
    });
});
document.addEventListener('DOMContentLoaded', () => {
  SwaggerUIBundle({
    url: '/openapi.json',
    dom_id: '#swagger-ui',
    deepLinking: true,
    // Without the bar that lets one load other documents.
    layout: 'BaseLayout',
    presets: [SwaggerUIBundle.presets.apis],
    docExpansion: 'list',
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    // The default's numbers are too dark to read.
    syntaxHighlight: { theme: 'tomorrow-night' },
    // A key that is kept in the browser is one that others on the machine can read.
    persistAuthorization: false,
  });
});
`;

const JAVASCRIPT = 'text/javascript; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
/** Files of Swagger UI, with their types. */
const FILES = { 'swagger-ui-bundle.js': JAVASCRIPT, 'swagger-ui.css': CSS } as const;

/**
 * The reference as a page at `/docs`, where calls can be tried. It uses only the files of Swagger UI, not the plugin
 * `@fastify/swagger-ui`. The plugin loads a file server, which takes about a tenth of the gateway's start time.
 */
export async function docsPage(server: FastifyInstance): Promise<void> {
  const hidden = { schema: { hide: true } } as const;
  for (const path of ['/docs', '/docs/'])
    server.get(path, hidden, async (_request, reply) =>
      reply.header('content-type', 'text/html; charset=utf-8').header('content-security-policy', POLICY).send(PAGE),
    );
  server.get('/docs/static/reference.js', hidden, async (_request, reply) =>
    reply.header('content-type', JAVASCRIPT).send(SCRIPT),
  );
  server.get('/docs/static/reference.css', hidden, async (_request, reply) => {
    const { DOCS_STYLE } = await import('./docs-style.ts');
    return reply.header('content-type', CSS).send(DOCS_STYLE);
  });
  for (const [name, type] of Object.entries(FILES)) {
    let packed: Promise<Buffer> | null = null;
    server.get(`/docs/static/${name}`, hidden, async (request, reply) => {
      reply
        .header('content-type', type)
        .header('cache-control', 'public, max-age=3600')
        .header('vary', 'accept-encoding');
      if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(await fileOf(name));
      // 1.7 MB become 0.5 MB, compressed once per process.
      packed ??= fileOf(name).then((bytes) => promisify(gzip)(bytes));
      return reply.header('content-encoding', 'gzip').send(await packed);
    });
  }
}

/**
 * A file of Swagger UI from the folder `static` of `@fastify/swagger-ui`. The package documents the folder only as a
 * default of its plugin: test/console/pages/reference/swagger-private-parts.test.ts has the version with which this was
 * checked.
 */
const fileOf = (name: string): Promise<Buffer> =>
  readFile(createRequire(import.meta.url).resolve(`@fastify/swagger-ui/static/${name}`));
