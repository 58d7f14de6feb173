import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import type { Config } from '#config';
import { BOUNDS, foreignObject, isObject, readStart } from '#wire';
import { createAlerts } from './alerts.ts';
import { createRaisedAlerts, type RaisedAlerts } from './raised-alerts.ts';
import type { Logger } from './logger.ts';
import { otlpReceiver, otlpResource, otlpAttributes, toLogRecord } from './otlp.ts';

/** The receivers of the log besides the standard output: alerts, those of the console, and a collector. */
interface LogReceivers {
  /** For `also` of a logger. */
  readonly take: (line: string) => void;
  readonly raised: RaisedAlerts;
  /** Number of lines that the collector did not get, since the start. */
  lost(): number;
  /** Waits a few seconds until waiting lines are sent. */
  close(): Promise<void>;
}

/** `logger` is called only when there is something to log, because the logger itself is made with `take`. */
export function createLogReceivers(config: Config, version: string, logger: () => Logger): LogReceivers {
  const alerts = createAlerts(config.alerts, {
    onLost: (lost) => logger().info(lost, 'an alert was given up'),
  });
  const collector = createLogExport(config, {
    version,
    onLost: (lost) => logger().warn(lost, 'lines of the log could not be sent'),
  });
  const raised = createRaisedAlerts();
  const takers = [alerts, raised, collector].flatMap((one) => (one === null ? [] : [one.take]));
  return {
    take: (line) => takers.forEach((take) => take(line)),
    raised,
    lost: () => collector?.lost() ?? 0,
    async close() {
      await Promise.all([alerts?.close(), collector?.close()]);
    },
  };
}

interface LogExport {
  /** Takes a finished line without secrets. It is parsed and sent later. */
  take(line: string): void;
  lost(): number;
  /** Sends the waiting lines, and gives up after a few seconds. Never rejects. */
  close(): Promise<void>;
}

interface LogExportOptions {
  readonly version?: string;
  /** Called at most once a minute, with the number of lines that the collector did not get. */
  readonly onLost?: (lost: { readonly lines: number; readonly reason: string }) => void;
  /** Milliseconds that lines wait to form a batch. */
  readonly everyMs?: number;
  readonly retryMs?: number;
  /** Approximate limit for the bytes of waiting lines. */
  readonly bytesMax?: number;
}

const EVERY_MS = 1_000;
const RETRY_MS = 1_000;
const ATTEMPTS_MAX = 5;
const POST_MS = 10_000;
const STOPS = 'the gateway stops';
const CLOSE_MS = 3_000;
const TOLD_MS = 60_000;
/**
 * Limits of one batch. Parsing this many lines takes a few milliseconds. In OTLP a line is about twice as long as in
 * the log.
 */
const BATCH = 256;
const BATCH_BYTES = 512 * 1_024;
const BYTES_MAX = 8 * 1_024 * 1_024;
/** The statuses after which OTLP allows a retry. */
const AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/**
 * null if no collector is configured. Sends one batch after the other. If the collector is slow or away and the buffer
 * is full, new lines are dropped and counted.
 */
export function createLogExport(
  { otlpEndpoint, otlpHeaders, logsExporter }: Pick<Config, 'otlpEndpoint' | 'otlpHeaders' | 'logsExporter'>,
  options: LogExportOptions = {},
): LogExport | null {
  if (logsExporter === 'none' || otlpEndpoint === null) return null;
  const { everyMs = EVERY_MS, retryMs = RETRY_MS, bytesMax = BYTES_MAX } = options;
  const receiver = otlpReceiver(otlpEndpoint, otlpHeaders, 'logs');
  const resource = { attributes: otlpAttributes(otlpResource(options.version)) };
  const scope = { name: 'tollgate', ...(options.version === undefined ? {} : { version: options.version }) };
  const ended = new AbortController();
  const closing = new AbortController();
  let waiting: string[] = [];
  let [bytes, lost, unreported, toldAt] = [0, 0, 0, Number.NEGATIVE_INFINITY];
  let sending: Promise<void> | null = null;

  const lose = (lines: number, reason: string): void => {
    if (lines === 0) return;
    lost += lines;
    unreported += lines;
    if (performance.now() - toldAt < TOLD_MS) return;
    toldAt = performance.now();
    const count = unreported;
    unreported = 0;
    options.onLost?.({ lines: count, reason });
  };

  /**
   * Returns null if the collector accepted the batch. Otherwise returns the reason, and whether a retry makes sense.
   */
  const attempt = async (body: string): Promise<Failure | null> => {
    try {
      const response = await fetch(receiver.url, {
        method: 'POST',
        redirect: 'error',
        headers: { 'content-type': 'application/json', ...receiver.headers },
        body,
        signal: AbortSignal.any([AbortSignal.timeout(POST_MS), ended.signal]),
      });
      if (response.ok) {
        const refused = refusedOf(
          await readStart(response.body as AsyncIterable<Uint8Array>, BOUNDS.receiver.bytesMax),
        );
        return refused === 0 ? null : { lines: refused, reason: 'the collector refused some', isFinal: true };
      }
      await response.body?.cancel();
      return { lines: null, reason: `answered with ${response.status}`, isFinal: !AGAIN.has(response.status) };
    } catch {
      return { lines: null, reason: 'no answer', isFinal: false };
    }
  };

  const post = async (lines: readonly string[]): Promise<void> => {
    const body = JSON.stringify({
      resourceLogs: [{ resource, scopeLogs: [{ scope, logRecords: lines.map(toLogRecord) }] }],
    });
    for (let tries = 1; ; tries += 1) {
      const failure = await attempt(body);
      if (failure === null) return;
      if (failure.isFinal || tries >= ATTEMPTS_MAX || ended.signal.aborted)
        return lose(failure.lines ?? lines.length, failure.reason);
      await pause(retryMs * 2 ** (tries - 1), null, { signal: ended.signal }).catch(() => {});
    }
  };

  const nextBatch = (): readonly string[] => {
    let [count, size] = [0, 0];
    while (count < waiting.length && count < BATCH && size < BATCH_BYTES) size += waiting[count++]!.length;
    bytes -= size;
    return waiting.splice(0, count);
  };

  const sendAll = async (): Promise<void> => {
    await pause(everyMs, null, { signal: closing.signal, ref: false }).catch(() => {});
    while (waiting.length > 0 && !ended.signal.aborted) {
      await post(nextBatch());
      await turn();
    }
    lose(waiting.length, STOPS);
    [waiting, bytes, sending] = [[], 0, null];
  };

  return {
    take(line) {
      if (ended.signal.aborted) return lose(1, STOPS);
      if (bytes + line.length > bytesMax) return lose(1, 'too many wait');
      waiting.push(line);
      bytes += line.length;
      sending ??= sendAll();
    },
    lost: () => lost,
    async close() {
      const cut = setTimeout(() => ended.abort(), CLOSE_MS);
      closing.abort();
      while (sending !== null) await sending;
      ended.abort();
      clearTimeout(cut);
    },
  };
}

interface Failure {
  /** Number of lines that failed; null for all. */
  readonly lines: number | null;
  readonly reason: string;
  readonly isFinal: boolean;
}

/**
 * The number of refused lines. A collector may accept only a part of a batch and reports that in an answer with status
 * 200.
 */
function refusedOf(text: string): number {
  const partial = foreignObject(text, BOUNDS.receiver)?.['partialSuccess'];
  const refused = Number(isObject(partial) ? (partial['rejectedLogRecords'] ?? 0) : 0);
  return Number.isSafeInteger(refused) && refused > 0 ? refused : 0;
}
