import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { servicesQuery } from '../../api/catalogue.ts';
import { CATALOGUE_KEY } from './catalogue.ts';

const FIRST_MS = 2_000;
const LONGEST_MS = 60_000;

/**
 * Reads the catalogue again while something is missing in it: a provider may be connecting, or a tool's server may be
 * starting. The pauses grow, because it may also be away for good.
 */
export function usePollAgain(missing: boolean): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (!missing) return;
    let pause = FIRST_MS;
    let timer = 0;
    const wait = () => {
      timer = window.setTimeout(() => void look(), pause);
      pause = Math.min(LONGEST_MS, pause * 2);
    };
    let gone = false;
    const look = async () => {
      await queries.invalidateQueries({ queryKey: servicesQuery.queryKey, exact: true });
      await queries.invalidateQueries({ queryKey: CATALOGUE_KEY });
      if (!gone) wait();
    };
    wait();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [missing, queries]);
}
