import { createHmac } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { withoutCredentials } from '#security';
import { isObject } from '#wire';
import type { Config } from '#config';

/** Posts important lines of the log to the operator's URL. */
interface Alerts {
  /**
   * Takes a finished line without secrets. A line with a lower level than configured is ignored, unless its member
   * `alert` is true.
   */
  take(line: string): void;
  /** Waits up to 2 s for alerts that are still to be posted. */
  close(): Promise<void>;
}

interface AlertsOptions {
  /** Minimum milliseconds between two posts of the same message. */
  readonly againMs?: number;
  /** Milliseconds before the first retry of a post. The pause doubles with each retry. */
  readonly retryMs?: number;
  /** Called for each alert that is given up, to log it. The line for it must not be an alert itself. */
  readonly onLost?: (lost: LostAlert) => void;
}

interface LostAlert {
  readonly message: string;
  readonly repeated: number;
  readonly reason: string;
}

const AGAIN_MS = 60_000;
const RETRY_MS = 1_000;
const ATTEMPTS_MAX = 8;
const POST_MS = 10_000;
const CLOSE_MS = 2_000;
/**
 * A line with this member is posted whatever its level. Only lines with this text are parsed to look for the member,
 * because it may also be in a nested object, such as the metadata of a consumer.
 */
const WANTED = '"alert":true';
/**
 * Maximum number of waiting alerts. Above it the oldest warning is dropped, or the oldest error if there are no
 * warnings.
 */
const WAITING_MAX = 100;
const KNOWN_MAX = 1_000;
const LEVELS: Readonly<Record<Config['alerts']['level'], readonly string[]>> = {
  warn: ['warn', 'error', 'fatal'],
  error: ['error', 'fatal'],
};
const HEAVY: ReadonlySet<string> = new Set(LEVELS.error);
/**
 * Facts that identify the subject of a message. The same message about another provider or chain is a different alert.
 */
const SUBJECTS = ['network', 'provider', 'service', 'flags', 'key', 'member', 'limit_reset', 'limit_usd'];

interface Alert {
  readonly level: string;
  /** RFC 3339. */
  readonly time: string;
  readonly message: string;
  /** Number of lines with this message that were not posted since its last post. */
  readonly repeated: number;
  readonly facts: Readonly<Record<string, unknown>>;
}

/**
 * null if no URL is configured. The same message about the same subject is posted at most once a minute. A failed post
 * is retried. Errors are posted before warnings, and warnings never displace them.
 */
export function createAlerts({ url, secret, level }: Config['alerts'], options: AlertsOptions = {}): Alerts | null {
  if (url === null) return null;
  const { againMs = AGAIN_MS, retryMs = RETRY_MS, onLost = () => {} } = options;
  const receiver = withoutCredentials(url);
  const beginnings = beginningsOf(level);
  const known = new Map<string, { postedAt: number; missed: number }>();
  const heavy: Alert[] = [];
  const light: Alert[] = [];
  const ended = new AbortController();
  let sending: Promise<void> | null = null;

  const lose = ({ message, repeated }: Alert, reason: string) => onLost({ message, repeated, reason });

  /** Failed attempts are not logged, because an unavailable receiver would fill the log. */
  const post = async (alert: Alert): Promise<void> => {
    let failure = '';
    const body = JSON.stringify(alert);
    const signature = secret === null ? null : createHmac('sha256', secret).update(body).digest('hex');
    for (let attempt = 1; attempt <= ATTEMPTS_MAX && !ended.signal.aborted; attempt += 1) {
      const response = await fetch(receiver.url, {
        method: 'POST',
        redirect: 'error',
        headers: {
          'content-type': 'application/json',
          ...receiver.headers,
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
      const read = readAlert(line, beginnings);
      if (read === null) return;
      const { level: own, at, message, facts, about } = read;
      const before = known.get(about);
      if (before !== undefined && at - before.postedAt < againMs) return void (before.missed += 1);
      if (known.size >= KNOWN_MAX) known.clear();
      known.set(about, { postedAt: at, missed: 0 });
      const repeated = before?.missed ?? 0;
      enqueue({ level: own, time: new Date(at).toISOString(), message, repeated, facts });
    },
    async close() {
      const cut = setTimeout(() => ended.abort(), CLOSE_MS);
      await sending;
      clearTimeout(cut);
    },
  };
}

export const beginningsOf = (level: Config['alerts']['level']): readonly string[] =>
  LEVELS[level].map((one) => `{"level":"${one}"`);

interface AlertLine {
  readonly level: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
  /** The same for lines with the same message about the same subject. */
  readonly about: string;
}

/** Reads a line of the log. null if it is no alert: of another level, without the member `alert`. */
export function readAlert(line: string, beginnings: readonly string[]): AlertLine | null {
  const isOfLevel = beginnings.some((beginning) => line.startsWith(beginning));
  if (!isOfLevel && !line.includes(WANTED)) return null;
  const { level, time, msg, alert: isWanted, ...facts } = parse(line);
  if (!isOfLevel && isWanted !== true) return null;
  const message = String(msg);
  const about = JSON.stringify([message, ...SUBJECTS.map((subject) => facts[subject])]);
  return { level: String(level), at: Number(time), message, facts, about };
}

/** The facts of an alert that say what it is about, such as its provider. */
export const subjectOf = (facts: Readonly<Record<string, unknown>>): string =>
  SUBJECTS.flatMap((subject) => (facts[subject] === undefined ? [] : [wordOf(facts[subject])])).join(' ');

/** A key is an object with its name. */
const wordOf = (fact: unknown): string => (isObject(fact) ? String(fact['name'] ?? fact['hash']) : String(fact));

/** Whether a retry would be refused again. */
const isRefused = (status: number): boolean => status >= 400 && status < 500 && status !== 408 && status !== 429;

/** Parses a line. If masking of secrets broke its JSON, gives an alert without facts, because logging must not fail. */
function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(line) as Readonly<Record<string, unknown>>;
  } catch {
    const level = /^\{"level":"(\w+)"/.exec(line)![1];
    return { level, time: Date.now(), alert: true, msg: 'an alert that cannot be read: see the log' };
  }
}
