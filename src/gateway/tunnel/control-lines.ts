import type { ProxyMessage } from './wire.ts';

const NEWLINE = 10;

/** What came on a control stream is not of the wire. The message says what, and goes to the proxy. */
export class ControlFault extends Error {
  override readonly name = 'ControlFault';
}

/** The lines of a stream, one after the other, without their ends; empty ones are left out. Takes linear time and holds one line. Throws ControlFault. */
export async function* readLines(chunks: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<string, void, undefined> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  const hold = (part: Buffer) => {
    heldBytes += part.byteLength;
    if (heldBytes > bytesMax) throw new ControlFault(`a line of the control stream is longer than ${bytesMax} bytes`);
    held.push(part);
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      hold(chunk.subarray(from, at));
      from = at + 1;
      const line = Buffer.concat(held).toString();
      held = [];
      heldBytes = 0;
      if (line.trim() !== '') yield line;
    }
    if (from < chunk.byteLength) hold(chunk.subarray(from));
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
      if (typeof document !== 'string' || typeof router !== 'string' || (typeof signature !== 'string' && signature !== null))
        throw new ControlFault('a registration needs the texts "document" and "router", and a "signature" that is a text or null');
      return { type: 'register', document, router, signature };
    }
    default:
      return null;
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new ControlFault('a line of the control stream is not JSON');
  }
}
