import { useEffect, type ReactNode } from 'react';

/** Begins at the top. The path of these pages is the same, so the app does not scroll by itself. */
export function FromTop({ children }: { readonly children: ReactNode }): ReactNode {
  useEffect(() => {
    scrollTo(0, 0);
  }, []);
  return children;
}
