import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { ICON } from './icon.ts';

/** Scripts and styles from this host only; nothing inline, nothing from elsewhere, in no frame. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const STYLE = `
body { margin: 0; background: #fafaf8; }
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
`;

/** The reference as a page at `/docs`, where calls can be tried. Needs `describeRoutes` before it. */
export async function docsPage(server: FastifyInstance): Promise<void> {
  await server.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: POLICY,
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
}
