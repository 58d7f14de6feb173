import type { CommandTarget } from '#config';
import type { Log } from '../log.ts';
import { startChild, type Child } from './child-process.ts';
import { parseMessage, type Message } from './json-rpc.ts';

export interface ProcessOptions {
  readonly service: string;
  readonly target: CommandTarget;
  /** The proxy's own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

/** Number of characters that are logged of a line that isn't a message. */
const GARBAGE_CHARS_SHOWN = 200;

/** Starts a tool's process that writes one JSON-RPC message per line. Other lines are logged and skipped. */
export function startMessageProcess(
  { service, target, env, log }: ProcessOptions,
  take: (message: Message) => void,
): Child {
  return startChild({
    target,
    env,
    line(text) {
      const message = parseMessage(text);
      if (message) return take(message);
      const facts = { service, text: text.slice(0, GARBAGE_CHARS_SHOWN) };
      log.warn(facts, 'the tool wrote a line that is not JSON-RPC; the line is ignored');
    },
    tooLong: () => log.warn({ service }, 'the tool wrote a line that is too long; the line is ignored'),
    complaint: (text) => log.info({ service, text }, 'the tool says'),
  });
}
