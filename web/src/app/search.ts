import { useCallback, useMemo } from 'react';
import { useLocation, useSearch } from 'wouter';

/** Values of the query, by name. A value that equals its default is omitted from the address. */
export type Search = Readonly<Record<string, string>>;

/**
 * State of a page that is kept in its address, so that it can be linked. `defaults` has all members and must be a
 * constant. The setter replaces the address, so that a filter adds no entry to the history.
 */
export function useSearchState<T extends Search>(defaults: T): readonly [T, (change: Partial<T>) => void] {
  const query = useSearch();
  const [path, navigate] = useLocation();
  const state = useMemo(() => {
    const given = new URLSearchParams(query);
    return Object.fromEntries(Object.keys(defaults).map((name) => [name, given.get(name) ?? defaults[name]])) as T;
  }, [query, defaults]);
  const set = useCallback(
    (change: Partial<T>) => {
      const next = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(change)) {
        if (value === undefined || value === defaults[name]) next.delete(name);
        else next.set(name, value as string);
      }
      const text = next.toString();
      navigate(text === '' ? path : `${path}?${text}`, { replace: true });
    },
    [path, navigate, defaults],
  );
  return [state, set];
}
