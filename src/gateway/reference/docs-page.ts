import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { ICON } from './icon.ts';

/** Scripts and styles from this host only; nothing inline, nothing from elsewhere, in no frame. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/** Pages of Swagger UI are made for wide windows, and for the light. */
const VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1">';
const HOME = '<p class="tollgate-home"><a href="/">tollgate</a> · <a href="/openapi.json">OpenAPI</a> · <a href="/llms.txt">llms.txt</a></p>';

const STYLE = `
:root { color-scheme: light dark; }
html { scroll-behavior: auto; }
body { margin: 0; background: #fafaf8; }
.tollgate-home { max-width: 1040px; margin: 0 auto; padding: 16px 20px 0; font: 15px/1.5 system-ui, sans-serif; color: #5b6b62; }
.tollgate-home a { color: #1f7a4d; }
.swagger-ui { font-family: system-ui, sans-serif; max-width: 1080px; margin: 0 auto; }
.swagger-ui .info { margin: 40px 0 24px; }
.swagger-ui .info .title { font-family: system-ui, sans-serif; letter-spacing: -0.02em; color: #14281d; }
.swagger-ui .info .title small.version-stamp { background: #1f7a4d; }
.swagger-ui .info .title small { background: #5b6b62; }
.swagger-ui .scheme-container { background: transparent; box-shadow: none; padding: 0 0 8px; }
.swagger-ui .scheme-container .servers-title, .swagger-ui .scheme-container .servers { display: none; }
.swagger-ui .opblock-tag { font-family: system-ui, sans-serif; color: #14281d; border-bottom-color: #dfe5e1; }
.swagger-ui .opblock { box-shadow: none; border-radius: 8px; }
.swagger-ui .btn.authorize { color: #1f7a4d; border-color: #1f7a4d; }
.swagger-ui .btn.authorize svg { fill: #1f7a4d; }
.swagger-ui .btn.execute { background: #1f7a4d; border-color: #1f7a4d; }
.swagger-ui .markdown code, .swagger-ui .renderedMarkdown code { color: #14281d; background: rgba(31, 122, 77, .1); }
.swagger-ui a.nostyle, .swagger-ui .info a, .swagger-ui .markdown a { color: #1f7a4d; }
/* Authorize opens with the bearer field in sight. */
.swagger-ui .dialog-ux .modal-ux { max-height: 90vh; overflow: auto; top: 5vh; transform: translate(-50%, 0); }
.swagger-ui .dialog-ux .modal-ux-content { max-height: none; }
@media (max-width: 800px) {
  .swagger-ui .wrapper { padding: 0 12px; }
  .swagger-ui .info { margin: 20px 0; }
  .swagger-ui .info .title { font-size: 26px; }
  .swagger-ui .opblock-tag { flex-wrap: wrap; font-size: 20px; }
  .swagger-ui .opblock-tag small { flex-basis: 100%; padding: 4px 0; }
  .swagger-ui .opblock .opblock-summary { flex-wrap: wrap; }
  .swagger-ui .opblock .opblock-summary-path { max-width: none; word-break: break-all; font-size: 14px; }
  .swagger-ui .opblock .opblock-summary-description { flex-basis: 100%; padding: 4px 0 0; }
  .swagger-ui .dialog-ux .modal-ux { width: 94vw; min-width: 0; }
  .swagger-ui table.parameters, .swagger-ui table.parameters tbody, .swagger-ui .parameters tr, .swagger-ui .parameters td { display: block; width: 100%; }
  .swagger-ui .parameters thead { display: none; }
  .swagger-ui .parameters-col_description input, .swagger-ui .parameters-col_description select, .swagger-ui textarea { max-width: 100%; width: 100%; }
  .swagger-ui .responses-inner, .swagger-ui .opblock-section { overflow-x: auto; }
}
@media (prefers-color-scheme: dark) {
  body { background: #101813; }
  .tollgate-home { color: #9db0a4; }
  .tollgate-home a, .swagger-ui .info a, .swagger-ui .markdown a { color: #6fcf97; }
  .swagger-ui, .swagger-ui .info .title, .swagger-ui .info p, .swagger-ui .info li, .swagger-ui .opblock-tag, .swagger-ui .opblock-tag small,
  .swagger-ui .opblock .opblock-summary-path, .swagger-ui .opblock .opblock-summary-description, .swagger-ui .opblock-description-wrapper p,
  .swagger-ui .opblock-section-header h4, .swagger-ui .opblock-section-header > label, .swagger-ui .tab li, .swagger-ui .tab li button.tablinks,
  .swagger-ui .parameter__name, .swagger-ui .parameter__type, .swagger-ui .parameter__in, .swagger-ui table thead tr th, .swagger-ui table thead tr td,
  .swagger-ui .response-col_status, .swagger-ui .response-col_links, .swagger-ui .responses-inner h4, .swagger-ui .responses-inner h5,
  .swagger-ui .model, .swagger-ui .model-title, .swagger-ui section.models h4, .swagger-ui .prop-type, .swagger-ui .markdown p, .swagger-ui .markdown li,
  .swagger-ui .renderedMarkdown p, .swagger-ui .dialog-ux .modal-ux-header h3, .swagger-ui .dialog-ux .modal-ux-content p, .swagger-ui .dialog-ux .modal-ux-content h4,
  .swagger-ui .auth-container h4, .swagger-ui .auth-container label, .swagger-ui .scopes h2, .swagger-ui .btn, .swagger-ui label, .swagger-ui .json-schema-2020-12__title,
  .swagger-ui .json-schema-2020-12-property .json-schema-2020-12__title, .swagger-ui .json-schema-2020-12-keyword__name { color: #e8efe9; }
  .swagger-ui .parameter__in, .swagger-ui .opblock-tag small, .swagger-ui .json-schema-2020-12-keyword__value { color: #9db0a4; }
  .swagger-ui .opblock .opblock-section-header, .swagger-ui .dialog-ux .modal-ux, .swagger-ui .auth-container { background: #17211b; border-color: #2b3a31; }
  .swagger-ui .opblock-tag, .swagger-ui .opblock-tag:hover, .swagger-ui .auth-container { border-bottom-color: #2b3a31; }
  .swagger-ui .opblock-tag:hover { background: rgba(255, 255, 255, .04); }
  .swagger-ui input[type=text], .swagger-ui input[type=password], .swagger-ui input[type=search], .swagger-ui textarea, .swagger-ui select {
    background: #0c120e; color: #e8efe9; border-color: #2b3a31; }
  .swagger-ui .markdown code, .swagger-ui .renderedMarkdown code { color: #e8efe9; background: rgba(111, 207, 151, .16); }
  .swagger-ui svg:not(:root) { fill: #e8efe9; }
  .swagger-ui .btn.authorize { color: #6fcf97; border-color: #6fcf97; }
  .swagger-ui .btn.authorize svg { fill: #6fcf97; }
  .swagger-ui .btn.execute { color: #fff; }
}
`;

/** The reference as a page at `/docs`, where calls can be tried. `document`: what `describeRoutes` gave. */
export async function docsPage(server: FastifyInstance, document: () => string): Promise<void> {
  await server.register(async (scope) => {
    // The generator of the page has no place for these.
    scope.addHook('onSend', (request, reply, payload, done) => {
      const isPage = typeof payload === 'string' && /^\/docs\/?(?:\?|$)/.test(request.url) && reply.statusCode === 200;
      done(
        null,
        isPage ? payload.replace('<head>', `<head>\n${VIEWPORT}`).replace('<div id="swagger-ui">', `${HOME}\n<div id="swagger-ui">`) : payload,
      );
    });
    await scope.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: POLICY,
      transformSpecification: () => JSON.parse(document()) as Readonly<Record<string, unknown>>,
      theme: {
        title: 'tollgate · API reference',
        css: [{ filename: 'tollgate.css', content: STYLE }],
        favicon: [{ filename: 'tollgate.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content: ICON }],
      },
      uiConfig: {
        // Without the bar that lets one load other documents.
        layout: 'BaseLayout',
        docExpansion: 'list',
        defaultModelsExpandDepth: -1,
        displayRequestDuration: true,
        tryItOutEnabled: true,
        // A key that is kept in the browser is one that others on the machine can read.
        persistAuthorization: false,
      },
    });
  });
}
