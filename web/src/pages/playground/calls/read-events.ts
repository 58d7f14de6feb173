/** A line of an event stream that means something. */
type StreamLine =
  | { readonly type: 'data'; readonly text: string }
  /** A comment of the server: what a tool or an agent says of its work. */
  | { readonly type: 'comment'; readonly text: string };

/** One event may hold a picture. A provider that sends more than this without a line end is cut off. */
const LINE_MAX = 48 * 1024 * 1024;

/** Reads the lines of an event stream as they come. Rejects with Error for a line that is too long. */
export async function* readEvents(answer: Response): AsyncGenerator<StreamLine> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
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
    // Without this a reader that stops early leaves the provider writing.
    void reader.cancel().catch(() => {});
  }
}
