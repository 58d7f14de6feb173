import { destination as fileDestination, pino, symbols, type Bindings, type Logger } from 'pino';
import { createScrubber, redact, formatLine, writeLogLine, writeOrLose } from '#wire';
import { type Config, secretsOf } from '#config';

export type { Logger };

export interface LoggerOptions {
  /** Takes finished lines, each with its line end. Standard output by default. */
  readonly write?: (line: string) => void;
  /** `json` for machines, `text` for people. By default text in development and JSON in production. */
  readonly style?: 'json' | 'text';
  readonly color?: boolean;
  /** Gets each finished line as JSON, without secrets. */
  readonly also?: ((line: string) => void) | undefined;
}

/**
 * The gateway's logger. `flush` writes what is buffered; it resolves when that is written, or when nobody reads it
 * any more.
 */
interface LogOutput {
  readonly logger: Logger;
  /** From now on also masks the secrets of another configuration. */
  hide(config: Config): void;
  flush(): Promise<void>;
}

/** Lines wait at most this long for others, so that a call does not pay for a write of its own. */
const FLUSH_MS = 250;
const BUFFER_BYTES = 8_192;
/** Lines that are not taken yet wait, up to so many characters. Further ones are lost. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024;
const STDERR = 2;

/**
 * Structured logs without secrets. Members with a secret's name are masked at every depth. Errors are reduced to
 * safe members. The finished line is searched for the configured secrets and for text that looks like one.
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
  const logger = pino(
    {
      level: config.logLevel,
      base: null,
      hooks: {
        logMethod(args, method, level) {
          const line = lineOf(this.levels.labels[level]!, this, args);
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
 * The line of facts with a message, as pino writes it; null for anything else. JSON.stringify takes half of the time of
 * pino, which looks at each member by itself.
 */
function lineOf(label: string, logger: Logger, args: readonly unknown[]): string | null {
  const [facts, message] = args;
  if (args.length !== 2 || typeof message !== 'string' || message.includes('%')) return null;
  if (typeof facts !== 'object' || facts === null || facts instanceof Error || 'req' in facts || 'res' in facts)
    return null;
  const written = JSON.stringify(redact(facts)).slice(1, -1);
  const bindings = (logger as unknown as Readonly<Record<symbol, string>>)[symbols.chindingsSym] ?? '';
  const members = written === '' ? '' : `,${written}`;
  return `{"level":"${label}","time":${Date.now()}${bindings}${members},"msg":${JSON.stringify(message)}}\n`;
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
  // Without a listener an error ends the process. What could not be written is tried again with the next lines.
  out.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    isFailing = true;
    // A reader that has left wants to hear nothing more: Ctrl-C ends both sides of a pipe.
    if (code !== 'EPIPE') tell(`cannot be written: ${message}`);
  });
  out.on('drop', () => tell('is not taken as fast as it is written'));
  out.on('write', () => (isFailing = false));
  out.on('drain', () => (isTold = false));
  // The end of the process calls it, and it repeats a write that fails for ever.
  const { flushSync } = out;
  out.flushSync = () => {
    if (!isFailing) flushSync.call(out);
  };
  const timer = setInterval(() => out.flush(), FLUSH_MS);
  timer.unref();
  return {
    write: (line) => void out.write(line),
    // flushSync would repeat a write for ever once the reader is gone: Ctrl-C ends `tollgate serve | tee log` on both
    // sides.
    flush: () => new Promise((resolve) => out.flush(() => resolve())),
  };
}

function describeRequest(request: unknown): unknown {
  const { method, url, id } = request as { method?: string; url?: string; id?: string };
  // A query may carry credentials of careless clients.
  return method === undefined ? request : { method, path: url?.split('?', 1)[0], request_id: id };
}

function describeReply(reply: unknown): unknown {
  const { statusCode } = reply as { statusCode?: number };
  return statusCode === undefined ? reply : { status: statusCode };
}
