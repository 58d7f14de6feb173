/** One event of a stream as the HTML standard reads it (§9.2.6 there), with the lines it was made of. */
export interface SseEvent {
  readonly type: string;
  readonly data: string;
  readonly lines: readonly string[];
}

/**
 * Reads a stream to its end. Comments are no events; a last event without its blank line is dropped, as the
 * standard says.
 */
export async function* readEvents(response: Response): AsyncGenerator<SseEvent, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let buffer = '';
  let lines: string[] = [];
  for await (const chunk of response.body!) {
    buffer += decoder.decode(chunk as Uint8Array, { stream: true });
    const found = buffer.split(/\r\n|\n|\r/u);
    buffer = found.pop() ?? '';
    for (const line of found) {
      if (line !== '') {
        lines.push(line);
        continue;
      }
      const event = eventOf(lines);
      lines = [];
      if (event) yield event;
    }
  }
}

function eventOf(lines: readonly string[]): SseEvent | null {
  const fields = lines
    .filter((line) => !line.startsWith(':'))
    .map((line) => /^([^:]*):? ?(.*)$/su.exec(line)!.slice(1));
  const data = fields.filter(([name]) => name === 'data').map(([, value]) => value);
  if (data.length === 0) return null;
  return { type: fields.find(([name]) => name === 'event')?.[1] ?? 'message', data: data.join('\n'), lines };
}
