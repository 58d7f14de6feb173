import { useState } from 'react';

export type Theme = 'light' | 'dark' | 'system';

const KEY = 'tollgate.theme';

const stored = (): Theme => {
  const value = localStorage.getItem(KEY);
  return value === 'light' || value === 'dark' ? value : 'system';
};

/** The chosen theme, and its setter. `web/public/early.js` applies it before the first paint. */
export function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(stored);
  const choose = (chosen: Theme) => {
    if (chosen === 'system') {
      localStorage.removeItem(KEY);
      delete document.documentElement.dataset['theme'];
    } else {
      localStorage.setItem(KEY, chosen);
      document.documentElement.dataset['theme'] = chosen;
    }
    setTheme(chosen);
  };
  return [theme, choose];
}
