import { createScrubber } from '#security';
import { formatLine } from '#wire/text-line';

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type LogLevel = (typeof LEVELS)[number];

type Write = (facts: Readonly<Record<string, unknown>>, text: string) => void;

/** The proxy's log. Facts are plain values. An Error is logged as its message. */
export type Log = Readonly<Record<Exclude<LogLevel, 'silent'>, Write>>;

interface ScrubbedLog extends Log {
  /** Masks these values too in every later line. */
  hide(secrets: readonly (string | null)[]): void;
}

interface LogOptions {
  readonly level: LogLevel;
  /** `text` for people, `json` for machines. */
  readonly style: 'json' | 'text';
  readonly color?: boolean;
  /** Values that are masked in every line. Text that looks like a secret is masked as well. */
  readonly secrets: readonly (string | null)[];
  /** Gets each finished line, with its line break. */
  readonly write: (line: string) => void;
  readonly now: () => number;
}

/** Creates a log of structured lines without secrets, in the same format as the gateway's log. */
export function createLog({ level, style, color = false, secrets, write, now }: LogOptions): ScrubbedLog {
  let hidden = secrets;
  let scrub = createScrubber(hidden);
  const least = LEVELS.indexOf(level);
  const at =
    (name: Exclude<LogLevel, 'silent'>): Write =>
    (facts, text) => {
      if (LEVELS.indexOf(name) < least) return;
      const line = scrub(
        JSON.stringify(
          { level: name, time: now(), ...facts, msg: text },
          style === 'json' ? messageOfError : forTerminal,
        ),
      );
      write(style === 'json' ? `${line}\n` : formatLine(line, color));
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    hide(more) {
      hidden = [...new Set([...hidden, ...more])];
      scrub = createScrubber(hidden);
    },
  };
}

function messageOfError(_name: string, value: unknown): unknown {
  return value instanceof Error ? value.message : value;
}

/** Removes control characters, so that texts of tools and routers can't move the cursor of a terminal. */
function forTerminal(name: string, value: unknown): unknown {
  const plain = messageOfError(name, value);
  return typeof plain === 'string' ? plain.replace(/\p{Cc}+/gu, ' ') : plain;
}
