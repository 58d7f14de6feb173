import { useEffect } from 'react';

/** Sets the title of the window while the component is shown. */
export function useTitle(title: string | null): void {
  useEffect(() => {
    if (title !== null) document.title = `${title} · tollgate`;
  }, [title]);
}
