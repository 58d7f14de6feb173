import type { ReactNode } from 'react';

/** The project's logo: a barrier on its post. */
export function Mark({ size }: { readonly size: number }): ReactNode {
  return (
    <svg viewBox="0 0 32 32" width={size} height={size} aria-hidden>
      <rect width="32" height="32" rx="7" fill="var(--mark)" />
      <rect x="7" y="9" width="4" height="16" rx="1.5" fill="#f4c95d" />
      <rect x="9" y="11" width="18" height="4" rx="2" fill="#fff" />
      <rect x="14" y="11" width="4" height="4" fill="#1f7a4d" />
      <rect x="22" y="11" width="3" height="4" fill="#1f7a4d" />
    </svg>
  );
}
