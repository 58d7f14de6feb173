import type { ReplySink } from '#wire';
import { createChatPieces, readCompletion } from './chat-pieces.ts';
import type { Voice } from './voice.ts';

interface TranslationOptions {
  readonly stream: boolean;
  readonly voice: Voice;
  /** Changes the head of the chat reply into that of the wire. */
  readonly headers: (chat: Headers) => Headers;
}

type Headers = Readonly<Record<string, string | number>>;

/**
 * A sink that takes a chat reply and gives `client` the same in another wire. The head, the keep-alive and the end
 * come when the chat wire has them: whatever holds for its replies holds for the translated ones.
 */
export function translatingSink(client: ReplySink, options: TranslationOptions): ReplySink {
  return options.stream ? streamed(client, options) : whole(client, options);
}

function streamed(client: ReplySink, { voice, headers }: TranslationOptions): ReplySink {
  const pieces = createChatPieces();
  const said = (bytes: Uint8Array): Buffer => {
    const end = pieces.read(bytes, voice);
    if (end !== null) voice.end(end);
    return Buffer.from(voice.take());
  };
  return {
    get closed() {
      return client.closed;
    },
    head(status, chat) {
      client.head(status, headers(chat));
      voice.begin();
    },
    flush: () => client.flush(),
    write(bytes) {
      const out = said(bytes);
      return out.byteLength === 0 || client.write(out);
    },
    drained: () => client.drained(),
    end: (bytes) => client.end(said(asBytes(bytes))),
    fail: (bytes) => client.fail(said(bytes)),
  };
}

/** The head waits for the end, as the translated reply has another length. */
function whole(client: ReplySink, { voice, headers }: TranslationOptions): ReplySink {
  let head: Headers = {};
  const chunks: Uint8Array[] = [];
  const end = (bytes: Uint8Array | string) => {
    chunks.push(asBytes(bytes));
    const { said, end: ended } = readCompletion(
      JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>,
    );
    const { status, body } = voice.whole(said, ended);
    const text = JSON.stringify(body);
    client.head(status, { ...headers(head), 'content-length': Buffer.byteLength(text) });
    client.end(text);
  };
  return {
    get closed() {
      return client.closed;
    },
    head: (_status, chat) => void (head = chat),
    flush: () => {},
    write: (bytes) => chunks.push(bytes) > 0,
    drained: () => client.drained(),
    end,
    fail: end,
  };
}

const asBytes = (bytes: Uint8Array | string): Uint8Array => (typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
