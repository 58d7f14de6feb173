import type { Config } from '#config';
import { createCheck, type Quotable, withModel } from '#gateway';
import { toCall } from './chat/chat-to-call.ts';
import { checkInput, type EmbeddingsBody, embeddingsSchema } from './embeddings/embeddings-schema.ts';
import { embeddingsToCall } from './embeddings/embeddings-to-call.ts';
import { type ChatBody, chatSchema } from './chat/chat-schema.ts';

interface QuotableDeps {
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/**
 * Turns the body of a chat completion, or of a request for embeddings, into a call that a quote can be made for. Throws
 * GatewayError.
 */
export function quotableModel({ config, now }: QuotableDeps): Quotable {
  const checkChat = createCheck<ChatBody>(chatSchema(config.limits.messagesMax));
  const checkEmbeddings = createCheck<EmbeddingsBody>(embeddingsSchema);
  const { replyBytesMax } = config.upstream;
  const { receipts } = config.billing;
  return (body, asked) => {
    const context = { ...asked, replyBytesMax, receipts, payment: null };
    if (!isOfEmbeddings(body)) return toCall(checkChat(withModel(body)), { ...context, now: now() }).request;
    const checked = checkEmbeddings(withModel(body));
    checkInput(checked);
    return embeddingsToCall(checked, context).request;
  };
}

const isOfEmbeddings = (body: Readonly<Record<string, unknown>>): boolean =>
  Object.hasOwn(body, 'input') && !Object.hasOwn(body, 'messages');
