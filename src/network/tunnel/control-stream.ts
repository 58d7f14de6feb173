import type { ClientHttp2Session } from 'node:http2';
import { ControlFault, parseProxyMessage, readLines } from './control-lines.ts';
import { CONTROL_LINE_BYTES_MAX, CONTROL_PATH, type GatewayMessage, type ProxyMessage } from './wire.ts';

interface ControlHandlers {
  /** Called when the proxy has accepted the stream. */
  readonly opened: () => void;
  /** Called with each message. The next message is read after this one was handled, so that the queue stays bounded. */
  readonly message: (message: ProxyMessage) => Promise<void> | void;
  /**
   * Called when the stream ended, was refused, or violated the protocol. May be called several times. The first reason
   * counts.
   */
  readonly ended: (why: string) => void;
}

export interface ControlStream {
  say(message: GatewayMessage): void;
  /** Sends a message, and then calls `then`, at the latest after LAST_WORD_MS. */
  sayLast(message: GatewayMessage, then: () => void): void;
}

/** Longest wait until the last message to a proxy is sent. */
const LAST_WORD_MS = 250;

/** Opens the control stream of a tunnel, at the gateway's end. */
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
