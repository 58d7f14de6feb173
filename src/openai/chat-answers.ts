import type { ClientSink, ReplySink } from '#wire';
import { answersOn, type Asked, type Payer, speakerOf } from '#gateway';
import { createKeptReplies } from '#tasks';
import type { OpenedChat } from './chat-reply.ts';
import type { ChatDeps } from './chat-routes.ts';

/** The answer to one request, and its repeats. */
type ChatAnswers = Pick<Asked<OpenedChat>, 'repeats' | 'write' | 'replay'>;

interface AskedChat extends Pick<Payer, 'caller' | 'repeats'> {
  readonly model: string;
  readonly onError: (error: unknown) => void;
}

/**
 * Writes the answers of a chat door, and repeats them when a request repeats its idempotency key. Answers of image
 * models may be too large for the database, so they are stored as files.
 */
export function createChatAnswers({
  blobs,
  config,
  speakers,
}: Pick<ChatDeps, 'blobs' | 'config' | 'speakers'>): (
  client: ClientSink,
  asked: AskedChat,
  write: (opened: OpenedChat, sink: ReplySink) => Promise<boolean>,
) => ChatAnswers {
  const files = blobs ? createKeptReplies(blobs, config.upstream.imagesReplyBytesMax) : null;
  const isPainted = (model: string) => speakerOf(speakers?.() ?? {}, model)?.speaker.primitive === 'image';

  return (client, { caller: { account }, repeats, model, onError }, write) => {
    if (repeats === null || files === null || !isPainted(model)) return { repeats, ...answersOn(client, write) };
    return {
      repeats: { ...repeats, taken: (by) => files.repeat(account, by, client) },
      ...answersOn<OpenedChat>(client, write, {
        bytesMax: files.bytesMax,
        keep: ({ id }, head, chunks) => files.keep(account, id, head, chunks).catch(onError),
      }),
    };
  };
}
