import type { Primitive } from '#config';

/** A web page. `path` is written for Fastify's router. */
export interface PagePath {
  readonly path: string;
  /** The page's folder in `web/src/pages/`. The document tells the browser to load its scripts early. */
  readonly page?: string;
  readonly title: string;
  /** Used in link previews and by search engines, and shown below the heading until the page's scripts run. */
  readonly description: string;
  /** Set if the page shows a service of this kind. The rest of the path is the service's name. */
  readonly service?: Primitive;
  /** Set if the page shows a provider. The rest of the path is the provider's id. */
  readonly provider?: true;
  /** Set if the page is only for signed-in users. Search engines are told to ignore it. */
  readonly own?: true;
}

const service = (path: string, primitive: Primitive): PagePath => ({
  path,
  page: 'offering',
  title: 'Service',
  description: 'A service that is called through this gateway and paid by use.',
  service: primitive,
});

const own = (path: string, title: string): PagePath => ({
  path,
  title,
  description: 'Sign in to see it.',
  own: true,
});

/**
 * All paths of the web pages. Other paths get a 404: in JSON, as API clients expect, or as a page in a browser. To add
 * a page, add an entry here and a line in `web/src/app/routes.tsx`.
 */
export const PAGE_PATHS: readonly PagePath[] = [
  {
    path: '/marketplace',
    page: 'marketplace',
    title: 'Marketplace',
    description:
      'Models, tools, agents, images and videos of many providers. One key calls them all, and each call shows its price before it runs.',
  },
  service('/models/*', 'model'),
  service('/tools/*', 'tool'),
  service('/agents/*', 'agent'),
  service('/images/*', 'image'),
  service('/videos/*', 'video'),
  {
    path: '/providers',
    page: 'providers',
    title: 'Providers',
    description:
      'Who serves the services of this gateway. A provider is known by its public key, and earns by the call.',
  },
  {
    path: '/providers/*',
    page: 'provider',
    title: 'Provider',
    description: 'What a provider offers through this gateway, and how well it serves.',
    provider: true,
  },
  {
    path: '/rankings',
    page: 'rankings',
    title: 'Rankings',
    description: 'What is used most on this gateway, by day. Figures of days that are over do not change.',
  },
  {
    path: '/docs',
    page: 'reference',
    title: 'API reference',
    description: 'Every endpoint of this gateway, to read and to try, with examples in curl, JavaScript and Python.',
  },
  own('/playground', 'Playground'),
  own('/authorize/:id', 'Let a program sign in'),
  own('/sign-in', 'Sign in'),
  own('/dashboard', 'Dashboard'),
  own('/dashboard/calls', 'Calls'),
  own('/dashboard/calls/:id', 'Call'),
  own('/dashboard/activity', 'Activity'),
  own('/dashboard/keys', 'Keys'),
  own('/dashboard/connect', 'Connect'),
  own('/dashboard/approvals', 'Approvals'),
  own('/dashboard/balance', 'Balance'),
  own('/dashboard/statement', 'Statement'),
  own('/dashboard/provider', 'Provider'),
  own('/dashboard/organisation', 'Organisation'),
  own('/dashboard/sessions', 'Sessions'),
  own('/admin', 'Operator'),
];
