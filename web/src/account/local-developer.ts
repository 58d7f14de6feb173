import { BOOT } from '../app/boot.ts';

/** Set if the local developer signed out on purpose. */
const AWAY = 'tollgate.stay-away';

/** Whether a page may sign in the local developer automatically. The gateway may still refuse. */
export const comesByItself = (): boolean => BOOT.mode === 'development' && localStorage.getItem(AWAY) === null;

export function stayAway(away: boolean): void {
  if (away) localStorage.setItem(AWAY, '1');
  else localStorage.removeItem(AWAY);
}
