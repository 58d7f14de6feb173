import { ApiError } from '../../../api/api-error.ts';

/** A line of an event stream with content. */
type StreamLine =
  | { readonly type: 'data'; readonly text: string }
  /** A comment of the server: a message of a tool or an agent about its work. */
  | { readonly type: 'comment'; readonly text: string };

/** Longest line in characters. One event may contain a picture. Longer lines end the reading. */
const LINE_MAX = 48 * 1024 * 1024;

/** Reads the lines of an event stream as they arrive. Rejects with Error if a line is too long. */
export async function* readEvents(answer: Response): AsyncGenerator<StreamLine> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(brokenOff);
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop()!;
      if (rest.length > LINE_MAX) throw new Error('The answer has a part that is too large to show');
      for (const line of lines) {
        const text = line.endsWith('\r') ? line.slice(0, -1) : line;
        if (text.startsWith('data:')) yield { type: 'data', text: text.slice(5).trim() };
        else if (text.startsWith(':')) yield { type: 'comment', text: text.slice(1).trim() };
      }
    }
  } finally {
    // Without this the provider would continue to write after the reader has stopped.
    void reader.cancel().catch(() => {});
  }
}

/** A stream that was aborted says so itself. Any other error is one of the connection, in words of the browser. */
function brokenOff(cause: unknown): never {
  if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
  throw new ApiError('The connection to the gateway broke off', { status: 0, type: 'unreachable', cause });
}
