import type { FastifyInstance } from 'fastify';
import { type GuideOptions, guideRoutes } from '../guide/guide-routes.ts';
import { docsPage } from './docs-page.ts';
import { frontPage, type FrontPageOptions } from './front-page.ts';
import { llmsText, type PageAddresses } from './llms-text.ts';
import { describeRoutes, type ReferenceOptions } from './openapi.ts';

/**
 * `/openapi.json`, `/docs`, the guide, `/llms.txt` and the front page, made from the schemas of the routes. Await this
 * on the root instance before the other routes are registered, because only later routes are described.
 */
export async function referenceRoutes(
  server: FastifyInstance,
  options: ReferenceOptions & FrontPageOptions & GuideOptions & PageAddresses,
): Promise<void> {
  const document = describeRoutes(server, options);
  await docsPage(server);
  await server.register(guideRoutes, options);
  await server.register(frontPage(options));
  await server.register(llmsText(document, options));
}
