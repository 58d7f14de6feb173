import type { Config } from '#config';
import { type Catalog, descriptionOf, listedServices, singleRequest, type TargetAdapter } from '#gateway';
import { toChatBody } from './bridge/ask-body.ts';
import { createPartsReader } from './bridge/parts-reader.ts';
import { toCall } from './chat/chat-to-call.ts';
import { chats } from './embeddings/embeddings-schema.ts';

interface ModelTargetOptions {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers' | 'knows'>;
  readonly config: Pick<Config, 'upstream'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/**
 * Lets the routes of other protocols call chat models, with parts as request and reply. A model is always asked for a
 * stream, so that its text arrives while it is generated.
 */
export function createModelTarget({ catalog, config, now }: ModelTargetOptions): TargetAdapter {
  const find = (name: string) => catalog.resolve(name, 'model');
  return {
    primitive: 'model',
    has: (name) => catalog.knows(name, 'model'),
    list: (limit) =>
      listedServices(
        catalog.offers('model').filter(({ model }) => chats(model!)),
        limit,
      ),
    async about(name) {
      const { offers } = find(name);
      const [first] = offers;
      if (first === undefined) return null;
      const takes = (modality: string) =>
        offers.some(({ model }) => model?.inputModalities.includes(modality) === true);
      return {
        displayName: first.displayName,
        description: descriptionOf(offers),
        offers,
        inputModes: ['text/plain', 'application/json', ...(takes('image') ? ['image/*'] : [])],
        outputModes: ['text/plain'],
      };
    },
    async toCall(name, ask, { caller, requestId, traceparent, wantsReceipt }) {
      find(name);
      const { request, exchange } = toCall(toChatBody(name, ask), {
        caller,
        requestId,
        headers: {},
        now: now(),
        replyBytesMax: config.upstream.replyBytesMax,
        receipts: 'on-request',
        asObject: true,
      });
      const spoken = singleRequest({
        request: (offer) => exchange.request(offer),
        reform: (offer, status, body) => exchange.reform(offer, status, body),
        reader: (offer) => createPartsReader(exchange.reader(offer)),
      });
      return { ...request, exchange: spoken, stream: ask.stream, traceparent, wantsReceipt };
    },
  };
}
