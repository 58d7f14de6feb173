import { lazy, Suspense, useEffect, useRef, type ReactNode } from 'react';
import { Route as Match, Switch, useLocation } from 'wouter';
import { PageSkeleton } from '../ui/skeleton.tsx';
import { ErrorBoundary } from './error-boundary.tsx';
import { Footer } from './footer.tsx';
import { Header } from './header.tsx';
import { NotFound } from './not-found.tsx';
import { ROUTES, type Page, type Route } from './routes.tsx';
import { useRouteTitle } from './title.ts';

const pages = ROUTES.map((route) => ({ ...route, Page: lazy(route.load) as Page }));

/** Comes after the page, while the gateway answers. */
const Unanswered = lazy(() => import('./unanswered.tsx').catch(() => ({ default: () => null })));

/** Loads the page of a path before the first render, so that no placeholder is shown first. */
export async function loadFirst(path: string): Promise<void> {
  const route = pages.find(({ path: pattern }) =>
    pattern.endsWith('/*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern,
  );
  if (route) route.Page = (await route.load()).default;
}

/** The frame around every page. */
export function App(): ReactNode {
  const main = useRef<HTMLElement>(null);
  const [path] = useLocation();
  const shown = useRef(path);
  useEffect(() => {
    if (shown.current === path) return;
    shown.current = path;
    // A new page starts at its top, both on the screen and for a screen reader.
    window.scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [path]);
  return (
    <>
      <a
        href="#main"
        className="absolute left-2 top-2 z-50 -translate-y-20 rounded-md bg-accent px-3 py-2 text-on-accent focus:translate-y-0"
      >
        Skip to the content
      </a>
      <Header />
      <main
        id="main"
        ref={main}
        tabIndex={-1}
        // As high as the window, so that the footer doesn't jump when the content comes.
        className="mx-auto min-h-[calc(100dvh-3.5rem)] w-full max-w-[1200px] grow px-4 pb-20 pt-8 outline-none sm:px-6 sm:pt-10"
      >
        <Suspense fallback={null}>
          <Unanswered />
        </Suspense>
        <ErrorBoundary key={path}>
          <Suspense fallback={<PageSkeleton />}>
            <Switch>
              {pages.map(({ path: pattern, ...route }) => (
                <Match key={pattern} path={pattern}>
                  {(params) => <Titled {...route} params={params as Record<string, string>} />}
                </Match>
              ))}
              <Match>
                <NotFound />
              </Match>
            </Switch>
          </Suspense>
        </ErrorBoundary>
      </main>
      <Footer />
    </>
  );
}

function Titled({
  title,
  Page,
  params,
}: Pick<Route, 'title'> & { readonly Page: Page; readonly params: Readonly<Record<string, string>> }): ReactNode {
  useRouteTitle(title);
  return <Page params={params} />;
}
