import { GatewayError, parseJson, createLines } from '#wire';
import type { ProxyMessage } from './wire.ts';

/** Of any message. What a document holds is a text here. */
const MESSAGE_LIMITS = { jsonDepthMax: 16, jsonKeysMax: 1_000 };

/** A line of a control stream that breaks its protocol. The message names the fault, and goes to the proxy. */
export class ControlFault extends Error {
  override readonly name = 'ControlFault';
}

/**
 * The lines of a stream, one after the other, without their ends; empty ones are left out. Takes linear time and
 * holds one line. Throws ControlFault.
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

/** A line as a message; null for one of a type that this gateway does not know. Throws ControlFault. */
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
