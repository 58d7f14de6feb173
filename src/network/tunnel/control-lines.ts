import { GatewayError, parseJson, createLines } from '#wire';
import type { ProxyMessage } from './wire.ts';

/** Limits for any message. A registration document is a string inside its message, so its content does not count. */
const MESSAGE_LIMITS = { jsonDepthMax: 16, jsonKeysMax: 1_000 };

/**
 * A line of a control stream that violates the protocol. The message names the fault. It becomes the reason with which
 * the tunnel is closed.
 */
export class ControlFault extends Error {
  override readonly name = 'ControlFault';
}

/**
 * The lines of a stream, in order, without line ends and without empty lines. Takes linear time and buffers one line.
 * Throws ControlFault for a line longer than `bytesMax`.
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  bytesMax: number,
): AsyncGenerator<string, void, undefined> {
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
export function parseProxyMessage(line: string): ProxyMessage | null {
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
    return parseJson(Buffer.from(line), MESSAGE_LIMITS);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    throw new ControlFault('a line of the control stream is not JSON, or has more structure than any message', {
      cause: error,
    });
  }
}
