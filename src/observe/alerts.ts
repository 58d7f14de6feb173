import { createHmac } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '#config';

/** Posts lines of the log to the operator. */
interface Alerts {
  /** A finished line, without secrets. Lines of other levels are passed over. */
  take(line: string): void;
  /** Waits a moment for what is under way. */
  close(): Promise<void>;
}

interface AlertsOptions {
  /** Milliseconds between two posts of one message. */
  readonly againMs?: number;
  /** The first pause before a post is repeated; it doubles each time. */
  readonly retryMs?: number;
}

const AGAIN_MS = 60_000;
const RETRY_MS = 1_000;
const ATTEMPTS_MAX = 8;
const POST_MS = 10_000;
const CLOSE_MS = 2_000;
/** A line that says so itself is posted whatever its level. In a text of somebody else the quotes are escaped. */
const WANTED = '"alert":true';
/** Alerts that wait; beyond, the oldest is dropped. */
const WAITING_MAX = 100;
/** Messages that are remembered. */
const KNOWN_MAX = 1_000;
const LEVELS: Readonly<Record<Config['alerts']['level'], readonly string[]>> = {
  warn: ['warn', 'error', 'fatal'],
  error: ['error', 'fatal'],
};

interface Alert {
  readonly level: string;
  /** RFC 3339. */
  readonly time: string;
  readonly message: string;
  /** Lines of this message since the last post of it, which were not posted. */
  readonly repeated: number;
  readonly facts: Readonly<Record<string, unknown>>;
}

/**
 * null where nobody is to be told. One message, of one provider and service where it is about these, is posted at most
 * once a minute; a post that fails is repeated.
 */
export function createAlerts({ url, secret, level }: Config['alerts'], options: AlertsOptions = {}): Alerts | null {
  if (url === null) return null;
  const { againMs = AGAIN_MS, retryMs = RETRY_MS } = options;
  const beginnings = LEVELS[level].map((one) => `{"level":"${one}"`);
  const known = new Map<string, { postedAt: number; missed: number }>();
  const waiting: Alert[] = [];
  const ended = new AbortController();
  let sending: Promise<void> | null = null;

  const post = async (alert: Alert): Promise<void> => {
    const body = JSON.stringify(alert);
    const signature = secret === null ? null : createHmac('sha256', secret).update(body).digest('hex');
    for (let attempt = 1; attempt <= ATTEMPTS_MAX && !ended.signal.aborted; attempt += 1) {
      const response = await fetch(url, {
        method: 'POST',
        redirect: 'error',
        headers: {
          'content-type': 'application/json',
          ...(signature === null ? {} : { 'x-tollgate-signature': `sha256=${signature}` }),
        },
        body,
        signal: AbortSignal.any([AbortSignal.timeout(POST_MS), ended.signal]),
      }).catch(() => null);
      await response?.body?.cancel();
      // Nothing is logged of a failure: that line would be an alert, too.
      if (response?.ok || (response !== null && isRefused(response.status))) return;
      if (attempt < ATTEMPTS_MAX)
        await pause(retryMs * 2 ** (attempt - 1), null, { signal: ended.signal }).catch(() => {});
    }
  };
  const sendAll = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await post(next);
    sending = null;
  };

  return {
    take(line) {
      if (!beginnings.some((beginning) => line.startsWith(beginning)) && !line.includes(WANTED)) return;
      const { level: own, time, msg, alert: _alert, ...facts } = parse(line);
      const message = String(msg);
      const at = Number(time);
      // What one provider did says nothing of another.
      const about = `${message} ${String(facts['provider'])} ${String(facts['service'])}`;
      const before = known.get(about);
      if (before !== undefined && at - before.postedAt < againMs) return void (before.missed += 1);
      if (known.size >= KNOWN_MAX) known.clear();
      known.set(about, { postedAt: at, missed: 0 });
      if (waiting.length >= WAITING_MAX) waiting.shift();
      const repeated = before?.missed ?? 0;
      waiting.push({ level: String(own), time: new Date(at).toISOString(), message, repeated, facts });
      sending ??= sendAll();
    },
    async close() {
      const cut = setTimeout(() => ended.abort(), CLOSE_MS);
      await sending;
      clearTimeout(cut);
    },
  };
}

/** Whether the same post would be refused again. */
const isRefused = (status: number): boolean => status >= 400 && status < 500 && status !== 408 && status !== 429;

/** A line whose masks broke it is an alert without facts: whoever logs is not to fail of it. */
function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(line) as Readonly<Record<string, unknown>>;
  } catch {
    const level = /^\{"level":"(\w+)"/.exec(line)![1];
    return { level, time: Date.now(), msg: 'an alert that cannot be read: see the log' };
  }
}
