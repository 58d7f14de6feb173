import { useEffect, useLayoutEffect } from 'react';

const setTitle = (title: string) => (document.title = `${title} · tollgate`);

/** Sets the title of the window while the component is shown. */
export function useTitle(title: string | null): void {
  useEffect(() => {
    if (title !== null) setTitle(title);
  }, [title]);
}

/** The title of a route. It is set before that of its page, whose effects run before those of the route. */
export function useRouteTitle(title: string): void {
  useLayoutEffect(() => {
    setTitle(title);
  }, [title]);
}
