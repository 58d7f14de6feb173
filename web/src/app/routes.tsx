import type { ComponentType } from 'react';

/** A page of its own chunk. `params` are the parts of the path that the pattern names; `*` is the rest of the path. */
export type Page = ComponentType<{ readonly params: Readonly<Record<string, string>> }>;

export interface Route {
  /** A pattern of wouter. The gateway serves the same paths: `src/pages/web/page-paths.ts`. */
  readonly path: string;
  /** Of the window, until the page sets a closer one with `useTitle`. */
  readonly title: string;
  readonly load: () => Promise<{ readonly default: Page }>;
}

const offering = () => import('../pages/offering/page.tsx');

/** All pages. A page is one line here and one in `page-paths.ts`. */
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
  { path: '/playground', title: 'Playground', load: () => import('../pages/playground/page.tsx') },
  { path: '/sign-in', title: 'Sign in', load: () => import('../pages/sign-in/page.tsx') },
  { path: '/dashboard', title: 'Dashboard', load: () => import('../pages/dashboard/page.tsx') },
];
