import type { ComponentType } from 'react';

/** A page, in a chunk of its own. `params` are the named parts of the path's pattern. `*` is the rest of the path. */
export type Page = ComponentType<{ readonly params: Readonly<Record<string, string>> }>;

export interface Route {
  /** A pattern of wouter. The gateway serves the same paths, see `src/console/pages/web/page-paths.ts`. */
  readonly path: string;
  /** Title of the window, until the page sets a more precise one with `useTitle`. */
  readonly title: string;
  readonly load: () => Promise<{ readonly default: Page }>;
}

const offering = () => import('../pages/offering/page.tsx');

/** All pages. To add a page, add a line here and an entry in `page-paths.ts`. */
export const ROUTES: readonly Route[] = [
  { path: '/marketplace', title: 'Marketplace', load: () => import('../pages/marketplace/page.tsx') },
  { path: '/models/*', title: 'Model', load: offering },
  { path: '/tools/*', title: 'Tool', load: offering },
  { path: '/agents/*', title: 'Agent', load: offering },
  { path: '/images/*', title: 'Image model', load: offering },
  { path: '/videos/*', title: 'Video model', load: offering },
  { path: '/providers', title: 'Providers', load: () => import('../pages/providers/page.tsx') },
  { path: '/providers/*', title: 'Provider', load: () => import('../pages/provider/page.tsx') },
  { path: '/rankings', title: 'Rankings', load: () => import('../pages/rankings/page.tsx') },
  { path: '/docs', title: 'API reference', load: () => import('../pages/reference/page.tsx') },
  { path: '/playground', title: 'Playground', load: () => import('../pages/playground/page.tsx') },
  { path: '/authorize/:id', title: 'Let a program sign in', load: () => import('../pages/authorize/page.tsx') },
  { path: '/sign-in', title: 'Sign in', load: () => import('../pages/sign-in/page.tsx') },
  { path: '/dashboard', title: 'Overview', load: () => import('../pages/dashboard/page.tsx') },
  { path: '/dashboard/calls', title: 'Calls', load: () => import('../pages/dashboard/calls/page.tsx') },
  { path: '/dashboard/calls/:id', title: 'Call', load: () => import('../pages/dashboard/calls/call-page.tsx') },
  { path: '/dashboard/activity', title: 'Activity', load: () => import('../pages/dashboard/activity/page.tsx') },
  { path: '/dashboard/keys', title: 'Keys', load: () => import('../pages/dashboard/keys/page.tsx') },
  { path: '/dashboard/connect', title: 'Connect', load: () => import('../pages/dashboard/connect/page.tsx') },
  { path: '/dashboard/approvals', title: 'Approvals', load: () => import('../pages/dashboard/approvals/page.tsx') },
  { path: '/dashboard/balance', title: 'Balance', load: () => import('../pages/dashboard/balance/page.tsx') },
  { path: '/dashboard/statement', title: 'Statement', load: () => import('../pages/dashboard/statement/page.tsx') },
  { path: '/dashboard/provider', title: 'Provider', load: () => import('../pages/dashboard/provider/page.tsx') },
  {
    path: '/dashboard/organisation',
    title: 'Organisation',
    load: () => import('../pages/dashboard/organisation/page.tsx'),
  },
  { path: '/dashboard/sessions', title: 'Sessions', load: () => import('../pages/dashboard/sessions/page.tsx') },
  { path: '/admin', title: 'Operator', load: () => import('../pages/admin/page.tsx') },
];
