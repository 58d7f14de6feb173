import type { ClientSink, ReplySink } from '#wire';
import { answersOn, type PendingRequest, type Payer, targetOf } from '#gateway';
import { createKeptReplies } from '#tasks';
import type { StartedChat } from './chat-reply.ts';
import type { ChatDeps } from './chat-routes.ts';

/** The answer to one request, and its repeats. */
type ChatAnswers = Pick<PendingRequest<StartedChat>, 'repeats' | 'write' | 'replay'>;

interface PendingChat extends Pick<Payer, 'caller' | 'repeats'> {
  readonly model: string;
  readonly onError: (error: unknown) => void;
}

/**
 * Writes the answers of a chat route, and repeats them when a request repeats its idempotency key. Answers of image
 * models may be too large for the database, so they are stored as files.
 */
export function createChatAnswers({
  blobs,
  config,
  targets,
}: Pick<ChatDeps, 'blobs' | 'config' | 'targets'>): (
  client: ClientSink,
  asked: PendingChat,
  write: (opened: StartedChat, sink: ReplySink) => Promise<boolean>,
) => ChatAnswers {
  const files = blobs ? createKeptReplies(blobs, config.upstream.imagesReplyBytesMax) : null;
  const isPainted = (model: string) => targetOf(targets?.() ?? {}, model)?.target.primitive === 'image';

  return (client, { caller: { account }, repeats, model, onError }, write) => {
    if (repeats === null || files === null || !isPainted(model)) return { repeats, ...answersOn(client, write) };
    return {
      repeats: { ...repeats, taken: (by) => files.repeat(account, by, client) },
      ...answersOn<StartedChat>(client, write, {
        bytesMax: files.bytesMax,
        keep: ({ id }, head, chunks) => files.keep(account, id, head, chunks).catch(onError),
      }),
    };
  };
}
