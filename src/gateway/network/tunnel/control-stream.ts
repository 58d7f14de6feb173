import type { ClientHttp2Session } from 'node:http2';
import { GatewayError } from '#errors';
import { BOUNDS, createLines, OWN_TURN_BYTES, ownTurn, parseForeign } from '#wire';
import { CONTROL_LINE_BYTES_MAX, CONTROL_PATH, type GatewayMessage, type ProxyMessage } from '../tunnel-wire.ts';

interface ControlHandlers {
  readonly onOpen: () => void;
  /** Called with each message. The next message is read after this one was handled, so that the queue stays bounded. */
  readonly message: (message: ProxyMessage) => Promise<void> | void;
  /**
   * Called when the stream ended, was refused, or violated the protocol. May be called several times. The first reason
   * counts.
   */
  readonly ended: (why: string) => void;
}

interface ControlStream {
  say(message: GatewayMessage): void;
  /** Sends a message, and then calls `then`, at the latest after LAST_WORD_MS. */
  sayLast(message: GatewayMessage, then: () => void): void;
}

/** Longest wait until the last message to a proxy is sent. */
const LAST_WORD_MS = 250;

export function openControl(session: ClientHttp2Session, { onOpen, message, ended }: ControlHandlers): ControlStream {
  const stream = session.request(
    { ':method': 'POST', ':path': CONTROL_PATH, 'content-type': 'application/jsonl' },
    { endStream: false },
  );

  const listen = async () => {
    for await (const line of readLines(stream as AsyncIterable<Buffer>, CONTROL_LINE_BYTES_MAX)) {
      if (line.length > OWN_TURN_BYTES) await ownTurn();
      const proxyMessage = parseProxyMessage(line);
      if (proxyMessage !== null) await message(proxyMessage);
    }
  };
  stream.on('error', (error) => ended(`the tunnel broke: ${error.message}`));
  stream.once('close', () => ended('the proxy closed the control stream'));
  stream.once('response', ({ ':status': status }) => {
    if (status !== 200) return ended(`the proxy answered the control stream with ${status}`);
    onOpen();
    listen().then(
      () => {},
      (error: unknown) => {
        if (error instanceof ControlFault) ended(error.message);
      },
    );
  });

  const say = (line: GatewayMessage, onSent?: () => void) => {
    if (!stream.writable) return onSent?.();
    stream.write(`${JSON.stringify(line)}\n`, onSent);
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

/**
 * A line of a control stream that violates the protocol. The message names the fault. It becomes the reason with which
 * the tunnel is closed.
 */
class ControlFault extends Error {
  override readonly name = 'ControlFault';
}

/**
 * The lines of a stream, in order, without line ends and without empty lines. Takes linear time and buffers one line.
 * Throws ControlFault for a line longer than `bytesMax`.
 */
async function* readLines(chunks: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<string, void, undefined> {
  const ready: string[] = [];
  const lines = createLines({
    bytesMax,
    line: (text) => ready.push(text),
    tooLong() {
      throw new ControlFault(`a line of the control stream is longer than ${bytesMax} bytes`);
    },
  });
  for await (const chunk of chunks) {
    lines.push(chunk);
    yield* ready.splice(0);
  }
}

/** Parses a line as a message. null for an unknown type. Throws ControlFault. */
function parseProxyMessage(line: string): ProxyMessage | null {
  const message = parse(line);
  if (typeof message !== 'object' || message === null || !('type' in message) || typeof message.type !== 'string')
    throw new ControlFault('a line of the control stream is no message');
  switch (message.type) {
    case 'draining':
      return { type: 'draining' };
    case 'register': {
      const { document, router, signature } = message as Partial<Record<'document' | 'router' | 'signature', unknown>>;
      if (
        typeof document !== 'string' ||
        typeof router !== 'string' ||
        (typeof signature !== 'string' && signature !== null)
      )
        throw new ControlFault(
          'a registration needs the texts "document" and "router", and a "signature" that is a text or null',
        );
      return { type: 'register', document, router, signature };
    }
    default:
      return null;
  }
}

function parse(line: string): unknown {
  try {
    return parseForeign(line, BOUNDS.tunnelMessage);
  } catch (error) {
    if (!(error instanceof GatewayError || error instanceof SyntaxError)) throw error;
    throw new ControlFault('a line of the control stream is not JSON, or has more structure than any message', {
      cause: error,
    });
  }
}
