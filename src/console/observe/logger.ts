import { destination as fileDestination, pino, type Bindings, type Logger } from 'pino';
import { createScrubber, redact } from '#security';
import { formatLine, writeLogLine, writeOrLose } from '#wire/text-line';
import { type Config, secretsOf } from '#config';

export type { Logger };

export interface LoggerOptions {
  /** Writes finished lines, each with its line end. Default: the standard output. */
  readonly write?: (line: string) => void;
  /** `json` for machines, `text` for people. Default: text in development, JSON in production. */
  readonly style?: 'json' | 'text';
  readonly color?: boolean;
  /** Also receives each finished line as JSON, without secrets. */
  readonly also?: ((line: string) => void) | undefined;
}

/**
 * The gateway's logger. `flush` writes the buffered lines. It resolves when they are written, or when their reader has
 * gone.
 */
interface LogOutput {
  readonly logger: Logger;
  /** Masks the secrets of another configuration too, from now on. */
  hide(config: Config): void;
  flush(): Promise<void>;
}

/** Longest time in milliseconds that lines wait in the buffer, so that not every call needs its own write. */
const FLUSH_MS = 250;
const BUFFER_BYTES = 8_192;
/** Maximum number of characters that wait for a slow reader. Further lines are lost. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024;
const STDERR = 2;

/**
 * Structured logs without secrets. Members with the name of a secret are masked at every depth. Errors are reduced to
 * safe members. The finished line is searched for the configured secrets and for text that looks like a secret.
 */
export function createLogger(
  config: Pick<Config, 'mode' | 'logLevel'> & Partial<Config>,
  options: LoggerOptions = {},
): LogOutput {
  let secrets = secretsOf(config);
  let scrub = createScrubber(secrets);
  const style = options.style ?? (config.mode === 'development' ? 'text' : 'json');
  const sink = options.write ? { write: options.write, async flush() {} } : createStdout(style);
  const color = options.color ?? false;
  const { also } = options;
  const write = (line: string) => {
    const scrubbed = scrub(line);
    also?.(scrubbed);
    sink.write(style === 'json' ? scrubbed : formatLine(scrubbed, color));
  };
  const logger: Logger = pino(
    {
      level: config.logLevel,
      base: null,
      hooks: {
        logMethod(args, method, level) {
          // A child has bindings of its own, which pino writes.
          const line = this === logger ? lineOf(this.levels.labels[level]!, args) : null;
          if (line === null) method.apply(this, args);
          else write(line);
        },
      },
      formatters: {
        level: (label) => ({ level: label }),
        log: (record) => redact(record) as Record<string, unknown>,
      },
      // `redact` has already turned errors into plain members. Requests and replies are reduced to safe members here.
      serializers: {
        err: (error: unknown) => error,
        error: (error: unknown) => error,
        req: describeRequest,
        res: describeReply,
      },
    },
    { write },
  );
  // pino writes a child's bindings without any of the formatters above.
  const { child } = logger;
  logger.child = function (this: Logger, bindings, childOptions) {
    return child.call(this, redact(bindings) as Bindings, childOptions) as never;
  };
  const hide = (other: Config) => {
    secrets = [...new Set([...secrets, ...secretsOf(other)])];
    scrub = createScrubber(secrets);
  };
  return { logger, hide, flush: () => sink.flush() };
}

/**
 * The line that pino would write for facts with a message; null for any other arguments. JSON.stringify takes half the
 * time of pino, which handles each member separately.
 */
function lineOf(label: string, args: readonly unknown[]): string | null {
  const [facts, message] = args;
  if (args.length !== 2 || typeof message !== 'string' || message.includes('%')) return null;
  if (typeof facts !== 'object' || facts === null || facts instanceof Error || 'req' in facts || 'res' in facts)
    return null;
  const written = JSON.stringify(redact(facts)).slice(1, -1);
  const members = written === '' ? '' : `,${written}`;
  return `{"level":"${label}","time":${Date.now()}${members},"msg":${JSON.stringify(message)}}\n`;
}

function createStdout(style: 'json' | 'text'): { write(line: string): void; flush(): Promise<void> } {
  if (style === 'text') return { write: writeLogLine, async flush() {} };
  const out = fileDestination({ fd: 1, sync: false, minLength: BUFFER_BYTES, maxLength: WAITING_BYTES_MAX });
  let isFailing = false;
  let isTold = false;
  const tell = (fault: string) => {
    if (!isTold) writeOrLose(STDERR, `The log ${fault}. The gateway goes on, and lines may be lost\n`);
    isTold = true;
  };
  // Without a listener an error would end the process. Unwritten lines are tried again with the next lines.
  out.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    isFailing = true;
    // No message after the reader of a pipe has left: Ctrl-C ends both sides of the pipe.
    if (code !== 'EPIPE') tell(`cannot be written: ${message}`);
  });
  out.on('drop', () => tell('is not read as fast as it is written'));
  out.on('write', () => (isFailing = false));
  out.on('drain', () => (isTold = false));
  // pino calls flushSync when the process ends, and it would repeat a failing write for ever. That pino calls it is not
  // documented: test/console/observe/log-at-exit.test.ts has the version with which this was checked.
  const { flushSync } = out;
  out.flushSync = () => {
    if (!isFailing) flushSync.call(out);
  };
  const timer = setInterval(() => out.flush(), FLUSH_MS);
  timer.unref();
  return {
    write: (line) => void out.write(line),
    // Not flushSync, which would repeat a write for ever once the reader has gone: Ctrl-C ends both sides of `tollgate
    // serve | tee log`.
    flush: () => new Promise((resolve) => out.flush(() => resolve())),
  };
}

function describeRequest(request: unknown): unknown {
  const { method, url, id } = request as { method?: string; url?: string; id?: string };
  // Careless clients may put credentials in the query.
  return method === undefined ? request : { method, path: url?.split('?', 1)[0], request_id: id };
}

function describeReply(reply: unknown): unknown {
  const { statusCode } = reply as { statusCode?: number };
  return statusCode === undefined ? reply : { status: statusCode };
}
