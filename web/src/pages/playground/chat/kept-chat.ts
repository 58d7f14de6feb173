import { NO_SETTINGS, type Settings } from './settings.ts';
import type { Turn } from './turn.ts';

/** The last conversation of this tab. It is shown only to the account that had it. */
interface KeptChat {
  readonly account: string;
  /** Kind and name of the service. */
  readonly service: string;
  readonly turns: readonly Turn[];
  readonly settings: Settings;
}

const KEY = 'tollgate.playground';
const KEPT_MAX = 1_000_000;

export function readChat(account: string, service: string): Pick<KeptChat, 'turns' | 'settings'> {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as KeptChat | null;
    if (kept?.account === account && kept.service === service) return kept;
  } catch {
    sessionStorage.removeItem(KEY);
  }
  return { turns: [], settings: NO_SETTINGS };
}

/** Stores a conversation and replaces the previous one. A conversation that is too large isn't stored. */
export function keepChat(chat: KeptChat): void {
  const text = JSON.stringify({ ...chat, turns: chat.turns.filter(({ answer }) => !answer.running) });
  try {
    if (text.length > KEPT_MAX) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, text);
  } catch {
    sessionStorage.removeItem(KEY);
  }
}
