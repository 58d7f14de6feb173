import { useEffect, useState } from 'react';

/** Longer than between the two clicks of a double click. */
const STILL_MS = 600;

/**
 * False for a moment after the page has appeared or got the focus. Another site can have a person click twice in a
 * window that closes at the first click, so that the second one hits a button of the page behind it.
 */
export function useStillPage(): boolean {
  const [isStill, setStill] = useState(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const begin = () => {
      clearTimeout(timer);
      setStill(false);
      timer = setTimeout(() => setStill(true), STILL_MS);
    };
    begin();
    window.addEventListener('focus', begin);
    return () => {
      clearTimeout(timer);
      window.removeEventListener('focus', begin);
    };
  }, []);
  return isStill;
}
