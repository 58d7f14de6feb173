import type { Config } from '#config';
import { createCheck, type Quotable, withModel } from '#gateway';
import { toCall } from './chat-to-call.ts';
import { type ChatBody, chatSchema } from './request/chat-schema.ts';

interface QuotableDeps {
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** Turns the body of a chat completion into a call that a quote can be made for. Throws GatewayError. */
export function quotableChat({ config, now }: QuotableDeps): Quotable {
  const check = createCheck<ChatBody>(chatSchema(config.limits.messagesMax));
  const { replyBytesMax } = config.upstream;
  const { receipts } = config.billing;
  return (body, context) =>
    toCall(check(withModel(body)), { ...context, now: now(), replyBytesMax, receipts, payment: null }).request;
}
