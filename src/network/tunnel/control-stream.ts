import type { ClientHttp2Session } from 'node:http2';
import { ControlFault, parseProxyMessage, readLines } from './control-lines.ts';
import { CONTROL_LINE_BYTES_MAX, CONTROL_PATH, type GatewayMessage, type ProxyMessage } from './wire.ts';

interface ControlHandlers {
  /** The proxy has opened its side. */
  readonly opened: () => void;
  /** The next message is read once this one was handled, so that a proxy cannot queue them without bound. */
  readonly message: (message: ProxyMessage) => Promise<void> | void;
  /** The stream ended, was refused, or what came is not of the wire. The first that is told is the reason. */
  readonly ended: (why: string) => void;
}

export interface ControlStream {
  say(message: GatewayMessage): void;
  /** Goes on once the message has left, or could have. */
  sayLast(message: GatewayMessage, then: () => void): void;
}

/** Longest wait for the last words to a proxy to leave. */
const LAST_WORD_MS = 250;

/** Opens the control stream of a tunnel, the gateway's end. */
export function openControl(session: ClientHttp2Session, { opened, message, ended }: ControlHandlers): ControlStream {
  const stream = session.request(
    { ':method': 'POST', ':path': CONTROL_PATH, 'content-type': 'application/jsonl' },
    { endStream: false },
  );

  const listen = async () => {
    for await (const line of readLines(stream as AsyncIterable<Buffer>, CONTROL_LINE_BYTES_MAX)) {
      const said = parseProxyMessage(line);
      if (said !== null) await message(said);
    }
  };
  stream.on('error', (error) => ended(`the tunnel broke: ${error.message}`));
  stream.once('close', () => ended('the proxy closed the control stream'));
  stream.once('response', ({ ':status': status }) => {
    if (status !== 200) return ended(`the proxy answered the control stream with ${status}`);
    opened();
    listen().then(
      () => {},
      (error: unknown) => {
        if (error instanceof ControlFault) ended(error.message);
      },
    );
  });

  const say = (line: GatewayMessage, left?: () => void) => {
    if (!stream.writable) return left?.();
    stream.write(`${JSON.stringify(line)}\n`, left);
    if (stream.writableLength > CONTROL_LINE_BYTES_MAX) ended('the proxy does not read its control stream');
  };

  return {
    say: (line) => say(line),
    sayLast(line, then) {
      const late = setTimeout(then, LAST_WORD_MS);
      say(line, () => {
        clearTimeout(late);
        then();
      });
    },
  };
}
