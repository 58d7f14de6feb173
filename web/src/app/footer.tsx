import type { ReactNode } from 'react';
import { BOOT } from './boot.ts';

const LINKS = [
  ['/docs/guide', 'Guide'],
  ['/docs', 'API reference'],
  ['/openapi.json', 'OpenAPI'],
  ['/llms.txt', 'llms.txt'],
  ['/health/ready', 'Health'],
] as const;

export function Footer(): ReactNode {
  return (
    <footer className="border-t border-line print:hidden">
      <div className="mx-auto flex max-w-[1200px] flex-wrap items-center gap-x-5 gap-y-1 px-4 py-6 text-sm text-soft sm:px-6">
        <span className="mr-auto">tollgate {BOOT.version} · Apache-2.0</span>
        {LINKS.map(([href, name]) => (
          <a key={href} href={href} className="py-1 hover:text-ink hover:underline">
            {name}
          </a>
        ))}
      </div>
    </footer>
  );
}
