import { BOOT } from '../app/boot.ts';

/** Remembers that the local developer signed out on purpose. */
const AWAY = 'tollgate.stay-away';

/** Whether a page may sign the local developer in by itself. The gateway has the last word. */
export const comesByItself = (): boolean => BOOT.mode === 'development' && localStorage.getItem(AWAY) === null;

export function stayAway(away: boolean): void {
  if (away) localStorage.setItem(AWAY, '1');
  else localStorage.removeItem(AWAY);
}
