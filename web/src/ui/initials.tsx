import type { ReactNode } from 'react';

/**
 * Initials instead of a picture. Providers' pictures are not loaded, because requests for them would reveal the
 * visitor.
 */
export function Initials({ name, size = 36 }: { readonly name: string; readonly size?: number }): ReactNode {
  const letters = name
    .split(/[\s._-]+/)
    .filter(Boolean)
    .slice(0, 2)
    .map((word) => String.fromCodePoint(word.codePointAt(0)!).toUpperCase());
  return (
    <span
      aria-hidden
      style={{ width: size, height: size }}
      className="grid shrink-0 place-items-center rounded-full bg-accent-wash text-sm font-semibold text-accent"
    >
      {letters.join('')}
    </span>
  );
}
