import { Menu } from 'lucide-react';
import { lazy, Suspense, useRef, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { useSession } from '../api/session.ts';
import { Mark } from './mark.tsx';
import { BOOT } from './boot.ts';
import { Link } from './link.tsx';
import { SearchButton } from './search-button.tsx';
import { ThemeSwitch } from './theme-switch.tsx';

/** It isn't part of this app. */
const GUIDE = '/docs/guide';

/** As the landing page and the guide have them (src/console/pages/front/front-page.ts). */
const NAV = [
  ['/marketplace', 'Marketplace'],
  ['/rankings', 'Rankings'],
  ['/providers', 'Providers'],
  ['/playground', 'Playground'],
  [GUIDE, 'Guide'],
  ['/docs', 'API reference'],
] as const;

/** Paths of services. They belong to the section Marketplace. */
const SERVICE = /^\/(?:models|tools|agents|images|videos)\//;

const isHere = (href: string, path: string) =>
  path === href || path.startsWith(`${href}/`) || (href === '/marketplace' && SERVICE.test(path));

export function Header(): ReactNode {
  return (
    <header className="sticky top-0 z-30 border-b border-line bg-card print:hidden">
      <div className="mx-auto flex h-14 max-w-[1200px] items-center gap-2 px-4 sm:px-6">
        <a href="/" className="-ml-1 flex items-center gap-2 rounded-md px-1 py-1">
          <Mark size={26} />
          <span className="text-[17px] font-bold tracking-tight max-[359px]:sr-only">tollgate</span>
        </a>
        {BOOT.mode === 'development' && (
          <span className="hidden rounded border border-line px-1.5 text-xs text-soft xl:inline">development</span>
        )}
        <nav aria-label="Main" className="ml-5 hidden items-center gap-1 lg:flex">
          <NavLinks className="px-2.5 py-1.5" />
        </nav>
        <div className="ml-auto flex items-center gap-1.5">
          <SearchButton />
          <div className="hidden lg:block">
            <ThemeSwitch />
          </div>
          <Account />
          <PhoneMenu />
        </div>
      </div>
    </header>
  );
}

function NavLinks({ className, onClick }: { readonly className: string; readonly onClick?: () => void }): ReactNode {
  const [path] = useLocation();
  return (
    <>
      {NAV.map(([href, name]) => {
        const To = href === GUIDE ? 'a' : Link;
        return (
          <To
            key={href}
            href={href}
            {...(onClick ? { onClick } : {})}
            aria-current={isHere(href, path) ? 'page' : undefined}
            className={`rounded-md text-sm font-medium whitespace-nowrap text-soft hover:bg-sunk hover:text-ink aria-[current=page]:text-ink aria-[current=page]:shadow-[inset_0_-2px_0_var(--gold)] ${className}`}
          >
            {name}
          </To>
        );
      })}
    </>
  );
}

const Operator = lazy(() => import('../account/operator-signed-in.tsx'));

/** A link to the visitor's account, or to the sign-in page. On the operator's pages, who the operator is. */
function Account(): ReactNode {
  const { session } = useSession();
  const [path] = useLocation();
  const [href, text] = session ? ['/dashboard', 'Dashboard'] : ['/sign-in', 'Sign in'];
  const link = (
    <Link
      href={href}
      aria-current={isHere(href, path) ? 'page' : undefined}
      className="inline-flex h-9 items-center rounded-md border border-line px-3 text-sm font-medium hover:border-edge aria-[current=page]:border-accent"
    >
      {text}
    </Link>
  );
  // The mark of api/operator.ts, which is loaded only with the operator's pages.
  if (path !== '/admin' && (session || localStorage.getItem('tollgate.operator') === null)) return link;
  return (
    <Suspense>
      <Operator>{link}</Operator>
    </Suspense>
  );
}

function PhoneMenu(): ReactNode {
  const menu = useRef<HTMLDivElement>(null);
  return (
    <>
      <button
        type="button"
        popoverTarget="phone-menu"
        aria-label="Menu"
        className="grid size-9 place-items-center rounded-md border border-line lg:hidden"
      >
        <Menu size={18} aria-hidden />
      </button>
      <div
        id="phone-menu"
        popover="auto"
        ref={menu}
        className="inset-x-3 top-16 bottom-auto m-0 w-auto rounded-xl border border-line bg-card p-2 text-ink shadow-xl"
      >
        <nav aria-label="Main" className="grid">
          <NavLinks className="px-3 py-2.5 text-base" onClick={() => menu.current?.hidePopover()} />
        </nav>
        <div className="mt-2 flex items-center justify-between border-t border-line px-3 pt-3 pb-1 text-sm text-soft">
          Theme
          <ThemeSwitch />
        </div>
      </div>
    </>
  );
}
