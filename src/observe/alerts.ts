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
  /** Told of each alert that nobody gets, for the log. That line must not be an alert. */
  readonly onLost?: (lost: LostAlert) => void;
}

interface LostAlert {
  readonly message: string;
  /** Lines of it that were left out, and go with it. */
  readonly repeated: number;
  readonly reason: string;
}

const AGAIN_MS = 60_000;
const RETRY_MS = 1_000;
const ATTEMPTS_MAX = 8;
const POST_MS = 10_000;
const CLOSE_MS = 2_000;
/** A line that says so itself is posted whatever its level. In a text of somebody else the quotes are escaped. */
const WANTED = '"alert":true';
/** Alerts that wait; beyond, the oldest of the least weight is dropped. */
const WAITING_MAX = 100;
/** Messages that are remembered. */
const KNOWN_MAX = 1_000;
const LEVELS: Readonly<Record<Config['alerts']['level'], readonly string[]>> = {
  warn: ['warn', 'error', 'fatal'],
  error: ['error', 'fatal'],
};
const HEAVY: ReadonlySet<string> = new Set(LEVELS.error);
/** Facts that say what a message is about: what one provider or chain did says nothing of another. */
const SUBJECTS = ['network', 'provider', 'service', 'key', 'member', 'limit_reset', 'limit_usd'];

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
 * null where nobody is to be told. One message about one subject is posted at most once a minute; a post that fails is
 * repeated. Errors go before warnings, which never push them out.
 */
export function createAlerts({ url, secret, level }: Config['alerts'], options: AlertsOptions = {}): Alerts | null {
  if (url === null) return null;
  const { againMs = AGAIN_MS, retryMs = RETRY_MS, onLost = () => {} } = options;
  const beginnings = LEVELS[level].map((one) => `{"level":"${one}"`);
  const known = new Map<string, { postedAt: number; missed: number }>();
  const heavy: Alert[] = [];
  const light: Alert[] = [];
  const ended = new AbortController();
  let sending: Promise<void> | null = null;

  const lose = ({ message, repeated }: Alert, reason: string) => onLost({ message, repeated, reason });

  /** Attempts are not logged: a receiver that is away would fill the log. */
  const post = async (alert: Alert): Promise<void> => {
    let failure = '';
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
      }).catch((error: unknown) => {
        failure = error instanceof Error && error.name === 'TimeoutError' ? 'no answer in time' : 'no connection';
        return null;
      });
      await response?.body?.cancel().catch(() => {});
      if (response?.ok) return;
      if (response !== null) {
        failure = `answered with ${response.status}`;
        if (isRefused(response.status)) break;
      }
      if (attempt < ATTEMPTS_MAX)
        await pause(retryMs * 2 ** (attempt - 1), null, { signal: ended.signal }).catch(() => {});
    }
    lose(alert, ended.signal.aborted ? 'the gateway stops' : failure);
  };
  const next = () => heavy.shift() ?? light.shift();
  const sendAll = async (): Promise<void> => {
    for (let alert = next(); alert !== undefined; alert = next()) await post(alert);
    sending = null;
  };
  const enqueue = (alert: Alert): void => {
    (HEAVY.has(alert.level) ? heavy : light).push(alert);
    if (heavy.length + light.length > WAITING_MAX) lose((light.shift() ?? heavy.shift())!, 'too many wait');
    sending ??= sendAll();
  };

  return {
    take(line) {
      if (!beginnings.some((beginning) => line.startsWith(beginning)) && !line.includes(WANTED)) return;
      const { level: own, time, msg, alert: _alert, ...facts } = parse(line);
      const message = String(msg);
      const at = Number(time);
      const about = JSON.stringify([message, ...SUBJECTS.map((subject) => facts[subject])]);
      const before = known.get(about);
      if (before !== undefined && at - before.postedAt < againMs) return void (before.missed += 1);
      if (known.size >= KNOWN_MAX) known.clear();
      known.set(about, { postedAt: at, missed: 0 });
      const repeated = before?.missed ?? 0;
      enqueue({ level: String(own), time: new Date(at).toISOString(), message, repeated, facts });
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
