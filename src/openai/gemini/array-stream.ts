import type { ReplyEncoder } from '../chat/reply/chat-reply.ts';

/*
 * The Gemini API streams a JSON array unless it is asked for server-sent events. An array is made of these events:
 * each is one line of data.
 */

const LINE = 'data: ';

/** Writes the server-sent events of `encoder` as the elements of a JSON array. */
export function inArray(encoder: ReplyEncoder): ReplyEncoder {
  const decoder = new TextDecoder();
  /** An event that has not arrived to its end. */
  let rest = '';
  let isOpen = false;

  function elements(events: string): string {
    const lines = (rest + events).split('\n');
    rest = lines.pop()!;
    let written = '';
    for (const line of lines) {
      if (!line.startsWith(LINE)) continue;
      written += (isOpen ? ',\r\n' : '[') + line.slice(LINE.length);
      isOpen = true;
    }
    return written;
  }
  const end = (events: Uint8Array): Uint8Array => {
    const written = elements(decoder.decode(events));
    return Buffer.from(isOpen ? `${written}\r\n]` : '[]');
  };

  return {
    streamType: 'application/json; charset=utf-8',
    headers: (chat) => encoder.headers(chat),
    begin: () => encoder.begin(),
    pass: (bytes) => Buffer.from(elements(decoder.decode(bytes, { stream: true }))),
    events: (events, provider) => elements(encoder.events(events, provider)),
    // White space between two elements means nothing.
    keepAlive: () => Buffer.from(isOpen ? '\r\n' : '\n'),
    end: (settled) => end(encoder.end(settled)),
    fail: (error) => end(encoder.fail(error)),
    whole: (settled) => encoder.whole(settled),
  };
}
