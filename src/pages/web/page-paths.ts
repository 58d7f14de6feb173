import type { Primitive } from '#config';

/** A page that the web pages have, as Fastify's router names its path. */
export interface PagePath {
  readonly path: string;
  /** Its folder in `web/src/pages/`: the browser is told early to load it. */
  readonly page?: string;
  readonly title: string;
  /** For previews of links, for search engines, and below the heading until the page itself is there. */
  readonly description: string;
  /** The page shows the service of this kind whose name is the rest of the path. */
  readonly service?: Primitive;
  /** The page shows the provider whose id is the rest of the path. */
  readonly provider?: true;
  /** For those who are signed in: search engines are told to leave it out. */
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
 * All paths that the web pages are served at. Others are 404 in JSON, as clients of the API expect it. A page is one
 * line here and one in `web/src/app/routes.tsx`.
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
  own('/playground', 'Playground'),
  own('/sign-in', 'Sign in'),
  own('/dashboard', 'Dashboard'),
  own('/dashboard/calls', 'Calls'),
  own('/dashboard/calls/:id', 'Call'),
  own('/dashboard/activity', 'Activity'),
  own('/dashboard/keys', 'Keys'),
  own('/dashboard/balance', 'Balance'),
  own('/dashboard/provider', 'Provider'),
  own('/dashboard/organisation', 'Organisation'),
  own('/dashboard/sessions', 'Sessions'),
  own('/admin', 'Operator'),
];
