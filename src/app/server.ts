import { configuredNames, createOwnOrigin, createTrust } from '#wire';
import { allowPages, createCatalog, createServer } from '#gateway';
import { countAnswers } from '#observe';
import { anthropicForm } from '#openai';
import { addWebPages, referenceRoutes } from '#pages';
import { VERSION } from '../version.ts';
import type { Opened } from './foundation.ts';
import type { Money } from './money.ts';

export type Listener = Opened<typeof openServer>;

/**
 * The HTTP server, with the reference pages and the web pages. It does not listen yet. The reference pages are mounted
 * first, because they describe the routes that are added later.
 */
export async function openServer(money: Money) {
  const { config, opened, offers, payments, metrics, refusals, logger, onError } = money;
  const catalog = createCatalog();
  catalog.replace('config', offers);
  const trust = createTrust(config.trustedProxies);
  const ownOrigin = createOwnOrigin({
    publicUrl: config.publicUrl,
    names: configuredNames({ ...config, signInDomains: config.signIn.domains, bindHost: config.host }),
    onUnknownHost: (host) =>
      logger.warn(
        { host },
        'this gateway was visited at a host that it does not know, so its answers do not show that host: if it is your name for the gateway, set server.public_url',
      ),
  });
  const server = createServer({
    trust,
    limits: config.limits,
    ownOrigin,
    onBodyRefused: metrics.bodyRefused,
    onError,
    formOf: anthropicForm,
  });
  money.late.bodies = server.requestBodies;
  opened.defer(() => server.close());
  await allowPages(server, config.corsOrigins);
  countAnswers(server, metrics);
  refusals.watch(server);
  await referenceRoutes(server, {
    version: VERSION,
    payable: payments.open,
    exampleModel: () =>
      catalog.offers('model').find(({ model }) => model?.outputModalities.includes('text'))?.service ?? null,
    publicUrl: config.publicUrl,
    ownOrigin,
    marketplaceUrl: config.marketplaceUrl,
    dashboardUrl: config.dashboardUrl,
    count: (kind) => new Set(catalog.offers(kind).map(({ service }) => service)).size,
  });
  const web = addWebPages(server, {
    version: VERSION,
    mode: config.mode,
    publicUrl: config.publicUrl,
    ownOrigin,
    elsewhere: { '/marketplace': config.marketplaceUrl, '/dashboard': config.dashboardUrl },
    signInDomains: config.signIn.domains,
    analytics: config.analytics.public !== 'off',
    catalog,
    onMissing: (reason) => logger.warn({ reason }, 'there are no web pages'),
  });
  opened.defer(() => web.close());
  return { ...money, catalog, trust, server, web, ownOrigin };
}
